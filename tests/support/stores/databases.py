"""SQLite databases with the newest schema and no rows."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from vmtune.storage import upgrade


def empty_database(file: Path) -> str:
    """Write one to *file*, unless one is there already; its URL."""
    if not file.exists():
        file.touch(mode=0o600)
        file.write_bytes(_empty())
    return f"sqlite:///{file}"


@functools.cache
def _empty() -> bytes:
    """Making one takes longer than most tests."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "empty.db")
        upgrade(f"sqlite:///{path}")
        return path.read_bytes()
