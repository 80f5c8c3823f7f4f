"""``vmtune db``: backups, checks, pruning."""

from __future__ import annotations

import json
import socket
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.examples.samples import make_samples
from tests.support.simulated.fakes import VM
from tests.support.stores.databases import empty_database
from tests.unit.client.conftest import Ran, Vmtune
from vmtune.admin.demo import service as demo_service
from vmtune.admin.demo.service import running_service
from vmtune.model.migration.record import MigrationState, SamplesKept
from vmtune.storage import Store

pytestmark = pytest.mark.integration

Db = Callable[..., Ran]
YEARS_AGO = datetime.now(UTC) - timedelta(days=1000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a database in it that holds a migration of years ago."""
    made = tmp_path / "state"
    made.mkdir(mode=0o700)
    empty_database(made / "vmtune.db")
    with Store.open(f"sqlite:///{made}/vmtune.db", now=lambda: YEARS_AGO) as store:
        record = store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="b")
        store.migrations.add_samples(record.id, make_samples(300))
        store.migrations.update(record.id, state=MigrationState.CANCELLED)
    return made


@pytest.fixture
def db(vmtune: Vmtune, folder: Path) -> Db:
    return lambda *arguments: vmtune("db", *arguments, "--state-dir", str(folder))


def test_a_backup_is_made_checked_and_put_back(db: Db, vmtune: Vmtune, tmp_path: Path) -> None:
    file = tmp_path / "b.vmtune-backup"
    made = db("backup", str(file), "--json")
    assert made.code == 0, made.err
    assert (made.document["kind"], made.document["rows"]["migrations"]) == ("sqlite", 1)
    assert made.document["bytes"] == file.stat().st_size
    assert db("backup", str(file)).code == 1
    assert db("check").code == 0
    refused = db("restore", str(file))
    assert refused.code == 1
    assert "--force" in refused.err
    done = db("restore", str(file), "--force", "--reason", "a drill")
    assert done.code == 0, done.err
    assert "the data before the restore" in done.out
    elsewhere = tmp_path / "elsewhere"
    moved = vmtune("db", "restore", str(file), "--state-dir", str(elsewhere), "--json")
    assert moved.code == 0, moved.err
    assert moved.document["undo"] is None
    assert vmtune("db", "check", "--state-dir", str(elsewhere)).code == 0


def test_what_is_wrong_is_told_with_its_remedy(db: Db, folder: Path) -> None:
    (folder / "vmtune.db").chmod(0o644)
    found = db("check")
    assert found.code == 1
    assert "readable_by_others" in found.out
    assert "remedy: chmod 600" in found.out
    (folder / "vmtune.db").chmod(0o600)
    clean = db("check", "--json")
    assert (clean.code, clean.document["clean"], clean.document["findings"]) == (0, True, [])


def test_nothing_to_check_is_an_error(vmtune: Vmtune, tmp_path: Path) -> None:
    ran = vmtune("db", "check", "--state-dir", str(tmp_path))
    assert ran.code == 1
    assert "vmtune db upgrade" in ran.out


def test_pruning_says_first_what_would_go(
    db: Db, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = db("prune", "--dry-run")
    assert said.code == 0, said.err
    assert "300 samples of 1 migrations" in said.out
    assert "kept without limit" in said.out
    with Store.open(f"sqlite:///{folder}/vmtune.db") as store:
        assert store.migrations.list().items[0].samples_kept is SamplesKept.WHOLE
    monkeypatch.setenv("VMTUNE_SAMPLES_DAYS", "0")
    monkeypatch.setenv("VMTUNE_AUDIT_DAYS", "900")
    done = db("prune", "--json")
    assert done.code == 0, done.err
    assert (done.document["thinned"], done.document["dropped"]) == (1, 0)
    assert (done.document["thinned_samples"] > 100, done.document["entries"]) == (True, 1)
    with Store.open(f"sqlite:///{folder}/vmtune.db") as store:
        assert store.migrations.list().items[0].samples_kept is SamplesKept.THINNED
        assert store.audit.check().dropped == 1
    assert json.loads(db("prune", "--json").out) == dict.fromkeys(done.document, 0)


@pytest.fixture
def state() -> Iterator[Path]:
    """A folder whose name is short enough for the service's sockets."""
    with tempfile.TemporaryDirectory(prefix="vmt-") as folder:
        yield Path(folder)


def test_a_running_service_is_backed_up_and_not_replaced(
    vmtune: Vmtune, tmp_path: Path, state: Path
) -> None:
    """A real service: its jobs' database is open, and it is in the middle of its life."""
    file = tmp_path / "b.vmtune-backup"
    with running_service(state) as service:
        service.client.post("/profiles", {"name": "p", "values": {"multifd": True}})
        made = vmtune("db", "backup", str(file), "--state-dir", str(state), "--json")
        assert made.code == 0, made.err
        assert {member["name"] for member in made.document["members"]} == {"records.db", "jobs.db"}
        assert vmtune("db", "check", "--state-dir", str(state)).code == 0
        refused = vmtune("db", "restore", str(file), "--force", "--state-dir", str(state))
        assert refused.code == 1
        assert "another vmtune service uses it" in refused.err
        service.client.post("/profiles", {"name": "q", "values": {}})
    done = vmtune("db", "restore", str(file), "--force", "--state-dir", str(state))
    assert done.code == 0, done.err
    with running_service(state) as service:
        assert [row["name"] for row in service.client.items("/profiles")] == ["p"]


def test_a_port_that_somebody_else_takes_meanwhile_is_left_to_them(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as theirs:
        port = theirs.getsockname()[1]
        monkeypatch.setattr(demo_service, "_PORT", port)
        monkeypatch.setattr(demo_service, "_is_free", lambda _port: True)  # as it was just now
        with running_service(state) as service:
            assert service.client.get("/health")
            assert not service.url.endswith(f":{port}")
