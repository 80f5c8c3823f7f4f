"""Post-copy that is interrupted between two real libvirt hosts: recovered where that was proven,
and refused without harm where it would end the destination's daemon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.drivers.bench_libvirt import MIB, hosts
from tests.support.hosts.libvirt_pair import NAME, Pair, opened_pair, until
from tests.support.hosts.live import why_no_lab
from vmtune import lab
from vmtune.errors import CommandRefused, TooLate
from vmtune.hypervisor.protocol import MigrationHandle
from vmtune.model.host.facts import Postcopy, VmState
from vmtune.model.migration.postcopy import CRASHES, NOT_OFFERED
from vmtune.model.migration.record import QemuStatus
from vmtune.model.tunables.tunable import Value

NO_LAB = why_no_lab()
pytestmark = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")
SLOWLY: dict[str, Value] = {
    "postcopy": True,
    "max_bandwidth_bytes_per_s": MIB,
    "max_postcopy_bandwidth_bytes_per_s": MIB,
}


@pytest.fixture
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[Pair]:
    async with opened_pair(getattr(request, "param", False)) as made:
        yield made


async def paused(pair: Pair) -> MigrationHandle:
    """A migration whose post-copy was broken off on the source."""
    handle = await pair.start(SLOWLY)

    async def active() -> bool:
        return (await pair.source.migration(pair.vm)).status is QemuStatus.ACTIVE

    await until(active)
    with pytest.raises(TooLate, match="not paused"):
        await pair.source.recover_postcopy(pair.vm, pair.destination)
    await pair.source.start_postcopy(pair.vm)

    async def arrived() -> bool:
        vms = {vm.uuid: vm for vm in await pair.destination.list_vms()}
        return pair.vm in vms and vms[pair.vm].postcopy is Postcopy.ACTIVE

    await until(arrived)
    lab.virsh(hosts(pair.settings)[0].uri, "domjobabort", "--postcopy", NAME)

    async def stands() -> bool:
        return (await pair.source.migration(pair.vm)).status is QemuStatus.POSTCOPY_PAUSED

    await until(stands)
    with pytest.raises(CommandRefused):
        await handle.wait()
    return handle


@pytest.mark.parametrize("pair", [True], ids=["libvirt-9"], indirect=True)
async def test_libvirt_recovers_it(pair: Pair) -> None:
    await paused(pair)
    await pair.source.recover_postcopy(pair.vm, pair.destination)

    async with asyncio.timeout(100):
        while True:
            state = await pair.destination.vm_state(pair.vm)
            vms = {vm.uuid: vm for vm in await pair.destination.list_vms()}
            if state is VmState.RUNNING and vms[pair.vm].postcopy is Postcopy.NONE:
                break
            await asyncio.sleep(0.5)
    assert "running (migrated)" in lab.virsh(
        hosts(pair.settings)[1].uri, "domstate", NAME, "--reason")  # fmt: skip


async def test_a_libvirt_that_would_end_is_not_asked(pair: Pair) -> None:
    await paused(pair)
    version = (await pair.destination.host_facts()).libvirt
    assert version is not None
    if version[:2] not in CRASHES:
        pytest.skip(f"libvirt {version} is not known to end")
    with pytest.raises(CommandRefused, match="ends when it is asked") as refused:
        await pair.source.recover_postcopy(pair.vm, pair.destination)
    assert refused.value.problems[0].code == NOT_OFFERED
    assert "by hand" in refused.value.problems[0].remedy
    assert (await pair.source.migration(pair.vm)).status is QemuStatus.POSTCOPY_PAUSED
    vms = {vm.uuid: vm for vm in await pair.destination.list_vms()}
    assert vms[pair.vm].postcopy is Postcopy.FAILED
