"""Checks a database: integrity, consistency of its rows, schema version.

Changes nothing, and may run while services use it: a problem is checked again before it is
reported, since rows may just be written.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, inspect, text

from vmtune.errors import Problem
from vmtune.services.backup import postgresql
from vmtune.services.backup.backups import Databases
from vmtune.services.backup.findings import finding
from vmtune.services.backup.sqlite import sound
from vmtune.storage import Store, current_revision, head_revision
from vmtune.storage import contents as whole
from vmtune.storage.database import make_engine
from vmtune.storage.failures import masked, translated
from vmtune.storage.upgrades import RESTORING, known_revisions

_WAIT_S = 10.0
_SETTLES_S = 3.0
_MAX_OF_A_KIND = 10
_UNFINISHED = "('PENDING', 'ENQUEUED', 'DELAYED')"


@dataclass(frozen=True, slots=True)
class Checked:
    """The result.
    :param rows: number in each table; empty where the schema is another one.
    :param entries: of the audit log, with matching hashes.
    :param jobs: number of unfinished ones.
    """

    database: str
    revision: str | None
    rows: Mapping[str, int]
    entries: int
    jobs: int
    findings: tuple[Problem, ...]


def check(databases: Databases) -> Checked:
    """Look everything over.

    :raise SetupError: a database cannot be opened at all.
    """
    shown = masked(databases.records)
    findings = [*_files(databases)]
    if any(found.code == "damaged" for found in findings):
        return Checked(shown, None, {}, 0, 0, tuple(findings))
    revision = current_revision(databases.records.render_as_string(hide_password=False))
    wrong = _schema(revision)
    if wrong is not None:
        return Checked(shown, revision, {}, 0, 0, (*findings, wrong))
    with ExitStack() as stack:
        engine = stack.enter_context(postgresql.opened(databases.records))
        store = stack.enter_context(
            Store.open(databases.records.render_as_string(hide_password=False))
        )
        jobs = _Jobs(databases.jobs)
        stack.callback(jobs.close)
        findings += _twice(lambda: [*_rules(store), *_unmatched(store, jobs)])
        integrity = store.audit.check()
        if integrity.broken_at is not None:
            said = f"entry {integrity.broken_at} of the audit log does not follow from the one"
            findings.append(finding("audit_broken", f"{said} before it"))
        with engine.connect() as connection:
            rows = whole.rows(connection)
        unfinished = len(jobs.unfinished())
    return Checked(shown, revision, rows, integrity.entries, unfinished, tuple(findings))


def _schema(revision: str | None) -> Problem | None:
    if revision is None:
        return finding("no_schema", "the database has no schema")
    if revision == RESTORING:
        return finding("half_restored", "a restore did not complete")
    if revision not in known_revisions():
        return finding("schema_new", f"it has schema {revision}, which a newer vmtune made")
    if revision != head_revision():
        return finding("schema_old", f"it has schema {revision}, and this vmtune {head_revision()}")
    return None


def _files(databases: Databases) -> list[Problem]:
    """Problems of SQLite's files."""
    findings: list[Problem] = []
    for url in (databases.records, databases.jobs):
        file = Path(str(url.database))
        if url.get_backend_name() != "sqlite" or not file.exists():
            continue
        with translated(url):
            mode = stat.S_IMODE(file.stat().st_mode)
        if mode & 0o077:
            findings.append(
                finding("readable_by_others", f"{file} has the mode {mode:o}", str(file))
            )
        wrong = sound(file)
        if wrong:
            code = "dangling_row" if wrong.startswith("a row of") else "damaged"
            findings.append(finding(code, f"{file}: {wrong}", str(file)))
    return findings


def _twice(look: Callable[[], Sequence[Problem]]) -> list[Problem]:
    """What *look* finds, and finds again a little later: services are at work."""
    first = look()
    if not first:
        return []
    time.sleep(_SETTLES_S)
    return [found for found in look() if found in first]


def _rules(store: Store) -> list[Problem]:
    return [finding(code, said) for code, said in store.broken(_MAX_OF_A_KIND)]


def _unmatched(store: Store, jobs: _Jobs) -> list[Problem]:
    """Records whose job is missing, and jobs whose record is missing."""
    idle, strange = store.unmatched(jobs.unfinished())
    return [
        finding("record_without_job", f"{kind} {id} is running, and has no job")
        for kind, id in idle[:_MAX_OF_A_KIND]
    ] + [
        finding("job_without_record", f"job {id} is running, and has no record")
        for id in strange[:_MAX_OF_A_KIND]
    ]


class _Jobs:
    """The jobs' database, only read."""

    def __init__(self, url: URL) -> None:
        self._url = url
        sqlite = url.get_backend_name() == "sqlite"
        self._schema = None if sqlite else postgresql.JOBS_SCHEMA
        gone = sqlite and not Path(str(url.database)).exists()
        self._engine = None if gone else make_engine(url, wait_s=_WAIT_S)

    def unfinished(self) -> frozenset[str]:
        """The ids of the jobs that are under way; each is a record's."""
        if self._engine is None:
            return frozenset()
        with translated(self._url), self._engine.connect() as connection:
            if not inspect(connection).has_table("workflow_status", schema=self._schema):
                return frozenset()
            table = f"{self._schema}.workflow_status" if self._schema else "workflow_status"
            found = connection.scalars(
                text(
                    f"SELECT workflow_uuid FROM {table} WHERE name = 'vmtune.job' "  # noqa: S608 - constants
                    f"AND status IN {_UNFINISHED}"
                )
            )
            # A job that was taken over is its id, ~ and a number (vmtune.jobs.takeover).
            return frozenset(str(id).partition("~")[0] for id in found)

    def close(self) -> None:
        """Close the connection."""
        if self._engine is not None:
            self._engine.dispose()
