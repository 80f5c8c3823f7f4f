"""Upgrades of databases that hold something."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.benchmarks.campaigns import a_campaign
from tests.support.benchmarks.records import make_record
from tests.support.examples.rounds import REPORT
from vmtune.bench.model.runs.run import RunState
from vmtune.errors import OperationInProgress, SchemaMismatch, SetupError
from vmtune.forecast.held import Happened
from vmtune.forecast.ranges import Range
from vmtune.model.evacuation.evacuation import EvacuationState, EvacuationVmState, LocalDisks
from vmtune.model.migration.intent import Intent
from vmtune.model.migration.record import MigrationState, SamplesKept
from vmtune.model.plan.outcome import ApplicationState
from vmtune.model.plan.tuning_state import TuningState
from vmtune.model.profile import Target
from vmtune.storage import Store, current_revision, upgrade
from vmtune.storage.upgrades import known_revisions, migrations_folder

DUMPS = Path(__file__).parents[2] / "data" / "store"
VM = UUID("00000000-0000-4000-8000-00000000000a")


def load(dump: Path, file: Path) -> str:
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(dump.read_text())
    return f"sqlite:///{file}"


def test_each_released_schema_has_its_dump() -> None:
    assert [dump.stem for dump in sorted(DUMPS.glob("*.sql"))] == known_revisions()


@pytest.mark.parametrize("dump", sorted(DUMPS.glob("*.sql")), ids=lambda dump: dump.stem)
def test_an_older_database_is_upgraded_and_keeps_what_it_holds(dump: Path, tmp_path: Path) -> None:
    url = load(dump, tmp_path / "vmtune.db")
    assert current_revision(url) == dump.stem
    upgrade(url)
    with Store.open(url) as store:
        assert [host.name for host in store.hosts.list().items] == ["a", "b"]
        vm = store.vms.get(VM)
        moved_to = "b" if dump.stem >= "0025" else "a"  # known since where its migration ended
        assert (vm.name, vm.host, vm.labels) == ("guest", moved_to, {"tier": "db", "zone": "1"})
        tuned = store.profiles.get("tuned")
        stated = Intent(500, 60) if dump.stem >= "0021" else None
        assert tuned.current.intent == stated
        if dump.stem >= "0008":
            (emptied,) = store.evacuations.unfinished()
            since_0023 = dump.stem >= "0023"
            assert emptied.intent == stated
            assert emptied.local_disks == (LocalDisks.COPY if since_0023 else LocalDisks.PROFILE)
            leaving = store.evacuations.vms(emptied.id)[0]
            copied = {"copy_storage": True, "copy_disks": "vda"}
            assert leaving.values == (copied if since_0023 else {})
            assert [disk.target for disk in leaving.disks] == (["vda"] if since_0023 else [])
        assert tuned.current.values == {"multifd": True, "multifd_channels": 8}
        assert store.profiles.revision("tuned", 1).values == {"multifd": True}
        assert store.profiles.revision("gone", 1).note == "kept"
        assigned = store.assignments.all()
        assert [a.target for a in assigned] == [Target.SELECTOR, Target.DEFAULT]
        since_0025 = dump.stem >= "0025"
        assert [a.intent for a in assigned] == [None, stated if since_0025 else None]
        standing = store.applications.standing(VM)
        assert standing is not None
        assert standing.journal
        assert standing.outcomes
        assert standing.problems
        (running,) = store.migrations.unfinished()
        with pytest.raises(OperationInProgress, match=str(running.id)):
            store.applications.begin(running.vm, "a", "tuned", 1, {}, False, [])
        (done,) = store.migrations.list(state=MigrationState.COMPLETED).items
        assert done.totals is not None
        assert done.totals.downtime_ms == 40
        samples = store.migrations.samples(done.id)
        assert len(samples) == store.migrations.sample_count(done.id) == 230
        assert samples[-1].transferred_bytes > samples[0].transferred_bytes
        disks = store.migrations.disk_samples(done.id)
        times = [sample.at_ms for sample in disks]
        assert times == ([1000, 1000, 2000, 2000] if dump.stem >= "0024" else [])
        since_0002 = dump.stem >= "0002"
        assert len(tuned.current.steps) == len(done.steps) == len(done.step_records) == since_0002
        assert len(store.migrations.rounds(done.id)) == (430 if since_0002 else 0)
        assert done.reaper == (REPORT if since_0002 else None)
        assert len(store.events.since(0)) == 3
        if dump.stem >= "0003":
            _holds_runs(store)
        assert store.applications.list(state=ApplicationState.FAILED).items
        if dump.stem >= "0004":
            ci, left = store.tokens.list().items
            assert (ci.name, ci.rights.reach.hosts) == ("ci", {"a"})
            assert left.revoked_at is not None
            assert store.tokens.session("0" * 64) is not None
            assert store.audit.check().entries > 20
        if dump.stem >= "0005":
            (campaign,) = store.campaigns.unfinished()
            assert (campaign.state, campaign.reason) == ("paused", "the lab is down")
            assert campaign.campaign == a_campaign()
            (floor,) = store.campaigns.floors(["0123456789abcdef"])
            assert (floor.scenario, floor.floor.effect) == ("quick/busy", 1.03)
        if dump.stem >= "0020":
            (study,) = store.studies.unfinished()
            assert (study.name, study.state, study.reason) == (
                "better",
                "paused",
                "the lab is down",
            )
            assert store.studies.trials(study.id) == ({"number": 1, "runs": []},)
        if dump.stem >= "0022":
            (forecast,) = store.forecasts.of(done.id)
            assert forecast.figures.total_ms == Range(9e3, 2e4, 3e4)
            assert forecast.happened == Happened(True, 23e3, 40.0, 8e9)
        waiting = int(dump.stem >= "0008")  # before there was a queue, nothing waited in it
        assert store.slots.counts() == (waiting, 1 - waiting)
        if waiting:
            _holds_an_evacuation(store)
        if dump.stem >= "0007":
            (service,) = store.services.all()
            assert (service.machine, store.hosts.get("a").owner) == ("here", service.name)
            assert [order.job for order in store.services.orders(service.name)] == ["0123"]
        assert store.hosts.get("b").owner == ""
        tuning = store.tunings.get(VM)
        assert tuning is not None
        assert (tuning.state, tuning.application) == (TuningState.DRIFTED, standing.id)
        assert (tuning.differing, tuning.as_of) == (("multifd",), standing.ended_at)
        assert tuning.since == tuning.as_of
        assert done.samples_kept is SamplesKept.WHOLE
        since_0009 = dump.stem >= "0009"
        scan = store.drift_scans.get("a")
        assert (scan.pending, scan.result is not None) == (False, since_0009)
        integrity = store.audit.check()
        assert (integrity.broken_at, integrity.dropped) == (None, 2 if since_0009 else 0)
        assert store.retention.begin_task("retention", 3600)


def test_states_of_vms_in_evacuations_and_periodic_tasks_are_renamed(tmp_path: Path) -> None:
    url = load(DUMPS / "0009.sql", tmp_path / "vmtune.db")
    with closing(sqlite3.connect(tmp_path / "vmtune.db")) as connection, connection:
        for position, state in enumerate(("ordered", "gone")):
            connection.execute(
                "UPDATE evacuation_vms SET state = ? WHERE position = ?", (state, position)
            )
        connection.execute("UPDATE chores SET begun_at = '2999-01-01 00:00:00.000000'")
    upgrade(url)
    with closing(sqlite3.connect(tmp_path / "vmtune.db")) as connection:
        tasks = list(connection.execute("SELECT name, begun_at FROM periodic_tasks"))
        assert tasks == [("retention", "2999-01-01 00:00:00.000000")]
    with Store.open(url) as store:
        (found,) = store.evacuations.unfinished()
        assert [vm.state for vm in store.evacuations.vms(found.id)] == [
            EvacuationVmState.REQUESTED,
            EvacuationVmState.HANDLED_BY_OTHERS,
        ]
        scan = store.drift_scans.get("a")
        assert scan.result is not None
        assert (scan.result.checked, scan.result.without_profile, scan.result.skipped) == (2, 3, 1)


def test_testbeds_and_the_outputs_of_programs_are_renamed(tmp_path: Path) -> None:
    url = load(DUMPS / "0010.sql", tmp_path / "vmtune.db")
    with closing(sqlite3.connect(tmp_path / "vmtune.db")) as connection, connection:
        ((key, text),) = connection.execute("SELECT number, campaign FROM campaigns LIMIT 1")
        campaign = json.loads(text)
        campaign["arms"] = [{**arm, "place": "lab"} for arm in campaign["arms"]]
        campaign["beside"] = {"reference": "dirty-ring"}
        connection.execute(
            "UPDATE campaigns SET campaign = ? WHERE number = ?", (json.dumps(campaign), key)
        )
        connection.execute("UPDATE runs SET place = 'lab'")
        connection.execute('UPDATE runs SET setup = \'{"name":"x","most_iterations":30}\'')
        said = {"block": {"fio": None, "fio_said": "a", "qemu_said": "b", "foreseen": None}}
        connection.execute(
            'UPDATE profile_revisions SET "values" = \'{"reaper_most_interval_ms":500}\''
        )
        connection.execute("UPDATE run_heads SET head = ?", (json.dumps(said),))
    upgrade(url)
    with closing(sqlite3.connect(tmp_path / "vmtune.db")) as connection:
        for (text,) in connection.execute(
            "SELECT campaign FROM campaigns WHERE number = ?", (key,)
        ):
            found = [(arm["testbed"], "place" in arm) for arm in json.loads(text)["arms"]]
            assert found == [("lab", False)] * len(campaign["arms"])
            assert json.loads(text)["published"] == {"reference": "dirty-ring"}
            assert "beside" not in json.loads(text)
        assert {testbed for (testbed,) in connection.execute("SELECT testbed FROM runs")} == {"lab"}
        for (values,) in connection.execute('SELECT "values" FROM profile_revisions'):
            assert json.loads(values) == {"reaper_max_interval_ms": 500}
        for (setup,) in connection.execute("SELECT setup FROM runs"):
            assert json.loads(setup) == {"name": "x", "max_iterations": 30}
        heads = [json.loads(head) for (head,) in connection.execute("SELECT head FROM run_heads")]
        assert heads
        for head in heads:
            assert head["block"] == {
                "fio": None, "fio_output": "a", "qemu_output": "b", "pool_forecast": None,
            }  # fmt: skip


def _holds_an_evacuation(store: Store) -> None:
    (found,) = store.evacuations.unfinished()
    assert (found.host, found.state, found.max_outgoing) == ("a", EvacuationState.PAUSED, 1)
    first, second = store.evacuations.vms(found.id)
    assert (first.state, first.overrides) == (EvacuationVmState.WAITING, ("optmem_low",))
    assert [finding.code for finding in second.findings] == ["vm_cannot_migrate"]
    assert store.evacuations.promised(["b"]) == {"b": 1 << 30}


def _holds_runs(store: Store) -> None:
    waiting, ran = store.runs.list().items
    assert store.runs.unfinished() == (waiting,)
    assert (ran.state, ran.metrics["total_time_ms"]) == (RunState.COMPLETED, 1234.0)
    assert ran.slot is not None
    assert (ran.slot.arm, ran.slot.block, ran.slot.position) == ("tuned", 1, 2)
    assert store.runs.get(ran.id).environment["cpu"] == {"count": 2}
    assert store.runs.record(ran.id) == make_record(60)


REBUILD = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "9999", "{before}"
def upgrade():
    with op.batch_alter_table("hosts", recreate="always") as batch:
        batch.add_column(sa.Column("note", sa.Text(), nullable=False, server_default=""))
    {then}
"""


@pytest.fixture
def next_revision(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a folder of revisions with one more, that rebuilds a table others refer to."""

    def make(then: str) -> Path:
        folder = tmp_path / "migrations"
        shutil.copytree(migrations_folder(), folder)
        more = REBUILD.format(before=known_revisions()[-1], then=then)
        (folder / "versions" / "9999_rebuild.py").write_text(more)
        return folder

    return make


def test_numbers_are_still_never_used_again_after_a_rebuild(tmp_path: Path) -> None:
    """SQLite does not tell that a table counts on; a revision that makes one anew has to say so."""
    upgrade(url := load(DUMPS / "0001.sql", tmp_path / "vmtune.db"))
    upgrade(fresh := f"sqlite:///{tmp_path}/fresh.db")
    with closing(sqlite3.connect(tmp_path / "vmtune.db")) as connection:
        connection.execute("DELETE FROM sample_chunks")
        connection.execute("DELETE FROM migrations")
        connection.commit()
    with Store.open(url) as store:
        store.migrations.begin(vm=VM, vm_name="guest", source="a", destination="b")
    with closing(sqlite3.connect(tmp_path / "vmtune.db")) as connection:
        assert connection.execute("SELECT number FROM migrations").fetchall() == [(3,)]
    counted = "SELECT name FROM sqlite_master WHERE sql LIKE '%AUTOINCREMENT%' ORDER BY 1"
    with (
        closing(sqlite3.connect(tmp_path / "vmtune.db")) as old,
        closing(sqlite3.connect(fresh.removeprefix("sqlite:///"))) as new,
    ):
        assert old.execute(counted).fetchall() == new.execute(counted).fetchall()


def tables(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        return [line for line in connection.iterdump() if "vmtune_schema_version" not in line]


def test_rebuilding_a_table_keeps_the_rows_that_refer_to_it(
    tmp_path: Path, next_revision: Callable[[str], Path]
) -> None:
    file = tmp_path / "vmtune.db"
    url = load(DUMPS / "0001.sql", file)
    upgrade(url)
    added = upgrade(url, next_revision("pass"))
    assert added == ["9999"]
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT name, note FROM hosts ORDER BY 1").fetchall() == [
            ("a", ""), ("b", "")]  # fmt: skip
        assert connection.execute("SELECT count(*) FROM vms").fetchone() == (2,)
    with pytest.raises(SchemaMismatch, match="9999, which a newer vmtune made"):
        Store.open(url)


@pytest.mark.parametrize(
    ("then", "error", "message"),
    [
        (
            "op.execute(\"DELETE FROM hosts WHERE name = 'a'\")",
            SetupError,
            "rows in vms that refer",
        ),
        ("op.execute('SELECT * FROM nowhere')", SetupError, "no such table: nowhere"),
    ],
)
def test_an_upgrade_that_fails_changes_nothing(
    tmp_path: Path,
    next_revision: Callable[[str], Path],
    then: str,
    error: type[SetupError],
    message: str,
) -> None:
    file = tmp_path / "vmtune.db"
    url = load(DUMPS / "0001.sql", file)
    upgrade(url)
    before = tables(file)
    with pytest.raises(error, match=message):
        upgrade(url, next_revision(then))
    assert tables(file) == before
    Store.open(url).close()


def test_folders_with_odd_names_work(tmp_path: Path, next_revision: Callable[[str], Path]) -> None:
    folder = next_revision("pass").rename(tmp_path / "100% odd: name, here")
    assert upgrade(f"sqlite:///{tmp_path}/odd.db", folder)[-1] == "9999"
