"""What libvirt leaves set on a destination, and what is left alone."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.examples.migrations import make_migration
from tests.support.simulated.fakes import fake_qemu
from vmtune.engine.arrived_settings import restore_arrived, still_set
from vmtune.model.host.facts import Reading
from vmtune.model.migration.record import Migration, QemuStatus
from vmtune.model.plan.changes import Change
from vmtune.model.tunables.tunable import Value
from vmtune.testing.fake.driver import FakeDriver


def migrated(**wanted: Value) -> Migration:
    return make_migration(profile="p", revision=1, wanted=wanted)


POSTCOPY = migrated(postcopy=True, max_postcopy_bandwidth_bytes_per_s=1 << 24)


def test_what_the_migration_has_set_is_found() -> None:
    seen: dict[str, Value] = {
        "postcopy": True,
        "postcopy_preempt": True,  # libvirt's own doing
        "max_postcopy_bandwidth_bytes_per_s": 1 << 24,
        "multifd": False,
        "multifd_channels": 7,  # not the migration's
    }
    readings = {name: Reading(value) for name, value in seen.items()}
    assert still_set(POSTCOPY, readings) == [
        Change("postcopy", False),
        Change("postcopy_preempt", False),
        Change("max_postcopy_bandwidth_bytes_per_s", 0),
    ]


def test_what_cannot_be_read_is_left_alone() -> None:
    assert still_set(POSTCOPY, {"postcopy": Reading(None, why_unknown="busy")}) == []


@pytest.mark.parametrize("leaves", [False, True])
async def test_it_is_set_unless_the_vm_moves_on(leaves: bool) -> None:
    qemu = fake_qemu()
    qemu.capabilities["postcopy-ram"] = True
    driver = FakeDriver([qemu], "b")
    if leaves:
        qemu.outgoing.status, qemu.outgoing.memory_bytes = QemuStatus.ACTIVE, 1 << 20
        qemu.outgoing.uri = "tcp:c:1"
        qemu.paced = True
        await driver.list_vms()
    await restore_arrived(POSTCOPY, driver)
    assert qemu.capabilities["postcopy-ram"] is leaves
    sent = [command for command, _ in qemu.commands]
    assert ("migrate-set-capabilities" in sent) is not leaves, "it is not tried in vain"
    await driver.close()


async def test_it_is_set_though_the_host_is_silent_for_a_moment() -> None:
    qemu = fake_qemu()
    qemu.capabilities["postcopy-ram"] = True
    driver = FakeDriver([qemu], "b")
    driver.reachable = False
    restoring = asyncio.create_task(restore_arrived(POSTCOPY, driver))
    await asyncio.sleep(0.05)
    driver.reachable = True
    await restoring
    assert not qemu.capabilities["postcopy-ram"]
    await driver.close()
