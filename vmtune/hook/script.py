"""The hook's script: its settings, and whether the rest was edited.

The last line has the digest of all lines but itself and the settings. So a script of any version
differs from one that an operator has changed, and its settings may be edited.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vmtune.errors import InvalidInput

TEMPLATE = Path(__file__).with_name("qemu.sh")
_SETTING = re.compile(r"(socket|url|token_file|ca_file|limit_ms|on_failure|came_with)=(.*)")
_DIGEST = re.compile(r"# vmtune-hook sha256=([0-9a-f]{64})")
_PATH = re.compile(r"/[A-Za-z0-9/._@:+,=-]+")
_URL = re.compile(r"https://(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?/?")
_MAX_PATH_BYTES = 107  # what a unix socket's address holds, without the ending zero
LEAST_MS, MAX_MS = 100, 30_000
FOLDERS = ("hooks", "qemu.d")
"""Where libvirt looks for hooks; they go with the hook if they came with it."""
CONTINUE, REFUSE = "continue", "refuse"


@dataclass(frozen=True, slots=True)
class HookSettings:
    """How the hook behaves.

    :param socket: where the service listens, on the same host.
    :param url: of a service on another host, which is asked instead.
    :param token_file: has the token for it.
    :param ca_file: certificates of the authorities that alone are trusted; empty for the system's.
    :param limit_ms: how long a migration may wait for the service.
    :param fail_closed: where the service cannot be asked, no VM is let in.
    """

    socket: str = "/run/vmtune/vmtune.sock"
    limit_ms: int = 1000
    fail_closed: bool = False
    url: str = ""
    token_file: str = ""
    ca_file: str = ""

    def __post_init__(self) -> None:
        """:raise InvalidInput: the script would not work with one of them."""
        too_long = len(self.socket.encode()) > _MAX_PATH_BYTES
        if too_long or not _PATH.fullmatch(self.socket):
            raise InvalidInput(
                f"{self.socket[:120]!r} is not a socket path that the hook can use",
                field="socket",
                remedy=f"use a path that starts with / and has at most {_MAX_PATH_BYTES} "
                "letters, digits and . _ - + , : @ =",
            )
        if self.url:
            self._check_url()
        if not LEAST_MS <= self.limit_ms <= MAX_MS:
            raise InvalidInput(
                f"a limit of {self.limit_ms / 1000:g} s is not between {LEAST_MS / 1000:g} and "
                f"{MAX_MS / 1000:g} s",
                field="timeout",
                remedy="libvirt waits for the hook for this time: one second is enough",
            )

    def _check_url(self) -> None:
        if not _URL.fullmatch(self.url):
            raise InvalidInput(
                f"{self.url[:120]!r} is not the URL of a service",
                field="service_url",
                remedy="write https://HOST or https://HOST:PORT; a token is sent by HTTPS alone",
            )
        for field, path in (("token_file", self.token_file), ("ca_file", self.ca_file)):
            if not _PATH.fullmatch(path) and (path or field == "token_file"):
                raise InvalidInput(
                    f"{path[:120]!r} is not a file that the hook can use",
                    field=field,
                    remedy="use a path that starts with / and has letters, digits and . _ - + , : "
                    "@ = alone",
                )


@dataclass(frozen=True, slots=True)
class Script:
    """A script of ours, as it is shipped or installed.

    :param edited: something other than its settings was changed.
    """

    text: str
    edited: bool = False

    @classmethod
    def shipped(cls) -> Script:
        """The one of this version."""
        return cls(TEMPLATE.read_text())

    @classmethod
    def read(cls, text: str) -> Script | None:
        """*text* as a script of ours, of any version; None if it is none."""
        lines = text.splitlines()
        marks = [match[1] for line in lines if (match := _DIGEST.fullmatch(line))]
        if not marks:
            return None
        return cls(text, edited=marks != [digest(text)])

    @property
    def came_with(self) -> tuple[str, ...]:
        """Which folders were made for it: of :data:`FOLDERS`."""
        lines = self.text.splitlines()
        found = [m[2] for line in lines if (m := _SETTING.fullmatch(line)) and m[1] == "came_with"]
        words = " ".join(found).strip("'").split()
        return tuple(word for word in FOLDERS if word in words)

    def with_settings(self, settings: HookSettings, came_with: Sequence[str] = ()) -> Script:
        """The same script, set to *settings*."""
        values = {
            "socket": settings.socket,
            "url": settings.url.rstrip("/"),
            "token_file": settings.token_file,
            "ca_file": settings.ca_file,
            "limit_ms": str(settings.limit_ms),
            "on_failure": REFUSE if settings.fail_closed else CONTINUE,
            "came_with": " ".join(came_with),
        }

        def setting(line: str) -> str:
            match = _SETTING.fullmatch(line)
            if match is None:
                return line
            value = values[match[1]]
            return f"{match[1]}={shlex.quote(value) if value else ''}"

        lines = [setting(line) for line in self.text.splitlines()]
        return Script("\n".join(lines) + "\n", self.edited)


def digest(text: str) -> str:
    """Of all lines but the settings' values and the one that has the digest."""
    lines = [
        match[1] if (match := _SETTING.fullmatch(line)) else line
        for line in text.splitlines()
        if not _DIGEST.fullmatch(line)
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
