"""Migrating and following: what is shown, lost connections, and how it ends."""

from __future__ import annotations

import pytest

from tests.support.examples import api_documents as docs
from tests.support.served.stub_service import Reply, StubService, event, page, refusal
from tests.unit.client.conftest import Vmtune
from vmtune.client.connection import sse
from vmtune.client.connection.errors import ConnectionLost
from vmtune.client.views import progress as progress_module
from vmtune.client.views.progress import Bar, Lines, Progression

RECORD = f"/migrations/{docs.MIGRATION}"
FOLLOWING = b": following\n\n"
PING = b": ping\n\n"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse.Backoff.__init__, "__defaults__", (60.0, lambda _s: None, _ticks()))
    monkeypatch.setattr(progress_module, "_LINE_EVERY_S", 0.0)
    monkeypatch.setattr(progress_module, "_PAUSE_SHARE", 0.0)


def _ticks() -> object:
    """A clock that advances a second at each look, so that a minute is 60 looks."""
    now = iter(range(10**9))
    return lambda: float(next(now))


def begin(service: StubService, *records: object) -> None:
    service.on("GET", "/vms", page(docs.vm(), problems=[]))
    service.on("POST", "/migrations", Reply(docs.migration(), 202))
    service.on("GET", RECORD, *records)  # type: ignore[arg-type]  # documents and replies


def told(state: str) -> bytes:
    data = {"state": state}
    return event(
        {"id": 9, "at": docs.AT, "topic": "migration", "subject": docs.MIGRATION, "data": data},
        id=9,
    )


def test_it_follows_to_the_end_and_shows_the_result(service: StubService, vmtune: Vmtune) -> None:
    begin(service, docs.migration(), docs.migration("active"), docs.migration("completed"))
    chunks = [
        FOLLOWING,
        told("active"),
        event(docs.progress(0.3)),
        event(docs.progress(0.2)),
        told("completed"),
    ]
    service.on("GET", "/events", Reply(chunks=chunks))
    ran = vmtune("migrate", "db1", "rack2", "--profile", "fast", "--override", "optmem_too_low")
    assert ran.code == 0
    body = service.only("POST", "/migrations").body
    assert body == {
        "vm": docs.VM,
        "destination": "rack2",
        "profile": "fast",
        "revision": None,
        "overrides": ["optmem_too_low"],
        "values": {},
        "steps": None,
        "intent": None,
        "shadow": False,
        "priority": 0,
    }
    assert service.only("GET", "/events").query["subject"] == [docs.MIGRATION]
    shares = [line.split()[0] for line in ran.err.splitlines() if "%  iteration" in line]
    assert shares == ["30%"], "it never goes back, and no line is printed twice"
    assert "64 MiB left, dirty rate 100 MiB/s, throughput 900 MiB/s, throttle 20 %" in ran.err
    assert "downtime 250 ms (limit 200 ms)" in ran.err
    assert "total time:   12.3 s" in ran.out
    assert "downtime:     87 ms" in ran.out
    assert "3 GiB" in ran.out
    assert "downtime_limit_ms  200 ms  200 ms  effective" in ran.out


def test_json_is_the_final_record_alone(service: StubService, vmtune: Vmtune) -> None:
    begin(service, docs.migration("completed"))
    service.on("GET", "/events", Reply(chunks=[FOLLOWING]))
    ran = vmtune("migrate", docs.VM, "rack2", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.document == docs.migration("completed")


@pytest.mark.parametrize("state", ["failed", "cancelled", "unknown"])
def test_an_end_without_success_exits_1_with_the_reason(
    service: StubService, vmtune: Vmtune, state: str
) -> None:
    begin(service, docs.migration(state, failure="no route to host"))
    service.on("GET", "/events", Reply(chunks=[FOLLOWING]))
    ran = vmtune("migrate", docs.VM, "rack2")
    assert ran.code == 1
    assert "no route to host" in ran.out


def test_a_restart_of_the_service_does_not_end_the_command(
    service: StubService, vmtune: Vmtune
) -> None:
    begin(
        service,
        docs.migration("active"),
        Reply(cut=True),
        refusal(503, {"message": "starting"}),
        docs.migration("completed"),
    )
    service.on(
        "GET",
        "/events",
        Reply(chunks=[FOLLOWING, event(docs.progress(0.6))]),
        Reply(cut=True),
        Reply(chunks=[FOLLOWING, event(docs.progress(0.1)), PING]),
    )
    ran = vmtune("migrate", docs.VM, "rack2")
    assert ran.code == 0, ran.err
    assert "the service does not answer: trying again" in ran.err


def test_a_service_that_stays_away_leaves_it_unknown_and_says_how_to_ask(
    service: StubService, vmtune: Vmtune
) -> None:
    begin(service, docs.migration("active"))
    service.on("GET", "/events", Reply(cut=True))
    ran = vmtune("migrate", docs.VM, "rack2")
    assert ran.code == 1
    assert f"vmtune migration show {docs.MIGRATION}" in ran.err
    assert ran.err.count("trying again") == 1


def test_a_sign_of_life_has_the_record_read_again(service: StubService, vmtune: Vmtune) -> None:
    begin(service, docs.migration("active"), docs.migration("completed"))
    service.on("GET", "/events", Reply(chunks=[FOLLOWING, PING]))
    assert vmtune("migrate", docs.VM, "rack2", "-q").code == 0


def test_ctrl_c_says_that_it_goes_on_and_how_to_abort(
    service: StubService, vmtune: Vmtune, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(service, docs.migration("active"))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vmtune.client.commands.migration.migrate.watch_to_end", interrupted)
    ran = vmtune("migrate", docs.VM, "rack2")
    assert ran.code == 130
    assert f"vmtune migration abort {docs.MIGRATION}" in ran.err


def test_no_wait_returns_at_once(service: StubService, vmtune: Vmtune) -> None:
    begin(service, docs.migration("active"))
    ran = vmtune("migrate", docs.VM, "rack2", "--no-wait")
    assert ran.code == 0
    assert docs.MIGRATION in ran.out
    assert "/events" not in [asked.path for asked in service.asked]


def test_the_share_never_goes_back_and_is_whole_only_at_the_end() -> None:
    shown = Progression()
    shares = []
    for share in (0.1, 0.5, 0.2, 1.0, 0.0):
        shown.advance(docs.progress(share)["data"])
        shares.append(shown.share)
    assert shares == [0.1, 0.5, 0.5, 0.99, 0.99]
    shown.read(docs.migration("completed"))
    assert shown.share == 1.0


def test_lines_come_at_a_steady_pace_and_at_each_state(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_module, "_LINE_EVERY_S", 2.0)
    monkeypatch.setattr(progress_module, "_PAUSE_SHARE", 0.05)
    now = [0.0]
    lines = Lines(clock=lambda: now[0])
    for tenth in range(50):
        now[0] = tenth / 10
        lines.state(docs.migration("active"))
        lines.progress(docs.progress(tenth / 50)["data"])
    printed = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in printed] == ["active", "0%", "40%", "80%"]
    for second in range(1000, 2000):
        now[0] = float(second)
        lines.progress(docs.progress(0.9)["data"])
    assert len(capsys.readouterr().err.splitlines()) < 20


def test_the_bar_draws_share_stage_and_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "70")
    with Bar() as bar:
        bar.state(docs.migration("active"))
        bar.progress(docs.progress(0.42)["data"])
        bar._live.refresh()
        bar.lost(ConnectionLost("gone"))
        bar._live.refresh()
    drawn = capsys.readouterr().err.replace("\n", " ")
    for part in ("active", "42%", "iteration 2", "downtime 250 ms", "the service does not answer"):
        assert part in drawn


def test_samples_as_csv_have_every_field(service: StubService, vmtune: Vmtune) -> None:
    service.on("GET", f"{RECORD}/samples", page(docs.sample(100), docs.sample(200)))
    header, *rows = vmtune("migration", "samples", docs.MIGRATION, "--csv").out.splitlines()
    assert header.split(",") == list(docs.sample(0))
    assert [row.split(",")[0] for row in rows] == ["100", "200"]
    shown = vmtune("migration", "samples", docs.MIGRATION).out
    assert "100 ms  active          2        1 GiB  64 MiB  100 MiB/s" in shown
