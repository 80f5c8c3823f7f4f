"""What systemd's journal is sent: messages with fields, in its own protocol, over a real socket."""

from __future__ import annotations

import array
import logging
import mmap
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from vmtune.api.serving.journal import field_name, is_stderr_the_journal, priority
from vmtune.api.serving.logs import configure_logs

MIGRATION = "7d1e8a52-0c6f-4f0e-9a3c-4d8b6f1e2a90"


@pytest.fixture(autouse=True)
def _put_back() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[socket.socket]:
    """A socket in the journal's place."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        made.bind(str(tmp_path / "journal"))
        made.settimeout(60)
        yield made


def connect_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have JOURNAL_STREAM name stderr. A test with capfd calls it itself: its file is another one
    than that of its fixtures."""
    status = os.fstat(2)
    monkeypatch.setenv("JOURNAL_STREAM", f"{status.st_dev}:{status.st_ino}")


@pytest.fixture
def under_systemd(monkeypatch: pytest.MonkeyPatch) -> None:
    """stderr is what JOURNAL_STREAM names."""
    connect_stderr(monkeypatch)


def received(journal: socket.socket) -> dict[str, str]:
    """The next entry, read as the protocol has it: a datagram, or a sealed file in place of it."""
    descriptors = array.array("i")
    data, more, _, _ = journal.recvmsg(1 << 20, socket.CMSG_SPACE(4))
    for _, kind, passed in more:
        assert kind == socket.SCM_RIGHTS
        descriptors.frombytes(passed)
    for file in descriptors:
        with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as whole:
            data = bytes(whole)
        with pytest.raises(OSError, match="not permitted"):
            os.write(file, b"x")
        os.close(file)
    fields: dict[str, str] = {}
    while data:
        line, _, data = data.partition(b"\n")
        name, is_short, value = line.partition(b"=")
        if not is_short:
            (length,) = struct.unpack("<Q", data[:8])
            value, data = data[8 : 8 + length], data[8 + length :]
            assert data[:1] == b"\n"
            data = data[1:]
        fields[name.decode()] = value.decode()
    return fields


def test_a_message_has_fields_of_its_own(
    journal: socket.socket,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect_stderr(monkeypatch)
    configure_logs("auto", "info", tmp_path / "journal")
    log = structlog.get_logger("vmtune.services.migrations.records")
    with structlog.contextvars.bound_contextvars(migration_id=MIGRATION, request_id="93928d419eb8"):
        log.warning("migration ended", state="failed", host="rack1", failure="it broke", tries=2)
    found = received(journal)
    assert found["MESSAGE"].startswith("migration ended ")
    assert f"migration_id={MIGRATION}" in found["MESSAGE"]
    assert "\n" not in found["MESSAGE"]
    assert (found["PRIORITY"], found["SYSLOG_IDENTIFIER"]) == ("4", "vmtune")
    assert found["SYSLOG_PID"] == str(os.getpid())
    assert {name: value for name, value in found.items() if name.startswith("VMTUNE_")} == {
        "VMTUNE_EVENT": "migration ended",
        "VMTUNE_LOGGER": "vmtune.services.migrations.records",
        "VMTUNE_MIGRATION_ID": MIGRATION,
        "VMTUNE_REQUEST_ID": "93928d419eb8",
        "VMTUNE_STATE": "failed",
        "VMTUNE_HOST": "rack1",
        "VMTUNE_FAILURE": "it broke",
        "VMTUNE_TRIES": "2",
    }
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("under_systemd")
def test_lines_and_long_ones_arrive_whole(journal: socket.socket, tmp_path: Path) -> None:
    configure_logs("auto", "debug", tmp_path / "journal")
    log = structlog.get_logger("vmtune.x")
    long = "x" * (9 << 20)  # more than any datagram
    try:
        raise RuntimeError("first\nPRIORITY=0")
    except RuntimeError:
        log.exception("it failed", xml="<a>\nMESSAGE=forged\n</a>")
    log.debug("long", text=long)
    failed, longest = received(journal), received(journal)
    assert failed["VMTUNE_XML"] == "<a>\nMESSAGE=forged\n</a>"
    assert failed["PRIORITY"] == "3"
    assert "Traceback" in failed["MESSAGE"]
    assert "RuntimeError: first" in failed["MESSAGE"]
    assert (longest["PRIORITY"], longest["VMTUNE_TEXT"]) == ("7", long)


@pytest.mark.usefixtures("under_systemd")
def test_a_librarys_messages_go_there_too(journal: socket.socket, tmp_path: Path) -> None:
    configure_logs("auto", "info", tmp_path / "journal")
    logging.getLogger("some.library").error("no %s", "route")
    found = received(journal)
    assert (found["MESSAGE"], found["VMTUNE_LOGGER"]) == ("no route", "some.library")


def test_without_the_journals_socket_messages_go_to_stderr(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect_stderr(monkeypatch)
    configure_logs("auto", "info", tmp_path / "nobody")
    structlog.get_logger("vmtune.x").info("ready", port=8470)
    assert capfd.readouterr().err == "ready port=8470\n"


@pytest.mark.parametrize("form", ["console", "json"])
@pytest.mark.usefixtures("under_systemd")
def test_a_form_that_was_chosen_stays(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs(form, "info", tmp_path / "nobody")
    structlog.get_logger("vmtune.x").info("ready")
    assert "ready" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["", "7", "7:x", "0:0", "9999999:1"])
def test_a_stderr_that_is_redirected_is_not_the_journal(given: str) -> None:
    assert not is_stderr_the_journal({"JOURNAL_STREAM": given})
    assert not is_stderr_the_journal({})
    assert not is_stderr_the_journal({"JOURNAL_STREAM": "1:1"}, stderr=10_000)


@pytest.mark.parametrize(
    ("level", "number"),
    [(logging.DEBUG, 7), (logging.INFO, 6), (logging.WARNING, 4), (logging.ERROR, 3),
     (logging.CRITICAL, 2), (0, 7), (35, 4)],
)  # fmt: skip
def test_levels_are_syslogs_priorities(level: int, number: int) -> None:
    assert priority(level) == number


def test_names_are_such_as_the_journal_takes() -> None:
    assert field_name("migration_id") == "VMTUNE_MIGRATION_ID"
    assert field_name("code.filepath") == "VMTUNE_CODE_FILEPATH"
    assert len(field_name("x" * 100)) == 64
