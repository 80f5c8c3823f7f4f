"""A service at a real socket, and what strangers and small tokens hold of it."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.served.api import Api
from tests.support.served.asking import Door
from tests.support.served.served_api import served_api


@dataclass
class Victim:
    """What is attacked.

    :param tokens: one with each scope alone.
    """

    tcp: Door
    unix: Door
    api: Api
    folder: Path
    tokens: dict[str, str] = field(default_factory=dict)

    def forgive(self) -> None:
        """Forget earlier attacks, which slow later ones down."""
        access = self.api.container.access
        access.tokens._by_address._records.clear()
        access.tokens._by_token._records.clear()
        access.audit._refused.clear()

    def stop_the_clock(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of the waits after failures: however slow the machine is, all attacks come at once."""
        now = time.monotonic()
        tokens = self.api.container.access.tokens
        for throttle in (tokens._by_address, tokens._by_token):
            monkeypatch.setattr(throttle, "_clock", lambda: now)

    def audited(self, count: int = 200) -> list[dict[str, Any]]:  # any JSON
        """The newest entries of the audit log."""
        items: list[dict[str, Any]] = self.unix.ask("GET", f"/audit?limit={count}").document[
            "items"
        ]
        return items


SCOPES = ("read", "profile", "apply", "migrate", "bench", "host", "metrics", "hook", "admin")


def free_port() -> int:
    """A TCP port that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    folder = tmp_path_factory.mktemp("victim")
    port = free_port()
    with served_api(folder, folder / "s", {"listen_port": port}) as api:
        it = Victim(Door(port), Door(folder / "s"), api, folder)
        for scope in SCOPES:
            made = it.unix.ask("POST", "/tokens", {"name": f"only-{scope}", "scopes": [scope]})
            it.tokens[scope] = made.document["token"]
        yield it
        it.forgive()
