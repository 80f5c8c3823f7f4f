from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.stores.databases import empty_database


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A SQLite database with the newest schema."""
    file = tmp_path / "vmtune.db"
    empty_database(file)
    return file


@pytest.fixture
def url(file: Path) -> str:
    return f"sqlite:///{file}"
