"""systemd's journal, in its own protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL): each message with
fields by which it can be found."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import socket
import struct
import sys
from collections.abc import Mapping
from pathlib import Path

import structlog

SOCKET = Path("/run/systemd/journal/socket")
IDENTIFIER = "vmtune"
_OWN = "VMTUNE_"
_NOT_OF_A_NAME = re.compile(r"[^A-Z0-9_]")
_MAX_NAME = 64
_SEND_BUFFER_BYTES = 8 << 20
# syslog(3), by the logging level from which they count.
_PRIORITIES = ((50, 2), (40, 3), (30, 4), (20, 6), (0, 7))
# <linux/fcntl.h>: the journal takes a file only if nobody can change it any more.
_F_ADD_SEALS, _ALL_SEALS = 1033, 0xF

Fields = Mapping[str, str]


def is_stderr_the_journal(environ: Mapping[str, str], stderr: int = 2) -> bool:
    """Whether systemd has connected stderr with the journal (systemd.exec(5), JOURNAL_STREAM).

    :param stderr: its file descriptor.
    """
    device, _, inode = environ.get("JOURNAL_STREAM", "").partition(":")
    if not (device.isdecimal() and inode.isdecimal()):
        return False
    try:
        status = os.fstat(stderr)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == (int(device), int(inode))


def priority(level: int) -> int:
    """syslog's priority of a level of :mod:`logging`: 7 for debug to 2 for critical."""
    return next(number for least, number in _PRIORITIES if level >= least)


def field_name(key: str) -> str:
    """The journal's field for *key* of an event: ``VMTUNE_MIGRATION_ID`` for ``migration_id``."""
    return (_OWN + _NOT_OF_A_NAME.sub("_", key.upper()))[:_MAX_NAME]


def serialize(fields: Fields) -> bytes:
    """One entry: ``NAME=value`` in a line, or the name, a length (64 bits, little-endian) and the
    value where that has lines itself."""
    entry = bytearray()
    for name, value in fields.items():
        given = value.encode("utf-8", "replace")
        if b"\n" in given:
            entry += name.encode() + b"\n" + struct.pack("<Q", len(given)) + given + b"\n"
        else:
            entry += name.encode() + b"=" + given + b"\n"
    return bytes(entry)


class FieldsRenderer:
    """The last processor: an event as a JSON object of the journal's fields.

    MESSAGE is what people read: the event and its details. Each detail is a field, too.
    """

    def __init__(self) -> None:
        self._text = structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback, pad_event_to=0
        )

    def __call__(
        self, logger: structlog.typing.WrappedLogger, method: str, event: structlog.typing.EventDict
    ) -> str:
        """Render it."""
        details = {k: v for k, v in event.items() if k not in ("timestamp", "level", "logger")}
        fields = {field_name(k): _text(v) for k, v in details.items() if k != "exc_info"}
        fields[field_name("logger")] = str(event.get("logger", ""))
        return json.dumps({"MESSAGE": self._text(logger, method, dict(details)), **fields})


class JournalHandler(logging.Handler):
    """Sends what a :class:`FieldsRenderer` made to the journal; to stderr where that takes none.

    :param path: the journal's socket.
    """

    def __init__(self, path: Path = SOCKET) -> None:
        super().__init__()
        self._path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record."""
        try:
            fields: dict[str, str] = json.loads(self.format(record))
            known = {
                "PRIORITY": str(priority(record.levelno)),
                "SYSLOG_IDENTIFIER": IDENTIFIER,
                "SYSLOG_PID": str(os.getpid()),
            }
            try:
                self._send(serialize({**fields, **known}))
            except OSError:
                sys.stderr.write(fields["MESSAGE"] + "\n")
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
        super().close()

    def _send(self, entry: bytes) -> None:
        try:
            self._socket.sendto(entry, self._path)
        except OSError as error:
            if isinstance(error, (FileNotFoundError, ConnectionError)):
                raise
            self._send_as_file(entry)  # too long for a datagram

    def _send_as_file(self, entry: bytes) -> None:
        file = os.memfd_create("vmtune-journal", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        try:
            os.write(file, entry)
            fcntl.fcntl(file, _F_ADD_SEALS, _ALL_SEALS)
            passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", file))]
            self._socket.sendmsg([], passed, 0, self._path)
        finally:
            os.close(file)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
