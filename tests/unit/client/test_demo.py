"""The demo: what it orders and says, and that a QEMU that dies is a result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.served.stub_service import Reply, StubService
from vmtune.admin.demo import reaper as demo_reaper
from vmtune.admin.demo.compared import PLAN
from vmtune.admin.demo.demo import VM, _runs, program, to_try, to_try_meanwhile
from vmtune.admin.demo.promise import Promise, lines, sentence
from vmtune.admin.demo.reaper import ARMS, CHANGES, RingRun, measure, report, timeline
from vmtune.admin.demo.service import Service
from vmtune.bench.model.campaign.file import from_json
from vmtune.bench.services.runs.scenarios import chosen_scenario
from vmtune.client.cli import COMMANDS, run
from vmtune.client.connection.http import Client

RUN = "abcdef01-2222-3333-4444-555555555555"


def record(state: str = "ended as planned", **metrics: float) -> dict[str, Any]:
    return {
        "id": RUN,
        "state": state,
        "ended": True,
        "counts": state != "failed",
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
        "off", "off", "predict"]  # fmt: skip
    assert all(scenario.longest_s < 10 for scenario in made.values())
    assert all(scenario.ends_at_limit for scenario in made.values())


def answering(service: StubService, state: str) -> None:
    service.on("POST", "/runs", Reply(record("queued"), 202))
    service.on("GET", f"/runs/{RUN}", record(state, guest_silence_ms=90.0, ring_full_exits=3.0))
    service.on("GET", f"/runs/{RUN}/samples", {"items": [{"at_ms": 1000}], "next": None})
    gaps = [{"at_ms": 1400.0, "duration_ms": 800.0}, {"at_ms": 2500.0, "duration_ms": 20.0}]
    service.on("GET", f"/runs/{RUN}/silences", {"items": gaps, "next": None})
    service.on("GET", "/events", Reply(chunks=[b": following\n\n"]))


def test_arms_are_run_in_turn_and_drawn(service: StubService) -> None:
    answering(service, "ended as planned")
    runs = list(measure(Client(service.socket), verbose=False))
    bodies = [asked.body for asked in service.asked if asked.method == "POST"]
    assert [body["scenario"] for body in bodies] == list(ARMS.values())
    shown = list(report(runs))
    assert all(len(line) <= 80 for line in shown)
    (drawn, figures) = [line for line in shown if line.startswith("ring, vmtune's reaper")]
    assert drawn.endswith("█" * 10 + "·" * 20 + "█" * 20)
    assert figures.split()[-6:] == ["90", "ms", "-", "3"][-6:] or figures.split()[-1] == "3"


def test_a_qemu_that_dies_is_a_result(service: StubService) -> None:
    answering(service, "failed")
    shown = list(report(list(measure(Client(service.socket), verbose=False))))
    assert sum("no picture: QEMU died" in line for line in shown) == len(ARMS)
    assert any("full-dirty-rings" in line for line in shown)


def test_short_gaps_are_not_drawn() -> None:
    assert timeline([(0.0, 15.0), (20.0, 15.0)], width=10) == "█" * 10
    assert timeline([(0.0, 400.0)], width=10) == "··" + "█" * 8


def test_the_campaign_is_one_that_the_service_takes() -> None:
    made = from_json(dict(PLAN), {})
    assert [arm.name for arm in made.arms] == ["stock", "tuned"]
    assert made.blocks == 6


def migration(state: str, **parts: Any) -> dict[str, Any]:
    totals = {"total_time_ms": 9800, "downtime_ms": 212, "transferred_bytes": 1 << 20}
    return {"state": state, "totals": totals, "intent": None, "step_records": [], "outcomes": [],
            "destination": "b", **parts}  # fmt: skip


def promised(silence: float, kept: bool) -> Promise:
    goals = [
        {"goal": "max_silence_ms", "bound": 500, "measured": silence, "kept": kept},
        {"goal": "deadline_s", "bound": 30, "measured": 9.8, "kept": True},
        {"goal": "max_slowdown_percent", "bound": 99, "measured": 70.0, "kept": True},
    ]
    return Promise(migration("cancelled"), migration("completed", intent={"goals": goals}))


def test_the_promise_is_a_line() -> None:
    assert sentence(promised(212, True)) == (
        "Promised: 500 ms of silence, 30 s, 99 % slower; kept: 212 ms, 9.8 s, 70 %."
    )
    unknown = promised(212, True)
    unknown.goals[2].update(measured=None, kept=None)
    assert "kept as far as is known: 212 ms, 9.8 s, not known" in sentence(unknown)
    assert "not kept: 700 ms" in sentence(promised(700, False))
    shown = list(lines(promised(212, True)))
    assert all(len(line) <= 80 for line in shown)
    assert any("no, aborted after" in line for line in shown)


def test_the_forecast_stands_next_to_the_outcome() -> None:
    figures = {"total_ms": {"low": 4e3, "likely": 5e3, "high": 1.2e4}, "silence_ms": None}
    happened = {"total_ms": 4515.0, "silence_ms": 51.0, "sent_bytes": 1 << 27}
    kept = {"basis": "before", "happened": happened, "sent_bytes": None, **figures}
    running = {"basis": "running", "happened": happened, "sent_bytes": None, **figures}
    shown = list(lines(replace(promised(51, True), forecasts=[running, kept])))
    assert all(len(line) <= 80 for line in shown)
    rows = [line.split() for line in shown if line.startswith("total time")]
    assert rows == [["total", "time", "5.0", "s", "(4.0", "s", "to", "12", "s)", "4.5", "s"]]


def test_the_forecast_of_one_that_was_helped_has_no_column_of_dashes() -> None:
    figures = {"total_ms": {"low": 2.7e4, "likely": 3.9e4, "high": 4.5e4}, "silence_ms": None}
    kept = {"basis": "before", "happened": {"ended": None}, "sent_bytes": None, **figures}
    shown = list(lines(replace(promised(51, True), forecasts=[kept])))
    assert "   Expected before it, if nothing had helped: total time 39 s (27 s to 45 s)." in shown
    assert not any("CAME" in line for line in shown)


def test_steps_for_the_same_reason_are_one_line() -> None:
    steps = [
        {"action": f"throttle {n} %", "reason": f"no limit ends it; expected: {n} s"}
        for n in range(3)
    ]
    steps.append({"action": "switch to post-copy", "reason": "the deadline has come"})
    promise = promised(212, True)
    promise.kept["step_records"] = steps
    shown = [line.strip() for line in lines(promise) if line.startswith("   - ")]
    assert shown == [
        "- throttle 2 %: no limit ends it (3 times)",
        "- switch to post-copy: the deadline has come",
    ]


def typed(told: Iterable[str]) -> list[list[str]]:
    """The words of each vmtune command among the lines: one that vmtune knows, with its options."""
    lines = [line.removeprefix("- ").partition("   ")[0].split() for line in told if "- " in line]
    found = [words for program_, *words in lines if program_ == program()]
    for words in found:
        assert run([*words, "--help"]) == 0, words
    return found


def test_what_to_try_can_be_typed_and_needs_no_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAKELEVEL", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    assert Path(program()).name == "vmtune"
    told = list(to_try())
    commands = typed(told)
    assert commands == [["demo", "--keep"], ["doctor"], ["lab", "up"]]
    for first, *_ in commands:
        assert COMMANDS[first][0].startswith("vmtune.admin."), "it works without a service"
    assert not any("http://" in line for line in told), "the port of the next service is not known"
    monkeypatch.setenv("MAKELEVEL", "1")
    assert any("make demo KEEP=1" in line for line in to_try())


@pytest.mark.parametrize(("host", "to"), [("a", "b"), ("b", "a")])
def test_what_to_try_meanwhile_is_true_of_the_vm_and_the_service(
    service: StubService, host: str, to: str
) -> None:
    service.on("GET", f"/vms/{RUN}", {"uuid": RUN, "host": host})
    service.on("POST", "/tokens", Reply({"token": "vmt_x"}, 201))
    running = Service(Client(service.socket), "http://127.0.0.1:40123", service.socket, 1)
    told = list(to_try_meanwhile(running, RUN, ("a", "b")))
    assert "- http://127.0.0.1:40123   sign in with the token vmt_x" in told
    listed, migrated = typed(told)
    reached = ["--socket", str(service.socket)]
    assert listed == [*reached, "vm", "list", "--tuning", "drifted"]
    assert migrated[: len(reached) + 3] == [*reached, "migrate", VM.name, to]


def test_the_command_of_the_promise_names_where_the_vm_went() -> None:
    back = promised(212, True)
    back.kept["destination"] = "a"
    assert any("vmtune migrate vmtune-demo a --max-bandwidth" in line for line in lines(back))


def test_without_kvm_the_runs_are_left_out_and_that_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stage:
        class vm:  # noqa: N801 - an attribute of the demo's stage
            accelerator = "tcg"

        client = "client"

    one = RingRun("bitmap", record())
    monkeypatch.setattr(demo_reaper, "measure", lambda client, verbose: iter([one]))
    assert list(_runs(Stage, verbose=True)) == []  # type: ignore[arg-type]  # what it looks at
    assert "Skipped" in capsys.readouterr().err
    Stage.vm.accelerator = "kvm"
    assert len(list(_runs(Stage, verbose=True))) == 1  # type: ignore[arg-type]  # likewise
