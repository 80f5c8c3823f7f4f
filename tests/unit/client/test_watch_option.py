"""``--watch``: shown again and again, through losses, until the end or Ctrl-C; and progress now."""

from __future__ import annotations

import sys

import click
import pytest

from tests.support.examples import api_documents as docs
from tests.support.served.stub_service import Reply, StubService, event, page, refusal
from tests.unit.client.conftest import Vmtune
from vmtune.client.cli import COMMANDS, SECTIONS

ID = "5f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e10"


def test_it_prints_what_differs_and_ends_with_the_migration(
    service: StubService, vmtune: Vmtune
) -> None:
    path = f"/migrations/{ID}"
    running = docs.migration("queued", id=ID)
    ended = docs.migration("completed", id=ID)
    service.on("GET", path, running, running, Reply(cut=True), ended)
    ran = vmtune("migration", "show", ID, "--watch", "--every", "0.2")
    assert ran.code == 0
    assert ran.out.count("migration:") == 2  # the second round was as the first
    assert "trying again" in ran.err
    assert sum(asked.path == path for asked in service.asked) == 4


def test_a_restart_of_the_service_does_not_end_it(service: StubService, vmtune: Vmtune) -> None:
    path = f"/migrations/{ID}"
    starting = refusal(503, {"code": "starting"}, detail="the service is starting")
    running, ended = docs.migration("queued", id=ID), docs.migration("completed", id=ID)
    service.on("GET", path, running, starting, ended)
    ran = vmtune("migration", "show", ID, "--watch", "--every", "0.2")
    assert ran.code == 0
    assert "the service is starting: trying again" in ran.err
    assert "completed" in ran.out


def test_a_refusal_ends_it(service: StubService, vmtune: Vmtune) -> None:
    service.on("GET", "/hosts", refusal(403, {"message": "no"}))
    assert vmtune("host", "list", "--watch").code == 1


def test_ctrl_c_ends_it_and_a_terminal_is_drawn_over(
    service: StubService, vmtune: Vmtune, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) > 1:
            raise KeyboardInterrupt

    monkeypatch.setattr("vmtune.client.repeat.repeat.__defaults__", (wait,))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("LINES", "6")
    monkeypatch.setenv("COLUMNS", "80")
    service.on("GET", "/hosts", page(*(docs.host(f"rack{n}") for n in range(20))))
    ran = vmtune("host", "list", "--watch")
    assert ran.code == 130
    assert waits == [2.0, 2.0]
    text = click.unstyle(ran.out)
    assert text.count("Ctrl-C ends") == 2
    assert text.count("rack0 ") == 2
    assert "rack19" not in text
    assert "more lines" in text


def test_a_running_migration_has_a_bar(service: StubService, vmtune: Vmtune) -> None:
    record = docs.migration("active", id=ID, ended=False, queued=False)
    service.on("GET", f"/migrations/{ID}", record)
    service.on("GET", "/events", Reply(chunks=[b": hello\n\n", event(docs.progress(0.5))]))
    out = vmtune("migration", "show", ID).out
    assert "━━━━━━━━━━━━┄┄┄┄┄┄┄┄┄┄┄┄  50%" in out
    assert "dirty rate" in out
    service.on("GET", "/events", refusal(503, {"message": "busy"}))
    assert "┄" not in vmtune("migration", "show", ID).out
    assert vmtune("migration", "show", ID, "--json").document["id"] == ID


def test_help_has_each_command_once_the_common_ones_first(vmtune: Vmtune) -> None:
    grouped = [name for names in SECTIONS.values() for name in names]
    assert sorted(grouped) == sorted(COMMANDS)
    out = vmtune("--help").out
    assert out.index("Common commands:") < out.index("  migrate ") < out.index("Benchmarks:")
    assert "\nCommands:\n" not in out


def test_a_value_that_is_rounded_is_told(service: StubService, vmtune: Vmtune) -> None:
    service.on("POST", "/profiles/check", {"texts": {}, "step_texts": []})
    ran = vmtune("profile", "check", "max_bandwidth_bytes_per_s=10Gbit/s", "multifd=on")
    note = "max_bandwidth_bytes_per_s: 10Gbit/s is rounded to 1,192 MiB/s"
    assert ran.err == f"note: {note}, as libvirt takes whole MiB/s\n"
    assert vmtune("profile", "check", "max_bandwidth_bytes_per_s=10Gbit/s", "--json").err == ""
    assert vmtune("profile", "check", "max_bandwidth_bytes_per_s=1GiB/s").err == ""
