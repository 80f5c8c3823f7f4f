"""``vmtune bench``: what is ordered, what is shown, and how it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from tests.support.served.api import Api
from tests.support.served.stub_service import Reply, StubService, event, page, refusal
from tests.unit.client.conftest import Vmtune
from vmtune.client.commands.bench import migration as bench_migration
from vmtune.client.commands.bench.group import COMMANDS, bench
from vmtune.client.views import progress as progress_module
from vmtune.client.views.progress import Lines, RunProgression

RUN = "abcdef01-2222-3333-4444-555555555555"
OTHER = "abcdef02-2222-3333-4444-555555555555"
AT = "2026-11-21T04:00:00Z"
FOLLOWING = b": following\n\n"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "_LINE_EVERY_S", 0.0)
    monkeypatch.setattr(progress_module, "_PAUSE_SHARE", 0.0)


def scenario(name: str, reason: str = "") -> dict[str, Any]:
    return {"name": name, "title": f"about {name}", "applicable": not reason, "reason": reason}


def run(state: str = "completed", id: str = RUN, **changes: Any) -> dict[str, Any]:
    ended = state not in ("queued", "running")
    metrics = {"total_time_ms": 1234.0, "downtime_ms": 31.25, "guest_silence_ms": 40.0}
    return {
        "id": id,
        "scenario": "plain/1gbs.quick",
        "kind": "migration",
        "state": state,
        "ended": ended,
        "ahead": None,
        "failure": "",
        "profile": None,
        "revision": None,
        "texts": {"multifd": "on"},
        "metrics": metrics if state == "completed" else {},
        "testbed": "direct",
        "qemu": "system",
        "host": "rack1",
        "fingerprint": "0123456789abcdef",
        "slot": None,
        "imported_from": "",
        "created_at": AT,
        "started_at": AT,
        "ended_at": AT if ended else None,
        **changes,
    }


def offer(service: StubService, *offered: dict[str, Any]) -> None:
    service.on("GET", "/scenarios", page(*(offered or (scenario("plain/1gbs.quick"),))))


def runs_end_as(service: StubService, *records: dict[str, Any]) -> None:
    service.on("POST", "/runs", *(Reply({**r, "state": "queued"}, 202) for r in records))
    for record in records:
        service.on("GET", f"/runs/{record['id']}", record)
    service.on("GET", "/events", Reply(chunks=[FOLLOWING]))


def orders(service: StubService) -> list[Any]:
    return [
        asked.body for asked in service.asked if (asked.method, asked.path) == ("POST", "/runs")
    ]


@pytest.fixture
def served(real: Api, vmtune: Vmtune) -> Api:
    """The real application, which has told by now that it is ready: its log is on stdout."""
    assert vmtune("health").code == 0
    return real


def test_without_a_name_it_runs_the_quick_selection(service: StubService, vmtune: Vmtune) -> None:
    offer(service, scenario("plain/1gbs.quick"), scenario("compr-mt/2.quick", "QEMU lacks it"))
    runs_end_as(service, run())
    ran = vmtune("bench", "migration")
    assert ran.code == 0, ran.err
    query = service.only("GET", "/scenarios").query
    assert query["quick"] == ["true"]
    assert "family" not in query
    (order,) = orders(service)
    assert order["scenario"] == "plain/1gbs.quick"
    table, skipped = ran.out.split("\n\n")
    assert table.splitlines()[0].split() == [
        "SCENARIO", "RESULT", "TOTAL", "TIME", "DOWNTIME", "SILENCE"]  # fmt: skip
    assert table.splitlines()[1].split() == [
        "plain/1gbs.quick", "completed", "1,234", "ms", "31.2", "ms", "40", "ms"]  # fmt: skip
    assert skipped.splitlines()[1].split(maxsplit=1) == ["compr-mt/2.quick", "QEMU lacks it"]
    assert "1 of 1  plain/1gbs.quick  completed in 1,234 ms" in ran.err


def test_what_is_asked_for_is_ordered(service: StubService, vmtune: Vmtune) -> None:
    offer(service, scenario("plain/1gbs"), scenario("xbzrle/5"))
    runs_end_as(service, *(run(id=f"{n}bcdef01-2222-3333-4444-555555555555") for n in range(4)))
    ran = vmtune(
        "bench", "migration", "plain/1gbs", "--family", "xbzrle", "--profile", "fast", "--testbed",
        "lab",
        "--revision", "2", "--set", "multifd=on", "--set", "multifd_channels=4", "--qemu", "old",
        "--no-kvm", "--repeat", "2", "--quiet",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    query = service.only("GET", "/scenarios").query
    assert query["family"] == ["plain/1gbs", "xbzrle"]
    assert (query["qemu"], query["kvm"]) == (["old"], ["false"])
    assert "quick" not in query
    assert [order["scenario"] for order in orders(service)] == ["plain/1gbs", "xbzrle/5"] * 2
    assert orders(service)[0] == {
        "scenario": "plain/1gbs",
        "profile": "fast",
        "revision": 2,
        "values": {"multifd": "on", "multifd_channels": "4"},
        "qemu": "old",
        "testbed": "lab",
        "kvm": False,
    }
    assert query["testbed"] == ["lab"]
    assert (ran.out, ran.err) == ("", "")


@pytest.mark.parametrize(
    ("states", "code"),
    [(["completed"] * 2, 0), (["completed", "not converged"], 2), (["completed", "failed"], 1),
     (["completed", "ended as planned"], 0),
     (["cancelled", "completed"], 1), (["not converged", "interrupted"], 1)],
)  # fmt: skip
def test_the_exit_code_tells_the_worst(
    service: StubService, vmtune: Vmtune, states: list[str], code: int
) -> None:
    offer(service)
    records = [run(state, id) for state, id in zip(states, (RUN, OTHER), strict=True)]
    runs_end_as(service, *records)
    ran = vmtune("bench", "migration", "--repeat", "2")
    assert ran.code == code, ran.err
    expected = states[0] if len(set(states)) == 1 else f"{states[0]} 1, {states[1]} 1"
    assert expected in ran.out


def test_several_runs_are_told_by_their_median(service: StubService, vmtune: Vmtune) -> None:
    offer(service)
    times = (900.0, 1000.0, 2000.0)
    ids = [f"{n}bcdef01-2222-3333-4444-555555555555" for n in range(3)]
    runs_end_as(
        service,
        *(run(id=id, metrics={"total_time_ms": t}) for id, t in zip(ids, times, strict=True)),
    )
    ran = vmtune("bench", "migration", "--repeat", "3")
    assert "1,000 ms (900 ms to 2,000 ms)" in ran.out
    assert "Too few runs for a verdict" in ran.out


def test_a_failed_run_says_why(service: StubService, vmtune: Vmtune) -> None:
    offer(service)
    runs_end_as(service, run("failed", failure="QEMU: no route to host"))
    ran = vmtune("bench", "migration")
    assert ran.code == 1
    assert "failed: QEMU: no route to host" in ran.err


def test_json_is_records_and_what_was_skipped(service: StubService, vmtune: Vmtune) -> None:
    skipped = scenario("x/y", "no KVM")
    offer(service, scenario("plain/1gbs.quick"), skipped)
    runs_end_as(service, run())
    ran = vmtune("bench", "migration", "--json")
    assert ran.document == {"items": [run()], "skipped": [skipped]}
    assert ran.err == ""


def test_nothing_that_can_be_run_is_an_error_with_each_reason(
    service: StubService, vmtune: Vmtune
) -> None:
    offer(service, scenario("a/b", "it needs KVM"), scenario("c/d", "QEMU is too old"))
    ran = vmtune("bench", "migration", "a/b", "c/d")
    assert ran.code == 1
    assert "a/b: it needs KVM; c/d: QEMU is too old" in ran.err
    assert orders(service) == []


def test_values_that_a_scenario_does_not_take_skip_it_alone(
    service: StubService, vmtune: Vmtune
) -> None:
    offer(service, scenario("a/b"), scenario("c/d"))
    runs_end_as(service, run())
    row = {"field": "values.xbzrle", "code": "excludes", "message": "xbzrle excludes multifd"}
    accepted = Reply({**run(), "state": "queued"}, 202)
    service.on("POST", "/runs", refusal(422, row), accepted, accepted)
    ran = vmtune("bench", "migration", "a/b", "c/d", "--repeat", "2")
    assert ran.code == 0, ran.err
    assert [order["scenario"] for order in orders(service)] == ["a/b", "c/d", "c/d"]
    assert "xbzrle excludes multifd" in ran.out
    service.on("POST", "/runs", refusal(409, row))
    assert vmtune("bench", "migration", "a/b").code == 1
    service.on("POST", "/runs", refusal(503, row))
    assert vmtune("bench", "migration", "a/b").code == 1
    assert len(orders(service)) == 6


def test_ctrl_c_cancels_the_run_and_starts_no_more(
    service: StubService, vmtune: Vmtune, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(service, scenario("a/b"), scenario("c/d"), scenario("e/f"))
    runs_end_as(service, run(), run(id=OTHER))
    service.on("DELETE", f"/runs/{OTHER}", Reply(run("running", OTHER), 202))
    ends = iter([run()])

    def interrupted(*_: object, **__: object) -> Any:
        try:
            return next(ends)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(bench_migration, "watch_to_end", interrupted)
    ran = vmtune("bench", "migration", "a/b", "c/d", "e/f")
    assert ran.code == 130
    assert service.only("DELETE", f"/runs/{OTHER}")
    assert len(orders(service)) == 2
    assert "1,234 ms" in ran.out
    assert f"run {OTHER} is cancelled" in ran.err


def test_no_wait_orders_all(service: StubService, vmtune: Vmtune) -> None:
    offer(service)
    runs_end_as(service, run(), run(id=OTHER))
    ran = vmtune("bench", "migration", "--repeat", "2", "--no-wait")
    assert ran.code == 0
    assert "started 2 runs" in ran.out
    assert not [asked for asked in service.asked if asked.path == "/events"]


@pytest.mark.parametrize(("repeat", "names"), [("1", ["p.html"]), ("2", ["p-1.html", "p-2.html"])])
def test_pictures_are_written(
    service: StubService, vmtune: Vmtune, tmp_path: Path, repeat: str, names: list[str]
) -> None:
    offer(service)
    runs_end_as(service, run(), run(id=OTHER))
    for id in (RUN, OTHER):
        service.on("GET", f"/runs/{id}/plot", Reply(raw=b"<svg>"))
    ran = vmtune("bench", "migration", "--plot", str(tmp_path / "p.html"), "--repeat", repeat)
    assert ran.code == 0, ran.err
    assert sorted(path.name for path in tmp_path.glob("*.html")) == names
    assert (tmp_path / names[0]).read_bytes() == b"<svg>"


def test_progress_is_the_runs(service: StubService, vmtune: Vmtune) -> None:
    offer(service)
    runs_end_as(service, run())
    states = (run("queued", ahead=2), run("running"), run())
    service.on("GET", f"/runs/{RUN}", *states)

    def told(**data: Any) -> bytes:
        return event({"topic": "run", "subject": RUN, "data": data}, topic="run")

    migrating = {"phase": "migrating", "iteration": 3, "remaining_bytes": 64 << 20}
    chunks = [
        FOLLOWING,
        event({"topic": "run", "subject": RUN, "data": {"state": "running"}}, "run", 8),
        told(share=0.25, phase="warm-up", at_ms=500),
        told(share=0.5, at_ms=900, **migrating),
        told(share=0.4, phase="cool-down", at_ms=1000),
        event({"topic": "run", "subject": RUN, "data": {"state": "completed"}}, "run", 9),
    ]
    service.on("GET", "/events", Reply(chunks=chunks))
    ran = vmtune("bench", "migration")
    assert service.only("GET", "/events").query == {"topic": ["run"], "subject": [RUN]}
    lines = [line.split("plain/1gbs.quick")[-1].strip() for line in ran.err.splitlines()]
    assert lines[0] == "waiting for 2 other runs"
    assert lines[1] == "warm-up"
    assert lines[2].startswith("50%  iteration 3, 64 MiB left")
    assert lines[3:] == ["cool-down", "completed in 1,234 ms"]
    assert [line[:4] for line in ran.err.splitlines()[1:4]] == [" 25%", " 50%", " 50%"]


def test_a_lost_service_leaves_the_run_to_be_asked_about(
    service: StubService, vmtune: Vmtune
) -> None:
    offer(service)
    runs_end_as(service, run())
    service.on("GET", f"/runs/{RUN}", refusal(500, {"message": "a fault"}))
    ran = vmtune("bench", "migration")
    assert ran.code == 1
    assert f"check: vmtune bench show {RUN}" in ran.err


def test_what_is_shown_without_the_title() -> None:
    shown = RunProgression()
    assert shown.read(run("queued", ahead=1))
    assert shown.stage == "waiting for 1 other run"
    shown.advance({"share": 0.1, "phase": "starting"})
    assert (shown.stage, shown.share) == ("starting", 0.1)
    Lines(shown=shown).state(run())
    assert shown.share == 1.0


@pytest.mark.parametrize("name", COMMANDS)
def test_each_line_of_help_is_the_commands_own(name: str) -> None:
    command = bench.get_command(click.Context(bench), name)
    assert command is not None
    assert command.name == name
    first = (command.help or "").split("\n\n")[0].replace("\n", " ")
    assert first.startswith(COMMANDS[name][1].removesuffix("."))
    options = {option for p in command.params for option in p.opts}
    assert {"--json", "--quiet", "--socket", "--debug"} <= options


def test_runs_are_listed(service: StubService, vmtune: Vmtune) -> None:
    service.on("GET", "/runs", page(run(), run("queued", OTHER)))
    ran = vmtune("bench", "runs", "--state", "queued", "--state", "running", "--family", "plain")
    query = service.only("GET", "/runs").query
    assert (query["state"], query["family"]) == (["queued", "running"], ["plain"])
    rows = [line.split() for line in ran.out.splitlines()]
    assert rows[1][:4] == ["abcdef01", "plain/1gbs.quick", "none", "completed"]
    assert len(vmtune("bench", "runs", "-n", "1", "--json").document["items"]) == 1
    assert len(vmtune("bench", "runs", "-n", "0", "--json").document["items"]) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [("abcdef", "2 runs have ids that start with abcdef"), ("ffff", "no run has an id"),
     ("abc", "is not the id of a run"), ("../health", "is not the id of a run")],
)  # fmt: skip
def test_a_run_is_named_by_the_beginning_of_its_id(
    service: StubService, vmtune: Vmtune, text: str, said: str
) -> None:
    service.on("GET", "/runs", page(run(), run(id=OTHER)))
    service.on("DELETE", f"/runs/{OTHER}", Reply(run("queued", OTHER), 202))
    assert vmtune("bench", "cancel", "ABCDEF02").code == 0
    assert vmtune("bench", "cancel", OTHER.upper()).code == 0
    ran = vmtune("bench", "cancel", text)
    assert ran.code == 1
    assert said in ran.err
    assert "remedy:" in ran.err


def test_a_run_against_the_real_application(served: Api, vmtune: Vmtune, tmp_path: Path) -> None:
    ran = vmtune("bench", "migration", "plain/1gbs", "--quick", "--json")
    assert ran.code == 0, ran.err
    (record,) = ran.document["items"]
    id = record["id"]
    shown = vmtune("bench", "show", id[:8]).out
    assert "scenario:  plain/1gbs.quick" in shown
    assert "reaper:           predict" in shown
    assert "pause the guest" in shown
    assert "total_time_ms" in shown
    assert "accelerator:  " in shown
    assert id[:8] in vmtune("bench", "runs").out
    marks = {"r.json": b"{", "r.csv.gz": b"\x1f\x8b", "r.parquet": b"PAR1", "g.json": b"{"}
    for name, mark in marks.items():
        file = tmp_path / name
        form = ("--format", "guestperf") if name == "g.json" else ()
        assert vmtune("bench", "export", id, str(file), *form).code == 0
        assert file.read_bytes().startswith(mark)
    again = vmtune("bench", "import", *(str(tmp_path / name) for name in list(marks)[:3]))
    assert again.code == 1
    assert again.err.count("there is a run") == 3
    imported = vmtune("bench", "import", str(tmp_path / "g.json"), "--json")
    assert imported.code == 0, imported.err
    assert imported.document["items"][0]["imported_from"] == "guestperf: g.json"
    assert vmtune("bench", "plot", id, str(tmp_path / "p.html")).code == 0
    assert b"<svg" in (tmp_path / "p.html").read_bytes()
    late = vmtune("bench", "cancel", id)
    assert late.code == 1
    assert "has ended" in late.err


def test_an_export_is_there_wholly_or_not_at_all(
    service: StubService, vmtune: Vmtune, tmp_path: Path
) -> None:
    service.on("GET", f"/runs/{RUN}/export", Reply(raw=b"whole"))
    assert vmtune("bench", "export", RUN, str(tmp_path / "r.json")).code == 0
    assert service.only("GET", f"/runs/{RUN}/export").query == {"format": ["json"]}
    (tmp_path / "folder").mkdir()
    for testbed in ("none/r.json", "folder"):
        ran = vmtune("bench", "export", RUN, str(tmp_path / testbed))
        assert ran.code == 1
        assert "cannot be written" in ran.err
    service.on("GET", f"/runs/{RUN}/export", refusal(422, {"message": "the run is running"}))
    assert vmtune("bench", "export", RUN, str(tmp_path / "s.json")).code == 1
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["r.json"]
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"{", "is not JSON, csv.gz or Parquet"), (b"[]", "is not an object"),
     (b"\x1f\x8bxx", "not packed"), (b"PAR1xx", "not a table of a run"),
     (None, "cannot be read"), (b"{}", "format")],
)  # fmt: skip
def test_a_file_that_is_no_run_is_refused(
    served: Api, vmtune: Vmtune, tmp_path: Path, content: bytes | None, said: str
) -> None:
    file = tmp_path / "x.json"
    if content is not None:
        file.write_bytes(content)
    ran = vmtune("bench", "import", str(file))
    assert ran.code == 1
    assert said in ran.err


def test_scenarios_and_metrics_are_told(served: Api, vmtune: Vmtune) -> None:
    listed = vmtune("bench", "scenarios", "plain", "compr-dirty-limit/20MB", "--no-kvm").out
    rows = {line.split()[0]: line for line in listed.splitlines()[1:]}
    assert set(rows) == {"plain/unlimited", "plain/1gbs", "compr-dirty-limit/20MB"}
    assert "yes" in rows["plain/1gbs"]
    assert "needs KVM" in rows["compr-dirty-limit/20MB"]
    quick = vmtune("bench", "scenarios", "--quick", "--json").document["items"]
    assert all(item["name"].endswith(".quick") for item in quick)
    wrong = vmtune("bench", "scenarios", "plian")
    assert (wrong.code, "plain" in wrong.err) == (1, True)
    metrics = vmtune("bench", "metrics").out
    assert "guest_silence_ms" in metrics
    one = vmtune("bench", "metrics", "downtime_ms").out
    assert "better:  lower" in one
    assert "Begins" in one
