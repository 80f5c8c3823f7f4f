"""What is built, and what happens to interrupted work before anything new begins."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.served.api import running_api
from tests.support.simulated.fakes import VM
from vmtune.api.wiring import deps
from vmtune.config.settings import Settings
from vmtune.errors import SchemaMismatch, SetupError
from vmtune.hypervisor.qmp.driver import QmpDriver
from vmtune.model.host.inventory import Host
from vmtune.model.migration.record import MigrationState, Trigger
from vmtune.model.plan.changes import Change
from vmtune.storage import Store
from vmtune.testing.inline_jobs import InlineEngine


def host(uri: str, peer_uri: str = "") -> Host:
    return Host("h", uri, peer_uri, "", datetime.now(UTC))


async def test_the_uri_picks_the_driver() -> None:
    direct = deps.make_driver(host("qmp+unix:///run/x"))
    assert isinstance(direct, QmpDriver)
    libvirt = deps.make_driver(host("qemu:///system", "qemu+tls://x/system"))
    assert type(libvirt).__name__ == "LibvirtDriver"
    assert (direct.uri, libvirt.uri) == ("qmp+unix:///run/x", "qemu:///system")
    await direct.close()
    await libvirt.close()


async def test_a_database_without_schema_is_refused(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path)
    with pytest.raises(SchemaMismatch, match="vmtune db upgrade"):
        async with deps.open_container(settings, jobs=InlineEngine()):
            pass


@pytest.mark.parametrize("through_a_link", [False, True])
async def test_a_second_service_on_the_records_is_refused(
    tmp_path: Path, through_a_link: bool
) -> None:
    """It has a state folder of its own; it would put back what the first one is applying."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    async with running_api(first) as api:
        url = api.container.settings.database_url
        with Store.open(url) as store:
            begun = store.applications.begin(
                vm=VM,
                host="a",
                profile="p",
                revision=1,
                wanted={"downtime_limit_ms": 700},
                best_effort=False,
                journal=(Change("downtime_limit_ms", 300),),
            )
            if through_a_link:
                (second / "link.db").symlink_to(url.removeprefix("sqlite:///"))
                url = f"sqlite:///{second}/link.db"
            settings = Settings(state_dir=second, database_url=url)
            with pytest.raises(SetupError, match="another vmtune service uses it") as refused:
                async with deps.open_container(settings, jobs=InlineEngine()):
                    pass
            (problem,) = refused.value.problems
            assert (problem.field, problem.code) == ("database", "database_in_use")
            assert problem.remedy
            assert store.applications.get(begun.id).state is begun.state
    async with deps.open_container(settings, jobs=InlineEngine()):
        pass  # the first has ended


async def test_records_and_jobs_in_one_file_are_refused(tmp_path: Path) -> None:
    async with running_api(tmp_path) as api:
        url = api.container.settings.database_url
    settings = Settings(state_dir=tmp_path, database_url=url, jobs_database_url=url)
    with pytest.raises(SetupError, match="one file") as refused:
        async with deps.open_container(settings, jobs=InlineEngine()):
            pass
    assert refused.value.problems[0].field == "jobs_database_url"


async def test_an_interrupted_application_is_put_back_before_serving(tmp_path: Path) -> None:
    async with running_api(tmp_path) as api:
        url = api.container.settings.database_url
    with Store.open(url) as store:
        store.applications.begin(
            vm=VM,
            host="a",
            profile="p",
            revision=1,
            wanted={"downtime_limit_ms": 700},
            best_effort=False,
            journal=(Change("downtime_limit_ms", 300),),
        )
    settings = api.container.settings
    api.source.parameters["downtime-limit"] = 700
    drivers = api.drivers
    async with deps.open_container(
        settings, driver_factory=lambda h: drivers[h.name], jobs=InlineEngine()
    ) as container:
        page = await container.queries.applications(None, None, None, None, 10)
        (record,) = page.items
        assert record.state.value == "failed"
        assert record.problems[0].code == "interrupted"
        assert api.source.parameters["downtime-limit"] == 300


async def test_a_migration_whose_end_nobody_saw_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deps, "_SETTLE_EVERY_S", 0.05)
    async with running_api(tmp_path) as api:
        settings = api.container.settings
        with Store.open(settings.database_url) as store:
            record = store.migrations.begin(
                vm=VM,
                vm_name="vm",
                source="a",
                destination="b",
                trigger=Trigger.VMTUNE,
                profile="",
                revision=0,
                wanted={},
                overrides=(),
            )
            store.migrations.update(record.id, state=MigrationState.UNKNOWN)
        async with asyncio.timeout(60):
            while (await api.get(f"/migrations/{record.id}"))["state"] == "unknown":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert (await api.get(f"/migrations/{record.id}"))["state"] == "failed"
