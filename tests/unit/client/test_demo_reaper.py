"""The demo's benchmark runs: what is ordered, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stub_service import Reply, StubService
from vmtune.admin.demo import reaper as demo_reaper
from vmtune.admin.demo.demo import _runs
from vmtune.admin.demo.reaper import ARMS, CHANGES, measure, report
from vmtune.bench.services.runs.scenarios import chosen_scenario
from vmtune.client.connection.http import Client
from vmtune.errors import SetupError

RUN = "abcdef01-2222-3333-4444-555555555555"


def record(state: str = "not converged", **metrics: float) -> dict[str, Any]:
    return {
        "id": RUN,
        "state": state,
        "ended": True,
        "ahead": None,
        "failure": "QEMU died" if state == "failed" else "",
        "metrics": metrics,
    }


def test_each_arm_is_a_scenario_and_the_ring_is_what_differs() -> None:
    made = {arm: chosen_scenario(name, CHANGES) for arm, name in ARMS.items()}
    rings = {arm: scenario.dirty_ring_entries for arm, scenario in made.items()}
    assert rings.pop("bitmap") == 0
    assert len(set(rings.values())) == 1
    assert [scenario.values.get("reaper_policy", "off") for scenario in made.values()] == [
        "off", "off", "predict", "levels", "aimd"]  # fmt: skip
    assert all(scenario.longest_s < 10 for scenario in made.values())


def test_arms_are_run_in_turn(service: StubService) -> None:
    service.on("POST", "/runs", Reply(record("queued"), 202))
    service.on("GET", f"/runs/{RUN}", record(guest_write_share_percent=90.0, ring_full_exits=3.0))
    service.on("GET", "/events", Reply(chunks=[b": following\n\n"]))
    runs = list(measure(Client(service.socket), verbose=False))
    bodies = [asked.body for asked in service.asked if asked.method == "POST"]
    assert [body["scenario"] for body in bodies] == list(ARMS.values())
    assert {body["changes"]["name"].partition("/")[0] for body in bodies} == {"demo"}
    lines = list(report(runs))
    (row,) = [line for line in lines if line.startswith("ring, by predict")]
    assert row.split()[-6:] == ["90", "%", "-", "3", "-", "-"]
    assert "16,384" in lines[0]


def test_a_run_that_failed_ends_the_demo_with_its_reason(service: StubService) -> None:
    service.on("POST", "/runs", Reply(record("queued"), 202))
    service.on("GET", f"/runs/{RUN}", record("failed"))
    service.on("GET", "/events", Reply(chunks=[b": following\n\n"]))
    with pytest.raises(SetupError, match="QEMU died"):
        list(measure(Client(service.socket), verbose=False))


def test_without_kvm_the_runs_are_left_out_and_that_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stage:
        class vm:  # noqa: N801 - an attribute of the demo's stage
            accelerator = "tcg"

        client = "client"

    monkeypatch.setattr(demo_reaper, "measure", lambda client, verbose: iter([client]))
    assert list(_runs(Stage, verbose=True)) == []  # type: ignore[arg-type]  # what it looks at
    assert "Skipped" in capsys.readouterr().err
    Stage.vm.accelerator = "kvm"
    assert len(list(_runs(Stage, verbose=True))) == 1  # type: ignore[arg-type]  # likewise
