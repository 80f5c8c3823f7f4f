"""No connection stays open when its store is closed."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from sqlalchemy import text

from vmtune.storage.database import Database
from vmtune.storage.failures import parse_url


def open_files(folder: Path) -> list[str]:
    """The files of a folder that this process has open."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            continue
    return [name for name in found if name.startswith(str(folder))]


def test_a_thread_that_outlives_the_store_leaves_no_connection(tmp_path: Path) -> None:
    """One whose caller was cancelled: asyncio does not wait for it."""
    database = Database(parse_url(f"sqlite:///{tmp_path}/vmtune.db"))
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        with database.read() as session:
            session.execute(text("SELECT 1"))
            begun.set()
            assert go_on.wait(20)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert begun.wait(20)
    database.close()
    go_on.set()
    for thread in threads:
        thread.join()
    # By the pool, not by Python's garbage collection: the database is still referred to.
    database.close()
    assert open_files(tmp_path) == []
