"""Errors: where they go, what they say, and what the command exits with."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.examples import api_documents as docs
from tests.support.served.stub_service import Reply, StubService, page, refusal
from tests.unit.client.conftest import Vmtune
from vmtune import __version__

ROW = {"field": "name", "code": "duplicate_name", "message": "is\n taken", "remedy": "another"}


def test_errors_are_one_line_each_with_the_remedy_below(
    service: StubService, vmtune: Vmtune
) -> None:
    service.on("GET", "/hosts/a", refusal(409, ROW, {**ROW, "field": "", "remedy": ""}))
    ran = vmtune("host", "show", "a")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "error: name: is taken\n  remedy: another\nerror: is taken\n"


def test_with_json_the_problem_document_is_on_stderr(service: StubService, vmtune: Vmtune) -> None:
    service.on("GET", "/hosts/a", refusal(409, ROW))
    ran = vmtune("host", "show", "a", "--json")
    assert (ran.code, ran.out) == (1, "")
    document = json.loads(ran.err)
    assert document["status"] == 409
    assert document["errors"] == [ROW]


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("plan",),
        ("plan", "db1", "--nonsense"),
        ("profile", "show", "fast", "--revision", "zero"),
        ("tunables", "--route", "nowhere"),
        ("profile", "set", "fast"),
        ("profile", "create", "fast", "multifd"),
        ("profile", "check"),
        ("serve", "--listen-port", "99999"),
        ("db", "upgrade", "--database-url", "mysql://x"),
        ("lab", "status", "--address-a", "nowhere"),
        ("lab", "vm", "--memory", "lots"),
    ],
)
def test_bad_usage_exits_1_and_names_field_and_remedy(
    vmtune: Vmtune, arguments: tuple[str, ...]
) -> None:
    ran = vmtune(*arguments)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: ")
    assert "  remedy: " in ran.err
    assert json.loads(vmtune(*arguments, "--json").err)["errors"][0]["message"]


def test_a_fault_of_ours_shows_its_traceback_only_with_debug(
    service: StubService, vmtune: Vmtune
) -> None:
    service.on("GET", "/hosts", {"next": None})  # no items: no such answer is documented
    ran = vmtune("host", "list")
    assert ran.code == 1
    assert ran.err.startswith("error: internal error: KeyError")
    assert "--debug" in ran.err
    assert "Traceback" not in ran.err
    assert "Traceback" in vmtune("host", "list", "--debug").err


def test_ctrl_c_exits_130(
    service: StubService, vmtune: Vmtune, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vmtune.client.connection.http.Client.get", interrupted)
    assert vmtune("health").code == 130


ORDERS = {
    ("migrate", "web1", "rack2", "--silence", "500ms"):
        "measure on, for up to 20 s, and start the migration all the same. "
        "To see it: vmtune migration list --vm web1; "
        "to abort it: vmtune migration abort web1",
    ("migrate", docs.VM, "rack2", "--json"):
        f"start the migration all the same. To see it: vmtune migration list --vm {docs.VM}; "
        "to abort it: vmtune migration abort ID",
    ("evacuate", "rack1", "-o", "json"):
        "start the evacuation all the same. To see it: vmtune evacuation list --host rack1; "
        "to cancel it: vmtune evacuation cancel ID",
    ("apply", "web1"):
        "apply the profile all the same. To see it: vmtune application list --vm web1; "
        "to restore the values: vmtune revert web1",
    ("revert", docs.APPLICATION):
        "restore the values all the same. "
        f"To see it: vmtune application show {docs.APPLICATION}",
}  # fmt: skip
"""What takes effect, and what is said of it."""


@pytest.fixture(params=[pytest.param(words, id=words[0]) for words in ORDERS])
def ordered(request: pytest.FixtureRequest, service: StubService) -> tuple[str, ...]:
    service.on("GET", "/vms", page(docs.vm("web1"), problems=[]))
    service.on("GET", f"/applications/{docs.APPLICATION}", docs.application())
    words: tuple[str, ...] = request.param
    return words


def test_ctrl_c_before_the_answer_says_what_the_service_may_do(
    vmtune: Vmtune, monkeypatch: pytest.MonkeyPatch, ordered: tuple[str, ...]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vmtune.client.connection.http.Client.post", interrupted)
    ran = vmtune(*ordered)
    assert (ran.code, ran.out) == (130, "")
    assert f"The service may {ORDERS[ordered]}\n" in ran.err


@pytest.mark.parametrize(
    ("reply", "unknown"),
    [
        (Reply(cut=True), True),
        (refusal(504, detail="gateway timeout"), True),
        (refusal(422, {"message": "no"}), False),
        (refusal(503, {"message": "busy"}), False),
    ],
)
def test_an_answer_that_did_not_come_is_told_likewise(
    service: StubService, vmtune: Vmtune, ordered: tuple[str, ...], reply: Reply, unknown: bool
) -> None:
    paths = ("/migrations", "/hosts/rack1/evacuations", f"/vms/{docs.VM}/applications",
             f"/applications/{docs.APPLICATION}/revert")  # fmt: skip
    for path in paths:
        service.on("POST", path, reply)
    ran = vmtune(*ordered)
    assert ran.code == 1
    assert (f"The service may {ORDERS[ordered]}\n" in ran.err) is unknown


def test_options_are_taken_before_and_after_the_command(
    service: StubService, vmtune: Vmtune, tmp_path: Path
) -> None:
    service.on("GET", "/hosts", page())
    assert vmtune("--json", "host", "list").document == page()
    assert vmtune("host", "--json", "list").document == page()
    assert vmtune("host", "list", "-q").out == ""
    elsewhere = str(tmp_path / "none.sock")
    assert elsewhere in vmtune("--socket", elsewhere, "host", "list").err
    assert elsewhere in vmtune("host", "list", "--socket", elsewhere).err


def test_the_socket_of_the_settings_is_used_where_none_is_named(
    vmtune: Vmtune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VMTUNE_RUNTIME_DIR", str(tmp_path))
    assert str(tmp_path / "vmtune.sock") in vmtune("health").err


def test_version_and_completion(vmtune: Vmtune) -> None:
    assert vmtune("--version").out == f"vmtune {__version__}\n"
    for shell in ("bash", "zsh", "fish"):
        assert "_VMTUNE_COMPLETE" in vmtune("completion", shell).out


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("vmtune profile check multifd_ch", "multifd_channels="),
        ("vmtune profile check multifd_compression=zs", "multifd_compression=zstd"),
        ("vmtune profile check multifd=", "multifd=off"),
        ("vmtune plan vm --profile f", "fast"),
    ],
)
def test_the_shell_completes_names_and_values(
    service: StubService, words: str, wanted: str
) -> None:
    service.on("GET", "/profiles", page({"name": "fast"}, {"name": "slow"}))
    count = str(len(words.split()) - 1)
    ran = subprocess.run(
        [sys.executable, "-m", "vmtune"],
        env={
            **os.environ,
            "_VMTUNE_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": count,
        },
        check=True,
        capture_output=True,
        text=True,
    )
    values = [line.partition(",")[2] for line in ran.stdout.splitlines()]
    assert wanted in values
    assert "slow" not in values


def test_a_reader_that_goes_away_is_no_error_to_tell_of(service: StubService) -> None:
    service.on("GET", "/hosts", page())
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "vmtune", "host", "list"],
            stdout=writing, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert "Traceback" not in ran.stderr


def test_on_a_terminal_titles_are_bold(service: StubService) -> None:
    service.on("GET", "/hosts", page(docs.host("a", uri="qemu:///system")))
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "vmtune", "host", "list"],
        stdout=theirs, env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )  # fmt: skip
    os.close(theirs)
    drawn = _drawn_on(ours)
    assert running.wait(timeout=60) == 0
    assert "\x1b[1mNAME" in drawn
    assert "qemu:///system" in drawn


def _drawn_on(terminal: int) -> str:
    """All that is written to a terminal until nobody has it open; closes it. One read of it is
    what was there at that moment, possibly a single line."""
    drawn = b""
    with suppress(OSError):  # EIO: the other side is closed, and all was read
        while part := os.read(terminal, 10_000):
            drawn += part
    os.close(terminal)
    return drawn.decode()
