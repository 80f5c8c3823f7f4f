"""The guest in a real QEMU: what it does to its memory, how fast, and its heartbeat."""

from __future__ import annotations

import asyncio
import itertools
import math
import re
import shutil
import signal
import zlib
from collections import Counter
from pathlib import Path

import pytest

from tests.support.qemus.guest import MEMORY_BYTES, MIB, QBOOT, Guest, guest
from tests.support.qemus.qemu import cpu_s, installed, old
from vmtune.lab.domain_xml import kvm_usable
from vmtune.lab.guest_build import build_guest
from vmtune.lab.guest_serial import GuestStart
from vmtune.model.workload import Workload

PAGE = 4096
_MISSING = [name for name in ("gcc", "make", "ld") if shutil.which(name) is None]
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(bool(_MISSING), reason=f"not installed: {', '.join(_MISSING)}"),
    pytest.mark.skipif(bool(installed().why_not), reason=installed().why_not or "never"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_guest(tmp_path_factory.mktemp("guest"))


def pages_of(memory: bytes, part: range) -> list[bytes]:
    return [memory[at : min(at + PAGE, part.stop)] for at in range(part.start, part.stop, PAGE)]


def all_parts(start: GuestStart) -> range:
    return range(start.part(0).start, start.part(start.workers - 1).stop)


def assert_nothing_else_written(memory: bytes, start: GuestStart) -> None:
    """Before the region is the program, and behind it nothing for long, but firmware at last."""
    region = all_parts(start)
    assert 2 * MIB < region.start < 3 * MIB
    assert not any(memory[region.stop : MEMORY_BYTES // 2])


async def test_content_has_its_shares_and_keeps_them(program: Path, tmp_path: Path) -> None:
    work = Workload(10 * MIB, zero_percent=20, random_percent=30, dirty_mb_per_s=100)
    async with guest(program, tmp_path, work.command_line(), vcpus=2) as running:
        start, _ = await running.until(2)
        before = await running.memory()
        _, passes = await running.until(4)
        after = await running.memory()
        levels = re.findall(r"CPL=(\d)", await registers(running))
    assert start.workload == work
    assert start.workers == 2
    assert levels == ["3", "3"]
    assert {each.worker for each in passes} == {0, 1}

    def kinds(memory: bytes) -> list[str]:
        packed = [
            len(zlib.compress(page)) / PAGE if any(page) else 0.0
            for page in pages_of(memory, all_parts(start))
        ]
        return ["zero" if p == 0 else "random" if p > 0.95 else "pattern" for p in packed]

    hundred = ["zero"] * 20 + ["random"] * 30 + ["pattern"] * 50
    assert kinds(before) == kinds(after) == (hundred * 26)[: 10 * MIB // PAGE]
    # Each page but those of zeros was written to, and only its first byte.
    for kind, old_page, new_page in zip(
        kinds(before),
        pages_of(before, all_parts(start)),
        pages_of(after, all_parts(start)),
        strict=True,
    ):
        assert (old_page[0] == new_page[0]) == (kind == "zero")
        assert old_page[1:] == new_page[1:]
    assert_nothing_else_written(after, start)


async def test_whole_pages_are_written_anew(program: Path, tmp_path: Path) -> None:
    work = Workload(2 * MIB + 100, stride_bytes=4, random_percent=50, cpu_ring=3)
    async with guest(program, tmp_path, work.command_line(), vcpus=2) as running:
        start, passes = await running.until(1)
        before = await running.memory()
        await running.until(max(each.number for each in passes) + 2)
        after = await running.memory()
    pages = list(
        zip(pages_of(before, all_parts(start)), pages_of(after, all_parts(start)), strict=True)
    )
    assert len(pages) == 513
    assert len(pages[-1][0]) == 100
    for number, (old_page, new_page) in enumerate(pages[:-1]):
        differing = sum(a != b for a, b in zip(old_page, new_page, strict=True))
        assert differing > (0.95 if number % 100 < 50 else 0.5) * PAGE, number
    assert_nothing_else_written(after, start)


LITTLE_BELOW = ("-machine", "max-ram-below-4g=16M")
"""The other 48 MiB are above 4 GiB."""


@pytest.mark.parametrize(("region", "above"), [(12 * MIB, False), (40 * MIB, True)])
async def test_a_region_that_does_not_fit_below_4_gib_is_above(
    program: Path, tmp_path: Path, region: int, above: bool
) -> None:
    work = Workload(region, check=1, cpu_ring=3)
    async with guest(
        program, tmp_path, work.command_line(), vcpus=2, extra=LITTLE_BELOW
    ) as running:
        start, passes = await running.until(3)
    assert (start.address >= 4 << 30) is above
    assert not any(each.wrong for each in passes)


async def test_a_region_that_fits_nowhere_is_refused(program: Path, tmp_path: Path) -> None:
    async with guest(program, tmp_path, "region=49M", extra=LITTLE_BELOW) as running:
        fault = await running.fault()
    assert (fault.parameter, fault.reason) == (
        "region", f"does not fit into the largest free stretch of {48 * MIB} bytes",
    )  # fmt: skip


@pytest.mark.parametrize("ring", [0, 3])
async def test_one_byte_a_stride_from_each_parts_begin(
    program: Path, tmp_path: Path, ring: int
) -> None:
    work = Workload(3 * MIB + 5000, stride_bytes=10_000, idle_ms=1, cpu_ring=ring)
    async with guest(program, tmp_path, work.command_line(), vcpus=3) as running:
        start, _ = await running.until(1)
        memory = await running.memory()
        levels = re.findall(r"CPL=(\d)", await registers(running))
    assert levels == [str(ring)] * 3
    for worker in range(3):
        part = start.part(worker)
        written = {at for at in part if memory[at]}
        assert written == set(part[::10_000])
        # A pass is not over all at once: its value, and that of the pass before.
        values = Counter(memory[at] for at in written)
        assert len(values) <= 2
    assert_nothing_else_written(memory, start)


BUILDS = {"qemu-10": installed(), "qemu-7.2": old()}


@pytest.mark.parametrize(
    ("qemu", "accelerator", "vcpus", "ring", "firmware"),
    [
        # Without an own firmware QEMU takes SeaBIOS.
        ("qemu-10", "tcg", 1, 3, ()),
        ("qemu-10", "tcg", 16, 3, QBOOT),
        ("qemu-10", "kvm", 16, 3, QBOOT),
        ("qemu-10", "kvm", 2, 0, QBOOT),
        ("qemu-7.2", "tcg", 6, 0, ()),
        ("qemu-7.2", "kvm", 3, 3, QBOOT),
    ],
)
async def test_every_vcpu_works(
    program: Path,
    tmp_path: Path,
    qemu: str,
    accelerator: str,
    vcpus: int,
    ring: int,
    firmware: tuple[str, ...],
) -> None:
    build = BUILDS[qemu]
    if build.why_not:
        pytest.skip(build.why_not)
    if accelerator == "kvm" and not kvm_usable():
        pytest.skip("no usable /dev/kvm")
    work = Workload(vcpus * 16 * PAGE, idle_ms=20, cpu_ring=ring)
    async with guest(
        program,
        tmp_path,
        work.command_line(),
        vcpus,
        accelerator,
        build,
        firmware,
    ) as running:
        start, passes = await running.until(2)
        memory = await running.memory()
    assert (start.workload, start.workers) == (work, vcpus)
    for worker in range(vcpus):
        assert all(memory[at] for at in start.part(worker)[::PAGE]), worker
        mine = [each for each in passes if each.worker == worker]
        assert mine[0].number == mine[0].passes
        for before, each in itertools.pairwise(mine):
            assert each.number == before.number + each.passes
            assert each.end_us >= before.end_us + each.worked_us
            assert each.longest_us <= each.worked_us
    assert_nothing_else_written(memory, start)


@pytest.mark.parametrize("accelerator", ["tcg", "kvm"])
@pytest.mark.parametrize("qemu", BUILDS)
@pytest.mark.parametrize("rests", ["idle_ms=60000", "dirty_mb=1"])
async def test_at_rest_they_cost_next_to_nothing(
    program: Path, tmp_path: Path, qemu: str, accelerator: str, rests: str
) -> None:
    """Each of the two would else use 3 s of CPU time in 3 s, or all that a busy machine leaves."""
    build = BUILDS[qemu]
    if build.why_not:
        pytest.skip(build.why_not)
    if accelerator == "kvm" and not kvm_usable():
        pytest.skip("no usable /dev/kvm")
    line = f"region=64k beat_ms=50 {rests}"
    async with guest(program, tmp_path, line, 2, accelerator, build) as running:
        await running.until(1)
        began_s = cpu_s(running.qemu.pid)
        await asyncio.sleep(3)
        used_s = cpu_s(running.qemu.pid) - began_s
    assert used_s < 1


async def test_workers_are_numbered_as_vcpus(program: Path, tmp_path: Path) -> None:
    """Three cores a socket: the processors' APIC IDs are 0, 1, 2, 4, 5 and 6."""
    topology = ("-smp", "6,sockets=2,cores=3")
    async with guest(program, tmp_path, "region=48M stride=1 ring=3", extra=topology) as running:
        start, _ = await running.until(1)
        parts = [start.part(worker) for worker in range(6)]
        where = [set[int]() for _ in range(6)]
        async with asyncio.timeout(60):
            while not all(where):
                for vcpu, address in enumerate(await destinations(running)):
                    # Between two pages it points to where one ends, which may be another's part.
                    if address % PAGE:
                        where[vcpu] |= {n for n, part in enumerate(parts) if address in part}
    assert where == [{n} for n in range(6)]


async def destinations(running: Guest) -> list[int]:
    """Where each vCPU is just writing to, if it is filling a page: register RDI."""
    return [int(text, 16) for text in re.findall(r"RDI=([0-9a-f]{16})", await registers(running))]


async def registers(running: Guest) -> str:
    command: dict[str, object] = {"command-line": "info registers -a"}
    return str(await running.qmp.execute("human-monitor-command", command))


@pytest.mark.parametrize(
    ("command_line", "vcpus", "parameter"),
    [
        ("region=64M", 1, "region"),
        ("region=8k", 3, "region"),
        ("zero=80 random=30", 1, "random"),
        ("regoin=1M", 1, "regoin"),
    ],
)
async def test_the_guest_names_what_it_refuses(
    program: Path, tmp_path: Path, command_line: str, vcpus: int, parameter: str
) -> None:
    async with guest(program, tmp_path, command_line, vcpus) as running:
        assert (await running.fault()).parameter == parameter


@pytest.mark.parametrize("ring", [0, 3])  # it halts in ring 0, and watches the clock in 3
async def test_the_dirty_rate_is_kept(program: Path, tmp_path: Path, ring: int) -> None:
    """Two workers with 50 pages each: at 4 MB/s, 977 pages a second, they take 102 ms a pass."""
    async with guest(program, tmp_path, f"region=400k dirty_mb=4 ring={ring}", vcpus=2) as running:
        _, passes = await running.until(20)
    in_8_passes_us = 8 * 100 / (4_000_000 / PAGE) * 1e6
    for worker in range(2):
        ends = [each.end_us for each in passes if each.worker == worker]
        # By the guest's own clock. It may make up for 50 ms at most; it keeps the rate wherever
        # this machine lets it, which needs not be all the time.
        took = [after - before for before, after in zip(ends, ends[8:], strict=False)]
        assert min(took) > 0.98 * in_8_passes_us - 50_000
        assert any(abs(each - in_8_passes_us) < 0.03 * in_8_passes_us for each in took)


async def test_the_dirty_rate_is_kept_page_by_page(program: Path, tmp_path: Path) -> None:
    """At any moment another number of pages is written: they do not come by the dozen."""
    async with guest(program, tmp_path, "region=48M stride=4k dirty_mb=12 ring=3") as running:
        await running.when(lambda: bool(running.events()))
        (start,) = running.events()
        assert isinstance(start, GuestStart)
        pages, counts = start.part(0)[::PAGE], [0]
        while len(counts) < 8:
            memory = await running.memory()
            count = sum(memory[at] > 0 for at in pages)
            if count > max(counts[-1], 1000):
                counts.append(count)
    assert counts[-1] < len(pages)
    steps = [after - before for before, after in itertools.pairwise(counts[1:])]
    assert math.gcd(*steps) < 8


async def test_time_lost_is_not_caught_up_on(program: Path, tmp_path: Path) -> None:
    """100 pages at 1000 a second are 100 ms, also after the host has let it wait for a second."""
    line = "region=400k stride=4k dirty_mb=4 ring=3"
    async with guest(program, tmp_path, line) as running:
        await running.until(2)
        running.qemu.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(1)
        running.qemu.process.send_signal(signal.SIGCONT)
        _, passes = await running.until(8)
    expected_us = 100 / (4_000_000 / PAGE) * 1e6
    assert max(each.duration_us for each in passes) > 900_000
    assert min(each.duration_us for each in passes) > 0.95 * expected_us - 50_000


@pytest.mark.parametrize("ring", [0, 3])  # it halts in ring 0, and watches the clock in 3
async def test_rest_is_not_caught_up_on(program: Path, tmp_path: Path, ring: int) -> None:
    """100 pages at 977 a second are 102 ms, although it has rested for 200 before."""
    line = f"region=400k dirty_mb=4 idle_ms=200 ring={ring}"
    async with guest(program, tmp_path, line) as running:
        _, passes = await running.until(5)
    expected_us = 100 / (4_000_000 / PAGE) * 1e6
    # Once in all it may have 50 ms to make up for, if this machine did not let it work.
    worked_us = sum(each.worked_us for each in passes)
    assert worked_us > 0.98 * passes[-1].number * expected_us - 50_000
    for before, each in itertools.pairwise(passes):
        assert each.end_us - each.worked_us - before.end_us >= 199_000 * each.passes


async def test_the_heart_beats_in_the_midst_of_a_pass(program: Path, tmp_path: Path) -> None:
    """Serial port and heartbeat go to one file here, which so has both in their order."""
    both = ("-chardev", f"file,id=both,mux=on,path={tmp_path}/serial.log",
            "-serial", "chardev:both",
            "-device", "isa-debugcon,chardev=both,iobase=0xe9")  # fmt: skip
    # Ten million writes: the first pass takes many times as long as from beat to beat.
    line = "region=50M stride=5 beat_ms=1 ring=3"
    async with guest(program, tmp_path, line, extra=both) as running:
        await running.when(lambda: b"pass 0 1" in running.serial.read_bytes())
        log = running.serial.read_bytes()
    after_start = log[log.index(b"start ") :].split(b"\n", 1)[1]
    beats, _, _ = after_start.partition(b"pass 0 1")
    assert set(beats) == set(b"0")
    assert len(beats) > 10


@pytest.mark.parametrize("ring", [0, 3])  # it halts in ring 0, and watches the clock in 3
async def test_each_worker_has_a_heart_and_it_stands_still_with_the_vm(
    program: Path, tmp_path: Path, ring: int
) -> None:
    beat = tmp_path / "beat"
    beat.touch()
    console = ("-chardev", f"file,id=beat,path={beat}",
               "-device", "isa-debugcon,chardev=beat,iobase=0xe9")  # fmt: skip
    line = f"region=1M dirty_mb=1 idle_ms=50 beat_ms=5 ring={ring}"
    async with guest(program, tmp_path, line, vcpus=2, extra=console) as running:
        await running.until(1)
        await running.qmp.execute("stop")
        stopped = beat.read_bytes()
        assert set(stopped) == set(b"01")
        await asyncio.sleep(0.1)
        assert beat.read_bytes() == stopped
        await running.qmp.execute("cont")
        await running.when(lambda: set(beat.read_bytes()[len(stopped) :]) == set(b"01"))


async def test_without_a_heartbeat_the_console_is_silent(program: Path, tmp_path: Path) -> None:
    beat = tmp_path / "beat"
    console = ("-chardev", f"file,id=beat,path={beat}",
               "-device", "isa-debugcon,chardev=beat,iobase=0xe9")  # fmt: skip
    async with guest(program, tmp_path, "region=1M idle_ms=1", extra=console) as running:
        await running.until(3)
    assert beat.read_bytes() == b""
