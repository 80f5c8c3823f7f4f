"""A service that is killed while it removes the source's images."""

from __future__ import annotations

import contextlib
import sqlite3
import time

from tests.support.hosts.live import Service

_ENDED = ("completed", "failed", "cancelled")
_LOOK_EVERY_S = 0.002
_WITHIN_S = 120


def kill_while_removing(service: Service) -> bool:
    """Kill the service once the newest record says that an image is about to be removed, and start
    it again; False where that was over before it was seen."""
    database = f"file:{service.folder / 'vmtune.db'}?mode=ro"
    give_up = time.monotonic() + _WITHIN_S
    newest = "SELECT state, disks FROM migrations ORDER BY created_at DESC LIMIT 1"
    with contextlib.closing(sqlite3.connect(database, uri=True)) as records:
        while time.monotonic() < give_up:
            state, disks = records.execute(newest).fetchone()
            if '"removing"' in (disks or ""):
                service.kill()
                (_, left) = records.execute(newest).fetchone()
                service.start()
                return '"removing"' in left
            if state in _ENDED:
                return False
            time.sleep(_LOOK_EVERY_S)
    raise AssertionError("the migration has not ended")
