"""Databases that are backed up and put back: what is written to them, and what is in them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from tests.support.stores.postgres import libpq_url, new_database
from vmtune.model.access.audit import Act
from vmtune.model.access.scopes import Identity, Kind
from vmtune.model.host.inventory import Host
from vmtune.services.backup import check as database_check
from vmtune.services.backup.backups import Databases
from vmtune.storage import Store, upgrade

ACT = Act(Identity(Kind.USER, "0", "root"), "vmtune db", "db_restore", "the disk burnt")
NOW = datetime(2026, 11, 21, 4, 30, tzinfo=UTC)
JOBS_TABLE = "(workflow_uuid TEXT PRIMARY KEY, status TEXT, name TEXT)"


def url(databases: Databases) -> str:
    return databases.records.render_as_string(hide_password=False)


def in_jobs(databases: Databases, statement: str) -> None:
    if databases.kind == "sqlite":
        with closing(sqlite3.connect(str(databases.jobs.database))) as connection:
            connection.execute(statement)
            connection.commit()
        Path(str(databases.jobs.database)).chmod(0o600)  # as the service makes it
        return
    with psycopg.connect(libpq_url(str(url(databases))), autocommit=True) as connection:
        connection.execute(b"CREATE SCHEMA IF NOT EXISTS dbos")
        connection.execute(b"SET search_path = dbos")
        connection.execute(statement.encode())


def job(databases: Databases, id: str, status: str) -> None:
    in_jobs(databases, f"INSERT INTO workflow_status VALUES ('{id}', '{status}', 'vmtune.job')")


def unfinished(databases: Databases) -> frozenset[str]:
    with closing(database_check._Jobs(databases.jobs)) as jobs:
        return jobs.unfinished()


def host_names(databases: Databases) -> list[str]:
    """The names of all hosts, of however many pages."""
    with Store.open(url(databases)) as store:
        page = store.hosts.list()
        names = [host.name for host in page.items]
        while page.next is not None:
            page = store.hosts.list(page.next)
            names += [host.name for host in page.items]
        return names


def add_host(databases: Databases, name: str) -> None:
    with Store.open(url(databases)) as store:
        store.hosts.add(Host(name, f"qemu+ssh://{name}/system", "", "", NOW))


@contextmanager
def on_postgresql(server: str, folder: Path) -> Iterator[Databases]:
    """A database of its own that knows host a."""
    with new_database(server) as there:
        databases = Databases.at(there, there, folder)
        upgrade(there)
        add_host(databases, "a")
        yield databases
