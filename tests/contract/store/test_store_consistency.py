"""Looking a database over: each rule finds what it is for, and nothing else."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from sqlalchemy import create_engine, text

from tests.data.store.make_dump import OTHER, VM, fill
from vmtune.services.backup.findings import REMEDIES
from vmtune.storage import Store
from vmtune.storage.consistency import RULES

NOBODY = "00000000-0000-4000-8000-00000000ffff"
BREAKS = {
    "vm_held_for_nothing": "UPDATE migrations SET state = 'failed' WHERE state = 'queued'",
    "vm_not_held": "DELETE FROM operations",
    "slot_for_nothing": "UPDATE slots SET number = 999",
    "no_slot": "DELETE FROM slots",
    "unknown_migration": "UPDATE evacuation_vms SET migration = {nobody}",
    "unknown_campaign": "DELETE FROM campaigns",
    "unknown_study": "UPDATE runs SET study = {nobody}",
    "unknown_application": "UPDATE tunings SET application = {nobody}",
    "no_revision": "UPDATE profiles SET current = 99 WHERE name = 'tuned'",
    "unknown_service": "DELETE FROM services",
    "samples_not_dropped": "UPDATE migrations SET samples_kept = 'dropped'",
    "entries_not_dropped": "INSERT INTO audit_cuts SELECT number, hash, at FROM audit "
    "WHERE number = 5",
}


@pytest.fixture
def filled(store: Store) -> Store:
    """With something in each table, as the services would leave it."""
    fill(store)
    return store


def test_what_services_write_is_sound(filled: Store) -> None:
    assert filled.broken(10) == []


def test_every_rule_is_tried_and_has_its_remedy() -> None:
    assert {rule.code for rule in RULES} == set(BREAKS) <= set(REMEDIES)


@pytest.mark.parametrize("code", BREAKS)
def test_each_rule_finds_what_it_is_for(filled: Store, url: str, code: str) -> None:
    # SQLite keeps a UUID without its dashes.
    nobody = NOBODY.replace("-", "") if url.startswith("sqlite") else NOBODY
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(BREAKS[code].format(nobody=f"'{nobody}'")))
    engine.dispose()
    found = filled.broken(10)
    assert code in {each for each, _ in found}
    assert all("{" not in said and "None" not in said for _, said in found)


def test_records_and_jobs_are_held_against_each_other(filled: Store) -> None:
    (migration,) = filled.migrations.unfinished()
    (run,) = filled.runs.unfinished()
    unfinished = frozenset({str(migration.id), str(run.id)})
    assert filled.unmatched(unfinished) == ([], []), "what is paused waits for nobody"
    idle, strange = filled.unmatched(frozenset({str(run.id), str(OTHER), "no uuid"}))
    assert (idle, strange) == ([("migration", migration.id)], ["no uuid"])
    unknown = str(uuid4())
    assert filled.unmatched(unfinished | {unknown}) == ([], [unknown])
    filled.services.order(str(migration.id), "migration", "b", "elsewhere")
    assert filled.unmatched(frozenset({str(run.id)}))[0] == [("migration", migration.id)]
    assert isinstance(VM, UUID)
