"""The demo's migrations are judged by the rules of campaigns."""

from __future__ import annotations

from typing import Any

from vmtune.admin.demo.demo import report
from vmtune.admin.demo.verdict import compared
from vmtune.stats.model import Design, Verdict


def record(profile: str, total: int | None, number: int) -> dict[str, Any]:
    totals = {"total_time_ms": total, "downtime_ms": 9, "transferred_bytes": 1 << 20,
              "iterations": 3}  # fmt: skip
    return {
        "id": f"{profile}{number}",
        "profile": profile,
        "state": "cancelled" if total is None else "completed",
        "totals": None if total is None else totals,
        "failure": "",
        "outcomes": [],
    }


def records(blocks: int, aborted: int = 0) -> list[dict[str, Any]]:
    return [
        record(name, None if name == "stock" and n < aborted else time + n, n)
        for n in range(blocks)
        for name, time in (("stock", 2000), ("tuned", 1000))
    ]


def test_few_rounds_are_insufficient_and_six_are_not() -> None:
    names = ("stock", "tuned")
    few = compared(records(3), names, 20_000).cells[0].primary
    assert (few.design, few.size) == (Design.PAIRED, 3)
    assert few.verdict is Verdict.INSUFFICIENT_DATA
    assert few.effect is not None
    assert few.effect.estimate < 0.51
    assert compared(records(6), names, 20_000).cells[0].primary.verdict is Verdict.BETTER


def test_a_migration_that_was_aborted_took_longer_than_its_limit() -> None:
    found = compared(records(3, aborted=1), ("stock", "tuned"), 20_000)
    assert found.runs[0].censored == ("total_time_ms",)
    assert found.runs[0].values == {"total_time_ms": 20_000}
    assert found.cells[0].primary.a.censored == 1


def test_the_demo_says_so() -> None:
    said = "\n".join(report(records(3)))
    assert "insufficient data" in said
    assert "B = tuned against A = stock, 3 blocks" in said
