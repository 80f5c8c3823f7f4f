"""Aborts of a migration without libvirt while QEMU switches over: the guest runs on one host."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from tests.support.qemus.qemu import Build, builds, running
from vmtune.errors import CommandRefused, HostUnreachable, NotFound, TooLate
from vmtune.hypervisor.protocol import MigrateOrder
from vmtune.hypervisor.qmp.driver import QmpDriver
from vmtune.lab.guest_build import build_guest
from vmtune.model.host.facts import VmState
from vmtune.model.workload import Workload

pytestmark = pytest.mark.integration
MIB = 1 << 20
SLOW = {"max_bandwidth_bytes_per_s": 24 * MIB, "downtime_limit_ms": 450}
"""So that 8 MiB that are always dirty are sent while the guest stands still, in a third of a
second."""
TRIES = 8


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    program = build_guest(tmp_path_factory.mktemp("guest"))
    workload = Workload(region_bytes=8 * MIB, random_percent=100)
    return ("-kernel", str(program), "-append", workload.command_line())


@contextlib.contextmanager
def pair(build: Build, at: Path, guest: tuple[str, ...]) -> Iterator[UUID]:
    vm = uuid4()
    accel = "kvm" if Path("/dev/kvm").exists() else "tcg"
    machine = (
        *("-machine", "pc", "-accel", accel, "-m", "64", "-nodefaults", "-display", "none"),
        *guest,
    )
    with (
        running(build, at / "a", uuid=vm, machine=machine),
        running(build, at / "b", uuid=vm, machine=(*machine, "-incoming", "defer")),
    ):
        yield vm


async def state(driver: QmpDriver, vm: UUID) -> VmState | None:
    try:
        return await driver.vm_state(vm)
    except (NotFound, HostUnreachable):
        return None


async def switches_over(source: QmpDriver, vm: UUID) -> None:
    """Wait until its guest stands still: QEMU tells nothing between that and the end."""
    for _ in range(20_000):
        if await state(source, vm) is not VmState.RUNNING:
            return
        await asyncio.sleep(0.001)
    pytest.fail("it does not converge")


@pytest.mark.parametrize("build", builds(), ids=lambda build: build.label)
async def test_it_never_runs_on_both_hosts(
    build: Build, tmp_path: Path, guest: tuple[str, ...]
) -> None:
    if build.why_not:
        pytest.skip(build.why_not)
    ends = []
    for number in range(TRIES):
        at = tmp_path / str(number)
        with pair(build, at, guest) as vm:
            source = QmpDriver(f"qmp+unix://{at}/a", migration_address="")
            destination = QmpDriver(f"qmp+unix://{at}/b", migration_address="")
            handle = await source.start_migration(MigrateOrder(vm, SLOW, {}), destination)
            await switches_over(source, vm)
            with contextlib.suppress(TooLate):
                await source.abort_migration(vm)
            try:
                await handle.wait()
                ends.append((await state(source, vm), await state(destination, vm)))
                assert ends[-1][1] is VmState.RUNNING
            except CommandRefused:
                ends.append((await state(source, vm), await state(destination, vm)))
                assert ends[-1] == (VmState.RUNNING, None)
            await source.close()
            await destination.close()
    assert len(ends) == TRIES
    print(build.label, *Counter(ends).items())
