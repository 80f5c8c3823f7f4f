"""Every test here runs on SQLite and on PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from tests.support.stores.databases import empty_database
from tests.support.stores.postgres import libpq_url, new_database, running_postgres, why_no_postgres
from vmtune.model.host.inventory import Host
from vmtune.storage import Store, upgrade
from vmtune.storage.tables.core import Base

NO_POSTGRES = why_no_postgres()


class Clock:
    """Moves on by a second at each look, in a zone that is not UTC's."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 21, 4, 30, 0, 123456, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time


@pytest.fixture(scope="session")
def empty_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("store") / "empty.db"
    empty_database(file)
    return file


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with running_postgres() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_url(postgres_server: str) -> Iterator[str]:
    with new_database(postgres_server) as url:
        upgrade(url)
        yield url


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgresql", marks=pytest.mark.skipif(bool(NO_POSTGRES), reason=NO_POSTGRES)),
    ]
)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with the newest schema and no rows."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("empty_sqlite"), tmp_path / "vmtune.db")
        return f"sqlite:///{tmp_path}/vmtune.db"
    found: str = request.getfixturevalue("postgres_url")
    tables = ", ".join(Base.metadata.tables)
    with psycopg.connect(libpq_url(found), autocommit=True) as connection:
        connection.execute(f"TRUNCATE {tables} RESTART IDENTITY CASCADE".encode())
    return found


@pytest.fixture
def new_url(url: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without a schema, of the same kind as *url*."""
    with ExitStack() as stack:
        if url.startswith("sqlite"):
            yield f"sqlite:///{tmp_path}/new.db"
        else:
            yield stack.enter_context(new_database(request.getfixturevalue("postgres_server")))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(url: str, clock: Clock) -> Iterator[Store]:
    with Store.open(url, now=clock) as opened:
        yield opened


@pytest.fixture
def host(store: Store, clock: Clock) -> Host:
    return store.hosts.add(Host("a", "qemu:///system", "", "", clock()))
