"""The benchmark of intents against the policies of others: what it draws, and how it counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.perf.intents import intent as benchmark
from tests.perf.intents.intent import ALL, FEW, MIB, lane, order, parts, wrongly_refused
from tests.perf.intents.intent_drawn import KINDS, drawn, with_slowdown
from tests.perf.intents.intent_guest import patiently
from tests.perf.intents.intent_results import (
    BY_HAND,
    OURS,
    Done,
    Key,
    Results,
    checks_of,
    whole_blocks,
)
from tests.perf.intents.intent_table import rivals, tables
from tests.support.hosts.live import Live
from vmtune.client.connection.errors import Refused
from vmtune.model.migration.intent import parse_intent
from vmtune.model.profile_templates import profile_templates

ONE = Done(
    *("7", 0, "steady", 0, OURS, "completed", 9000.0, 80.0, 95, 2.0, 0.1, 10.0, True),
    refused=(False, True),
)


def test_a_seed_draws_the_same_workloads_each_time() -> None:
    some = [drawn("7", number) for number in range(6)]
    assert some == [drawn("7", number) for number in range(6)]
    assert [one.kind for one in some] == list(KINDS)
    assert some != [drawn("8", number) for number in range(6)]


@pytest.mark.parametrize("number", range(12))
def test_intents_can_be_accepted_and_one_of_them_cannot_be_kept(number: int) -> None:
    one = drawn("7", number)
    parse_intent(one.intent)
    deadline_s = parse_intent(one.infeasible).deadline_s
    assert deadline_s is not None
    sending_s = one.workload.region_bytes / MIB / one.link_mib_per_s
    assert sending_s >= 2 * deadline_s


@pytest.mark.parametrize("number", range(6))
def test_no_arm_has_a_guest_with_less_to_send(number: int) -> None:
    """It has gone over all of its region before it is migrated, which takes some seconds."""
    one = drawn("7", number)
    written = one.workload.dirty_mb_per_s * 1e6 * one.first_pass_s
    assert written >= 0.999 * one.workload.region_bytes
    assert one.first_pass_s < 20


def test_every_rival_is_a_shipped_profile() -> None:
    shipped = {each.name: {"values": each.values, "steps": []} for each in profile_templates()}
    assert set(FEW) <= set(ALL) <= set(shipped)
    one = drawn("7", 0)
    limit = {"max_bandwidth_bytes_per_s": one.link_mib_per_s * MIB}
    assert order(one, FEW[0], shipped) == {"values": limit, "steps": []}
    assert one.intent.items() >= limit.items()
    assert "values" not in order(drawn("7", 0), OURS, shipped)


ARMS = (OURS, "auto-converge")
INFEASIBLE = Refused(409, {"errors": [{"field": "intent", "code": "intent_infeasible"}]})


@pytest.mark.parametrize("number", range(12))
def test_the_slowdown_is_a_goal_that_auto_converge_can_break(number: int) -> None:
    assert parse_intent(drawn("7", number).intent).max_slowdown_percent in range(70, 96)


def test_an_intent_that_is_refused_is_not_asked_for_again_and_was_not_kept() -> None:
    asked = []

    def ask() -> None:
        asked.append(1)
        raise INFEASIBLE

    with pytest.raises(Refused):
        patiently(ask)
    assert len(asked) == 1
    done = wrongly_refused(ONE.key, drawn("7", 0), (False, True))
    assert (done.key, done.kept, done.state, done.refused) == (
        ONE.key, False, "refused", (True, True),
    )  # fmt: skip
    rival = replace(ONE, arm="auto-converge", refused=None)
    held = {check.metric: check for check in checks_of([done, rival], ARMS)}
    assert held["intent kept"].value == 0
    assert held["feasible intents refused"].value == 100
    assert list(tables([done, rival]))


@pytest.mark.parametrize(("needed", "found"), [(70, 80), (85, 90), (95, 95), (99, None)])
def test_as_much_slowdown_is_allowed_as_a_throttle_from_the_start_needs(
    monkeypatch: pytest.MonkeyPatch, needed: int, found: int | None
) -> None:
    monkeypatch.setattr(benchmark, "guest", lambda *_: nullcontext())
    monkeypatch.setattr(
        benchmark,
        "kept_throttled",
        lambda _, one: one.intent["max_slowdown_percent"] >= needed,
    )
    one, unasked = with_slowdown(drawn("7", 0), 80), cast(Live, None)
    if found is None:
        with pytest.raises(RuntimeError, match="another SEED"):
            benchmark.feasible(unasked, one)
        return
    allowed = benchmark.feasible(unasked, one)
    assert allowed.intent["max_slowdown_percent"] == found
    assert allowed.infeasible["max_slowdown_percent"] == found
    assert allowed.workload == one.workload


def test_a_throttle_that_suffices_now_and_then_is_not_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(benchmark, "guest", lambda *_: nullcontext())
    tries = iter([True, True, True, False, True, True, True, True])
    monkeypatch.setattr(benchmark, "kept_throttled", lambda *_: next(tries))
    allowed = benchmark.feasible(cast(Live, None), with_slowdown(drawn("7", 0), 70))
    assert allowed.intent["max_slowdown_percent"] == 80


@pytest.mark.parametrize("blocks", [1, 2, 9, 10])
def test_each_block_of_each_workload_is_in_one_part(blocks: int) -> None:
    every = [(number, block) for number, some in parts(6, blocks) for block in some]
    assert sorted(every) == [(number, block) for number in range(6) for block in range(blocks)]
    assert max(len(some) for _, some in parts(6, blocks)) <= (blocks + 1) // 2


def test_a_campaign_goes_on_with_the_slowdown_that_it_began_with(tmp_path: Path) -> None:
    results = Results(tmp_path / "done")
    assert results.slowdown_percent("7", 0) is None
    results.add(replace(ONE, slowdown_percent=90))
    assert Results(tmp_path / "done").slowdown_percent("7", 0) == 90
    assert results.slowdown_percent("7", 1) is None


def test_a_fault_costs_one_guest_and_not_the_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guest that does not start, a migration that hangs: the rest is done all the same."""
    faults: list[Exception | None] = [AssertionError("no guest"), None, TimeoutError("stands")]

    @contextmanager
    def lab(*_: object) -> Iterator[Any]:
        yield SimpleNamespace(client=SimpleNamespace(get=lambda _: {"items": []}))

    def measured(there: object, side: str, key: Key, *_: object) -> Done:
        error = faults.pop(0) if faults else None
        if error is not None:
            raise error
        return replace(ONE, seed=key[0], number=key[1], block=key[2], arm=key[3])

    monkeypatch.setattr(benchmark, "live", lambda *_, **__: lab())
    monkeypatch.setattr(benchmark, "guest", lambda *_: nullcontext(SimpleNamespace(side="a")))
    monkeypatch.setattr(benchmark, "idle_cpus", lambda _: 0.0)
    monkeypatch.setattr(benchmark, "cap", lambda *_: None)
    monkeypatch.setattr(benchmark, "measured", measured)
    monkeypatch.setattr(benchmark, "feasible", lambda _, one: one)
    results = Results(tmp_path / "done")
    lane(0, parts(2, 2), ARMS, results, float("inf"))
    assert len(results.done) == len(set(each.key for each in results.done)) == 8
    faults += [OSError("no lab")] * 3
    with pytest.raises(OSError, match="no lab"):
        lane(0, parts(2, 3), ARMS, results, float("inf"))


def test_what_is_kept_and_what_is_not_is_counted() -> None:
    rival = replace(ONE, arm="auto-converge", lost_s=4.0, total_ms=10_000.0, refused=None)
    held = {check.metric: check for check in checks_of([ONE, rival], ARMS)}
    assert all(check.holds for check in held.values()), held
    assert held["lost work by auto-converge's"].value == 0.5
    late = [replace(ONE, kept=False, refused=(True, False)), rival]
    assert not any(
        check.holds
        for check in checks_of(late, ARMS)
        if "lost" not in check.metric and "CPU" not in check.metric
    )


@pytest.mark.parametrize(("took_ms", "as_fast"), [(10_500, 6), (11_500, 0)])
def test_total_times_are_held_against_a_rival_that_keeps_it_as_often(
    took_ms: int, as_fast: int
) -> None:
    done = []
    for block in range(8):
        ours = replace(ONE, block=block, total_ms=took_ms + block)
        done += [ours, replace(ours, arm="auto-converge", total_ms=10_000 + block, refused=None)]
        done.append(replace(ours, arm="often late", total_ms=1_000, kept=block < 4, refused=None))
    held = {check.metric: check.value for check in checks_of(done, (*ARMS, "often late"))}
    assert held["workloads as fast as the best rival that kept it"] == as_fast


def test_what_is_done_is_read_again_and_a_line_that_was_cut_off_is_not(tmp_path: Path) -> None:
    file = tmp_path / "done"
    first = Results(file)
    rival = replace(ONE, arm="auto-converge", refused=None)
    first.add(ONE)
    first.add(rival)
    with file.open("a") as lines:
        lines.write('{"seed": "7"')
    again = Results(file)
    assert again.done == [ONE, rival]
    assert again.has(rival.key)
    assert not again.has(replace(rival, block=1).key)
    again.add(replace(ONE, block=1))
    assert whole_blocks(Results(file).done, ARMS) == [ONE, rival]


def campaign(blocks: int = 8) -> list[Done]:
    """By intent a steady guest takes 5 s, by auto-converge 9 s; of the other workload auto-converge
    keeps no intent. The last block is not whole."""
    made = []
    for number, kind in enumerate(("steady", "fast")):
        for block in range(blocks):
            ours = replace(ONE, number=number, kind=kind, block=block, total_ms=5000.0 + block)
            theirs = replace(
                ours, arm="auto-converge", total_ms=9000.0 + block, lost_s=4.0, refused=None,
                kept=kind == "steady", state="completed",
            )  # fmt: skip
            made += [ours, theirs]
    return made[:-1]


def test_blocks_in_which_nobody_could_keep_it_do_not_count() -> None:
    """A throttle from the start suffices in all but one."""
    done = campaign()
    done[0] = replace(done[0], kept=False)
    by_hand = [
        replace(each, arm=BY_HAND, kept=number > 0, refused=None)
        for number, each in enumerate(each for each in done if each.arm == OURS)
    ]
    whole = whole_blocks(done, ARMS)
    for tried, share in ((by_hand, 100), (by_hand[1:], 100 * 14 / 15)):
        held = {check.metric: check.value for check in checks_of(whole, ARMS, tried)}
        assert held["intent kept"] == pytest.approx(share)
    shown = list(tables([*done, *by_hand]))
    assert shown[0] == "2 workloads, 15 blocks of 2 migrations each."
    assert "- Kept: 14 of 15; in the 14 blocks in which it was kept by hand, 14." in shown
    assert any(line.startswith("| throttled from the start by all that is") for line in shown)


def test_the_tables_have_rivals_verdicts_lost_work_and_refusals() -> None:
    shown = list(tables(campaign()))
    assert shown[0] == "2 workloads, 15 blocks of 2 migrations each."
    rivals = shown.index("| Rival | Set at the start | Steps, 256 MiB of memory | Source |")
    measured = [line for line in shown[:rivals] if line.startswith("|")]
    rows = {line.split(" | ")[0].strip("| "): line for line in measured}
    assert " 100 % | 15 of 15 | 5.0 s | 80 ms | 80 ms | 2.00 s |" in rows["**by intent**"]
    assert " 53 % | 15 of 15 | 9.0 s " in rows["`auto-converge`"]
    assert rows["steady"].endswith("| 5.0 s | `auto-converge` | 9.0 s | better |")
    assert rows["fast"].endswith("| 5.0 s | none | - | - |")
    said = " ".join(shown)
    assert "15 of 15 intents that could not be kept, 0 of 15 that could" in said
    assert "2.00 s by intent, 4.00 s by auto-converge" in said
    assert "1.0 % of a core" in said


def test_each_rival_is_shown_with_what_it_is_shipped_with() -> None:
    head, _, *rows = rivals([OURS, *ALL])
    assert len(rows) == len(ALL)
    assert all(line.count(" | ") == head.count(" | ") for line in rows)
    shown = dict(zip(ALL, rows, strict=True))
    assert shown["qemu-defaults"].startswith("| `qemu-defaults` | nothing | none | QEMU")
    assert "downtime_limit_ms 50 ms | after 150s: downtime_limit_ms=95ms" in shown["nova-abort"]
    assert "after 1600s: abort | OpenStack Nova" in shown["nova-abort"]
    assert "after 38s: postcopy" in shown["kubevirt-postcopy"]


def test_tables_are_made_of_a_file_that_a_campaign_left(tmp_path: Path) -> None:
    results = Results(tmp_path / "done")
    for each in campaign():
        results.add(each)
    assert list(tables(Results(tmp_path / "done").done)) == list(tables(campaign()))
