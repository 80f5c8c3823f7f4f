"""The guest's virtio-blk driver, with real QEMUs: what it reads is what was written."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.qemus.guest import guest
from tests.support.qemus.qemu import Build, builds, installed
from vmtune.lab.domain_xml import kvm_usable
from vmtune.lab.guest_build import build_guest
from vmtune.lab.guest_io import GuestIoPhase, GuestIoReport
from vmtune.model.guest_io import GuestIo, GuestLoad

NO_QEMU = installed().why_not
pytestmark = pytest.mark.skipif(bool(NO_QEMU), reason=NO_QEMU or "never")
MIB = 1 << 20
SIZE = 16 * MIB
ACCELERATORS = [
    "tcg",
    pytest.param("kvm", marks=pytest.mark.skipif(not kvm_usable(), reason="there is no /dev/kvm")),
]
NULL = ("-blockdev", f"null-co,node-name=disk0,size={SIZE},read-zeroes=on")
DISK = ("-device", "virtio-blk-pci,drive=disk0")
PATIENCE_S = 120


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_guest(tmp_path_factory.mktemp("guest"))


def raw(path: Path) -> tuple[str, ...]:
    """A disk of zeros in that file."""
    if not path.exists():
        path.write_bytes(b"")
        with path.open("r+b") as file:
            file.truncate(SIZE)
    return (
        *("-blockdev", f"file,node-name=file0,filename={path}"),
        *("-blockdev", "raw,node-name=disk0,file=file0"),
    )


async def told(
    program: Path,
    folder: Path,
    load: GuestLoad,
    *devices: str,
    vcpus: int = 1,
    accelerator: str = "tcg",
    build: Build | None = None,
) -> GuestIoReport:
    """All that the guest tells up to its end."""
    log = folder / "beats"
    console = (
        "-chardev",
        f"file,id=beat,path={log}",
        "-device",
        "isa-debugcon,chardev=beat,iobase=0xe9",
    )
    report = GuestIoReport()

    def heard() -> bool:
        nonlocal report
        report = GuestIoReport()
        lines = log.read_text().splitlines() if log.exists() else []
        assert all([report.add(line) for line in lines[:-1]]), lines
        if lines:
            report.add(lines[-1])
        assert not running.events(), running.events()
        return report.phase is GuestIoPhase.DONE

    async with guest(
        program, folder, load.command_line(), vcpus, accelerator, build,
        firmware=(), extra=(*console, *devices),
    ) as running:  # fmt: skip
        async with asyncio.timeout(PATIENCE_S):
            while not heard():
                assert running.qemu.process.poll() is None, running.qemu.said()
                await asyncio.sleep(0.05)
    return report


async def result(
    program: Path, folder: Path, load: GuestLoad, *devices: str, vcpus: int = 1,
    accelerator: str = "tcg", build: Build | None = None,
) -> GuestIo:  # fmt: skip
    found = await told(
        program, folder, load, *devices, vcpus=vcpus, accelerator=accelerator, build=build
    )
    whole = found.result()
    assert whole is not None
    return whole


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("build", builds(), ids=lambda build: build.label)
async def test_what_is_read_is_what_was_written(
    program: Path, tmp_path: Path, build: Build, accelerator: str
) -> None:
    if build.why_not:
        pytest.skip(build.why_not)
    load = GuestLoad(depth=8, jobs=4, write_percent=50, check=True)
    found = await result(
        program, tmp_path, load,
        *("-object", "iothread,id=iothread1", *raw(tmp_path / "disk")),
        *("-device", "virtio-blk-pci,drive=disk0,num-queues=4,iothread=iothread1"),
        vcpus=2, accelerator=accelerator, build=build,
    )  # fmt: skip
    assert (found.errors, found.wrong, found.interrupts) == (0, 0, 0)
    assert (found.disks, found.queues, found.depth, found.disk_bytes) == (1, 4, 32, SIZE)
    assert found.read.requests > 0
    assert found.write.requests > 0
    assert found.latency.min_ns <= found.latency.mean_ns <= found.latency.max_ns
    # The guest's own numbers, of block and version, are in the file.
    written = (tmp_path / "disk").read_bytes()
    blocks = [n for n in range(SIZE // 4096) if any(written[n * 4096 : n * 4096 + 8])]
    assert len(blocks) > 8
    for block in blocks:
        word = int.from_bytes(written[block * 4096 : block * 4096 + 8], "little")
        assert word >> 32 == block


@pytest.mark.parametrize("accelerator", ACCELERATORS)
async def test_interrupts_wake_a_guest_that_halts(
    program: Path, tmp_path: Path, accelerator: str
) -> None:
    slow = f"null-co,node-name=disk0,size={SIZE},read-zeroes=on,latency-ns=100000000"
    load = GuestLoad(interrupts=True, run_ms=1000)
    found = await result(program, tmp_path, load, "-blockdev", slow, *DISK, accelerator=accelerator)
    # Each request takes longer than the guest does to halt, also where others use the CPUs.
    assert found.interrupts >= found.requests > 0
    # By the guest's clock, which it has set by another one: under TCG it is a percent off at times.
    assert found.latency.min_ns >= 90_000_000


async def test_what_is_on_the_disk_before_is_found_to_be_wrong(
    program: Path, tmp_path: Path
) -> None:
    (tmp_path / "disk").write_bytes(b"\xff" * SIZE)
    found = await result(
        program, tmp_path, GuestLoad(check=True, run_ms=200), *raw(tmp_path / "disk"), *DISK
    )
    assert found.wrong >= found.requests * 512 > 0


async def test_errors_of_the_disk_are_counted(program: Path, tmp_path: Path) -> None:
    # Nothing else is asked for than reads, and each fails.
    failing = (
        '{"driver": "blkdebug", "node-name": "disk0", "image": {"driver": "null-co", '
        f'"size": {SIZE}, "read-zeroes": true}}, "inject-error": '
        '[{"event": "none", "iotype": "read"}]}'
    )
    found = await result(
        program, tmp_path, GuestLoad(run_ms=200),
        "-blockdev", failing, "-device", "virtio-blk-pci,drive=disk0,rerror=report",
    )  # fmt: skip
    assert found.errors > 0
    assert found.requests == 0


async def test_jobs_are_dealt_out_to_disks_and_their_queues(program: Path, tmp_path: Path) -> None:
    second = ("-blockdev", f"null-co,node-name=disk1,size={SIZE}")
    found = await result(
        program, tmp_path, GuestLoad(depth=2, jobs=3, block_bytes=8192, run_ms=200, beat_ms=20),
        *NULL, *second, "-device", "virtio-blk-pci,drive=disk0,num-queues=1",
        "-device", "virtio-blk-pci,drive=disk1,num-queues=2", vcpus=3,
    )  # fmt: skip
    assert (found.disks, found.queues, found.depth) == (2, 2, 6)
    assert found.requests > 0


async def test_a_load_that_does_not_fit_is_refused(program: Path, tmp_path: Path) -> None:
    async with guest(
        program, tmp_path, GuestLoad(depth=64, jobs=5).command_line(), firmware=(),
        extra=(*NULL, *DISK, "-global", "virtio-blk-pci.queue-size=256"),
    ) as running:  # fmt: skip
        fault = await running.fault()
    assert fault.parameter == "io_depth"
    assert fault.reason == "of all jobs of a queue are more than its 256 places"


async def test_a_disk_that_cannot_be_written_is_refused(program: Path, tmp_path: Path) -> None:
    async with guest(
        program, tmp_path, GuestLoad(write_percent=1).command_line(), firmware=(),
        extra=("-blockdev", f"null-co,node-name=disk0,size={SIZE},read-only=on", *DISK),
    ) as running:  # fmt: skip
        fault = await running.fault()
    assert (fault.parameter, fault.reason) == ("io_write", "the disk is read-only")


async def test_a_guest_without_disks_says_so(program: Path, tmp_path: Path) -> None:
    async with guest(program, tmp_path, GuestLoad().command_line(), firmware=()) as running:
        fault = await running.fault()
    assert (fault.parameter, fault.reason) == ("disk", "there is no virtio-blk disk")
