"""Boots of real QEMUs, and the one that ends before its time."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.qemus.qemu import CHECKOUT, Build, builds, installed
from vmtune.bench.boot import run as boot_run
from vmtune.bench.boot.firmware import find_firmware
from vmtune.bench.boot.linux import linux_kernel
from vmtune.bench.boot.order import BootOrder, BootPhase, BootResult
from vmtune.bench.boot.reduce import reduce_boot
from vmtune.bench.boot.run import run_boot
from vmtune.bench.migration.order import DirectTestbed, RunProgress
from vmtune.bench.model.metrics.boot import BOOT_HEADLINE, BOOT_LIMIT
from vmtune.bench.model.runs.boot_record import BootEnd, BootMarkName
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.boot import BootScenario
from vmtune.bench.model.scenario.matrix_cells import Accelerator, BootCell, BootGuest, Firmware
from vmtune.bench.run_folder import processes_of
from vmtune.errors import SetupError
from vmtune.lab.domain_xml import kvm_usable

CACHE = CHECKOUT / ".cache/boot"
"""Where the kernel stays between two runs of the suite."""
PROJECT = BootCell(BootGuest.PROJECT, Firmware.SEABIOS, Accelerator.TCG, 1, 64 << 20)
LINUX = replace(PROJECT, guest=BootGuest.LINUX, memory_bytes=256 << 20)
UNDER_WAY = set(BootPhase) - {BootPhase.PREPARING, BootPhase.CLEANING_UP}
TIMES = ("boot_to_guest_ms", "boot_to_kernel_ms", "boot_to_userspace_ms")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where runs have their folders: with nothing in it once they are over."""
    with tempfile.TemporaryDirectory(prefix="vt-") as name:
        base = Path(name) / "runs"
        yield base
        assert not base.exists()
        assert not processes_of(base)


@pytest.fixture(scope="module")
def linux() -> None:
    """The kernel is there, or can be fetched."""
    try:
        asyncio.run(linux_kernel(CACHE))
    except SetupError as error:
        pytest.skip(str(error))


def boot(
    folder: Path,
    cell: BootCell = PROJECT,
    max_seconds: int = 100,
    build: Build | None = None,
    told: Callable[[RunProgress], None] = lambda _: None,
) -> BootResult:
    build = build or installed()
    if build.why_not:
        pytest.skip(build.why_not)
    testbed = DirectTestbed(Path(build.program), folder=folder)
    scenario = BootScenario(cell, max_seconds=max_seconds)
    return asyncio.run(run_boot(BootOrder(scenario, testbed=testbed, cache=CACHE), told))


def test_a_machine_without_acpi_and_with_devices_behind_a_bridge(folder: Path) -> None:
    result = boot(folder, replace(PROJECT, acpi=False, bridges=1, devices=33))
    assert result.state is RunState.COMPLETED, result.failure
    assert result.record.mark(BootMarkName.USER_SPACE) is not None


@pytest.mark.parametrize("build", builds(), ids=lambda build: build.label)
def test_the_projects_guest(folder: Path, build: Build) -> None:
    phases: list[RunProgress] = []
    result = boot(folder, replace(PROJECT, vcpus=2), build=build, told=phases.append)
    assert (result.state, result.failure, result.kvm) == (RunState.COMPLETED, "", False)
    record = result.record
    assert [mark.name for mark in record.marks] == list(BootMarkName)
    assert record.end is BootEnd.USER_SPACE
    assert record.region_updates is None
    assert build.label.removeprefix("qemu-") in record.qemu
    assert record.kernel.startswith("vmtune's guest ")
    assert record.firmware.startswith("SeaBIOS")
    assert record.host_kernel == os.uname().release
    assert "workers=2" in record.serial_tail
    found = reduce_boot(record)
    assert [found[name] for name in TIMES] == sorted(found[name] for name in TIMES)
    assert found["boot_cpu_ms"] > 0
    assert (found["booted"], found[BOOT_LIMIT]) == (1, found["boot_to_userspace_ms"])
    shares = [each.share for each in phases]
    assert shares == sorted(shares)
    assert (phases[0].phase, phases[-1].phase) == (BootPhase.PREPARING, BootPhase.CLEANING_UP)


def test_updates_of_memory_regions_are_counted_with_kvm(folder: Path) -> None:
    if not kvm_usable():
        pytest.skip("no usable /dev/kvm")
    # Firmware takes a second by most KVMs, and twenty by some that are themselves within a VM.
    result = boot(folder, replace(PROJECT, accelerator=Accelerator.KVM), max_seconds=5)
    assert result.kvm
    assert result.state in (RunState.COMPLETED, RunState.NOT_CONVERGED), result.failure
    found = reduce_boot(result.record)
    assert found["boot_to_guest_ms"] > 0
    assert found["memory_region_updates"] > found["memory_region_updates_by_guest"] > 0
    assert found["booted"] == (result.state is RunState.COMPLETED)


def test_the_guest_maps_the_memory_of_devices_again_and_again(folder: Path) -> None:
    """By TCG: also behind a bridge. By KVM: each makes two updates, so that there are thousands."""
    behind = replace(PROJECT, bridges=1, devices=2, remaps=50)
    assert boot(folder, behind).state is RunState.COMPLETED
    if not kvm_usable():
        pytest.skip("no usable /dev/kvm")
    few = replace(PROJECT, accelerator=Accelerator.KVM, devices=2)
    updates = []
    for cell in (few, replace(few, remaps=1000)):
        result = boot(folder, cell, max_seconds=200)
        assert result.state is RunState.COMPLETED, result.failure
        updates.append(reduce_boot(result.record)["memory_region_updates"])
    assert updates[1] - updates[0] == 2 * 1000


def test_linux(folder: Path, linux: None) -> None:
    result = boot(folder, LINUX)
    assert (result.state, result.failure) == (RunState.COMPLETED, "")
    assert [mark.name for mark in result.record.marks] == list(BootMarkName)
    release = result.record.kernel.split()[0]
    assert f"-{os.uname().machine.replace('x86_64', 'amd64')}" in release
    assert "vmtune boot: user space" in result.record.serial_tail
    assert set(BOOT_HEADLINE) - {"memory_region_updates"} <= reduce_boot(result.record).keys()


def test_a_boot_that_takes_too_long_is_given_up(folder: Path, linux: None) -> None:
    try:
        find_firmware(Firmware.OVMF)
    except SetupError as error:
        pytest.skip(str(error))
    result = boot(folder, replace(LINUX, firmware=Firmware.OVMF), max_seconds=2)
    assert (result.state, result.failure) == (RunState.NOT_CONVERGED, "")
    assert result.record.end is BootEnd.GIVEN_UP
    assert result.record.firmware.startswith("OVMF")
    found = reduce_boot(result.record)
    assert found[BOOT_LIMIT] >= 2000
    assert "boot_to_userspace_ms" not in found


def test_a_qemu_that_dies_is_a_result(folder: Path) -> None:
    def kill(progress: RunProgress) -> None:
        if progress.phase in UNDER_WAY:
            for pid in processes_of(folder):
                os.kill(pid, signal.SIGKILL)

    result = boot(folder, told=kill)
    assert (result.state, result.failure) == (RunState.FAILED, "QEMU died of SIGKILL")
    assert result.record.end is BootEnd.DIED
    assert "booted" not in reduce_boot(result.record)


def test_a_qemu_that_does_not_start_says_why(folder: Path) -> None:
    result = boot(folder, replace(PROJECT, vcpus=1000))
    assert result.state is RunState.FAILED
    assert result.failure.startswith("QEMU ended with status 1; ")
    assert "SMP CPUs 1000" in result.failure
    assert result.record.marks == ()


RUNNING = "runstate_set current_run_state 6 (prelaunch) new_state 9 (running)"
START = (
    "start region=1048576 stride=4096 idle_ms=1000 dirty_mb=0 zero=0 random=0 beat_ms=0 check=0 "
    "ring=0 skew=0 workers=1 address=2138112 tsc_khz=2595798"
)


def faulty(tmp_path: Path, deeds: str) -> Build:
    """Something that is started as a QEMU is, and does *deeds* with its $serial."""
    program = tmp_path / "qemu"
    program.write_text(
        f"""#!/bin/sh
[ "$1" != --version ] || {{ echo "QEMU emulator version 9.9.9 (faulty)"; exit 0; }}
for word; do case $word in file,id=serial,path=*) serial=${{word##*path=}} ;; esac; done
echo "{RUNNING}" >&2
{deeds}
"""
    )
    program.chmod(0o755)
    return Build("faulty", str(program))


def test_a_guest_that_switches_itself_off_at_once_has_booted(folder: Path, tmp_path: Path) -> None:
    build = faulty(tmp_path, f"printf 'guest\\n{START}\\n' >$serial")
    result = boot(folder, build=build)
    assert (result.state, result.failure) == (RunState.COMPLETED, "")
    assert result.record.qemu == "9.9.9 (faulty)"
    assert result.record.ended_ms == reduce_boot(result.record)["boot_to_userspace_ms"]


def test_a_guest_that_qemu_stops_for_good_is_not_waited_for(folder: Path, tmp_path: Path) -> None:
    stops = "runstate_set current_run_state 9 (running) new_state 2 (internal-error)"
    words = "echo 'KVM internal error. Suberror: 1' >&2; echo 'EAX=00000000 EBX=00807000' >&2"
    result = boot(folder, build=faulty(tmp_path, f"{words}; echo '{stops}' >&2; exec sleep 600"))
    assert result.state is RunState.FAILED
    assert result.failure == (
        "QEMU stopped the guest: internal-error; KVM internal error. Suberror: 1"
    )
    assert result.record.end is BootEnd.DIED


@pytest.mark.parametrize(
    ("said", "failure"),
    [
        ("error vcpus: only 1 have started", "vcpus: only 1 have started"),
        ("Booting from ROM...", "QEMU ended with status 3; the guest: Booting from ROM..."),
    ],
)
def test_the_guests_last_words_are_told(
    folder: Path, tmp_path: Path, said: str, failure: str
) -> None:
    last = "exec sleep 600" if said.startswith("error") else "exit 3"
    result = boot(folder, build=faulty(tmp_path, f"echo '{said}' >$serial; {last}"))
    assert (result.state, result.failure) == (RunState.FAILED, failure)


def test_a_silent_guest_is_given_up(folder: Path, tmp_path: Path) -> None:
    result = boot(folder, max_seconds=1, build=faulty(tmp_path, "exec sleep 600"))
    assert (result.state, result.failure) == (RunState.NOT_CONVERGED, "")
    assert reduce_boot(result.record)["booted"] == 0
    assert reduce_boot(result.record)[BOOT_LIMIT] >= 1000


def test_what_is_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError) as caught:
        boot(folder, build=Build("none", "qemu-system-none"))
    assert caught.value.problems[0].field == "testbed.qemu"
    monkeypatch.setattr(boot_run, "kvm_usable", lambda: False)
    with pytest.raises(SetupError) as caught:
        boot(folder, replace(PROJECT, accelerator=Accelerator.KVM))
    assert caught.value.problems[0].field == "scenario.cell.accelerator"


def test_cancelling_leaves_nothing_behind(folder: Path) -> None:
    async def cancelled() -> None:
        def stop(progress: RunProgress) -> None:
            # While it becomes QEMU, a process shows no command line.
            if progress.phase in UNDER_WAY and processes_of(folder):
                task.cancel()

        testbed = DirectTestbed(Path(installed().program), folder=folder)
        task = asyncio.create_task(
            run_boot(BootOrder(BootScenario(PROJECT), testbed=testbed), stop)
        )
        with pytest.raises(asyncio.CancelledError):
            await task

    if installed().why_not:
        pytest.skip(installed().why_not)
    asyncio.run(cancelled())


def test_a_killed_boot_is_cleared_away_by_the_next(folder: Path) -> None:
    if installed().why_not:
        pytest.skip(installed().why_not)
    program = CHECKOUT / "tests/contract/boot_program.py"
    with subprocess.Popen(
        [sys.executable, str(program), str(folder), installed().program],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    ) as killed:  # fmt: skip
        assert killed.stdout is not None
        while (line := killed.stdout.readline().strip()) != BootPhase.STARTING:
            assert line
        assert killed.stdout.readline()  # by now its QEMU shows a command line
        killed.kill()
    deadline = time.monotonic() + 30
    while processes_of(folder):  # its QEMU ends with it
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert list(folder.iterdir())
    assert boot(folder).state is RunState.COMPLETED
