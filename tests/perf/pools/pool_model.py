"""The model of QEMU's coroutine pool against a real QEMU under load: counts, no speeds.

For each of twelve geometries: a QEMU with such virtio-blk disks, which define its pool's size, and
for each of its event loops an NBD export of a null-co node, whose requests take their time. fio
keeps more requests in flight than the pool keeps, so that it reaches its bound. Memory maps are
counted in /proc/PID/maps before, during and after. While all connections are up, the model's most
maps must never be exceeded, and must be at most twice the number seen; and what is kept when all is
over must be within the pool's bound.

Shown and not judged is the most while connections go up and down: QEMU 10's NBD server was seen to
have up to 40 coroutines at once for each client that hangs up, which no guest's disk makes it do.

    python -m tests.perf.pools.pool_model [GEOMETRIES]
"""

from __future__ import annotations

import asyncio
import json
import math
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from tests.perf.report import Check, environment, finish
from tests.perf.support import folder
from tests.support.qemus.qemu import Build, RunningQemu, installed, running
from vmtune.hypervisor.linux.qemu_process import QemuProcess
from vmtune.hypervisor.qmp.driver import QmpDriver
from vmtune.model.host.facts import MemoryMaps, VmFacts
from vmtune.model.host.pools import MAPS_PER_STACK, geometry_of, headroom, pool_model

REQUESTS_PER_CONNECTION = 16  # QEMU nbd/server.c: MAX_NBD_REQUESTS
RUNS_S = 3
RATE_PER_S = 8000  # of all requests together, so that two cores suffice
SAMPLES_EVERY_S = 0.05
LIMIT = Path("/proc/sys/vm/max_map_count")
PATIENCE_S = 60
SETTLES_WITHIN_S = 10


@dataclass(frozen=True)
class Shape:
    """Disks of one kind, and the iothreads that serve them."""

    disks: int
    queues: int
    size: int
    iothreads: int

    def __str__(self) -> str:
        return f"{self.disks} x {self.queues} x {self.size}, {self.iothreads} iothreads"

    @property
    def machine(self) -> tuple[str, ...]:
        """QEMU's arguments for it."""
        words = ["-machine", "pc", "-accel", "tcg", "-m", "64", "-nodefaults", "-display", "none"]
        for number in range(self.iothreads):
            words += ["-object", f"iothread,id=iothread{number}"]
        for number in range(self.disks):
            words += ["-blockdev", f"null-co,node-name=disk{number},size=1048576"]
            device = f"virtio-blk-pci,drive=disk{number},num-queues={self.queues}"
            device += f",queue-size={self.size}"
            if self.iothreads:
                device += f",iothread=iothread{number % self.iothreads}"
            words += ["-device", device]
        return tuple(words)


SHAPES = (
    Shape(1, 1, 64, 0),
    Shape(1, 1, 256, 0),
    Shape(1, 4, 256, 0),
    Shape(2, 2, 128, 0),
    Shape(4, 1, 256, 1),
    Shape(1, 4, 256, 1),
    Shape(2, 4, 128, 1),
    Shape(4, 4, 64, 2),
    Shape(2, 8, 64, 2),
    Shape(1, 8, 256, 2),
    Shape(8, 2, 128, 3),
    Shape(2, 8, 256, 4),
)


@dataclass(frozen=True)
class Seen:
    """One geometry's figures.

    :param most: most maps while all connections were up; *hanging_up* while some were not.
    :param after: once all is over.
    :param modelled: most maps by the model, for as many requests as were in flight.
    :param guest_modelled: likewise for all that the disks' queues hold: what a VM is judged by.
    """

    shape: str
    requests: int
    before: MemoryMaps
    most: int
    hanging_up: int
    after: MemoryMaps
    modelled: int
    guest_modelled: int
    max_pooled: int

    @property
    def ratio(self) -> float:
        return self.modelled / self.most


class Monitor:
    """A QMP connection, for the commands that only this benchmark sends."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE_S)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("r")
        self._lines.readline()
        self.execute("qmp_capabilities")

    def execute(self, command: str, **arguments: Any) -> Any:  # any JSON
        """Run a command and return its result."""
        request = {"execute": command, "arguments": arguments}
        self._socket.sendall(json.dumps(request).encode())
        while True:
            reply = json.loads(self._lines.readline())
            assert "error" not in reply, reply
            if "return" in reply:
                return reply["return"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._socket.close()


@contextmanager
def exports(qemu: RunningQemu, at: Path, loops: Sequence[str], latency_ns: int) -> Iterator[Path]:
    """An NBD server with one export for each event loop, removed in the end."""
    path = at / "nbd.sock"
    with Monitor(qemu.socket) as monitor:
        address = {"type": "unix", "data": {"path": str(path)}}
        monitor.execute("nbd-server-start", addr=address, **{"max-connections": 0})
        try:
            for name in loops:
                node: Mapping[str, Any] = {"driver": "null-co", "size": 1 << 30}
                monitor.execute(
                    "blockdev-add", **node, **{"node-name": name, "latency-ns": latency_ns}
                )
                where = {"iothread": name} if name.startswith("iothread") else {}
                export = {"type": "nbd", "id": name, "node-name": name, "name": name, **where}
                monitor.execute("block-export-add", **export)
            yield path
        finally:
            monitor.execute("nbd-server-stop")
    path.unlink(missing_ok=True)


def load(path: Path, loops: Sequence[str], connections: int) -> subprocess.Popen[bytes]:
    """fio, with so many connections over all event loops."""
    command = [
        "fio", "--ioengine=nbd", "--rw=randread", "--bs=4k", "--thread",
        f"--iodepth={REQUESTS_PER_CONNECTION}", "--time_based", f"--runtime={RUNS_S}",
        "--group_reporting", "--output-format=terse", f"--output={path.parent / 'fio.out'}",
    ]  # fmt: skip
    for number, name in enumerate(loops):
        jobs = connections // len(loops) + (number < connections % len(loops))
        command += [
            f"--name={name}",
            f"--uri=nbd+unix:///{name}?socket={path}",
            f"--numjobs={jobs}",
        ]
    with (path.parent / "fio.err").open("wb") as errors:
        return subprocess.Popen(command, stdout=errors, stderr=errors, cwd=path.parent)


def count(process: QemuProcess) -> MemoryMaps:
    """The maps right now."""
    maps = process.maps()
    assert maps is not None, "QEMU has ended"
    return maps


async def probe(qemu: RunningQemu) -> VmFacts:
    """The VM as vmtune sees it."""
    driver = QmpDriver(f"qmp+unix://{qemu.socket.parent}")
    try:
        (vm,) = await driver.list_vms()
        return await driver.vm_facts(vm.uuid)
    finally:
        await driver.close()


def connected(path: Path) -> int:
    """How many connections the NBD server has."""
    lines = Path("/proc/net/unix").read_text().splitlines()
    return sum(line.endswith(f" {path}") for line in lines) - 1  # it listens on one more


def watch(
    process: QemuProcess, path: Path, fio: subprocess.Popen[bytes], connections: int
) -> tuple[int, int]:
    """The most maps while all connections are up, and while they are not, until fio has ended."""
    most = {True: 0, False: 0}
    deadline = time.monotonic() + PATIENCE_S
    try:
        while fio.poll() is None:
            up = connected(path) >= connections
            maps = count(process).total
            # Only what was counted between two looks with all of them is the load's.
            loaded = up and connected(path) >= connections
            most[loaded] = max(most[loaded], maps)
            assert time.monotonic() < deadline, "fio does not end"
            time.sleep(SAMPLES_EVERY_S)
    finally:
        fio.kill()
        fio.wait()
    assert fio.returncode == 0, (path.parent / "fio.err").read_text()
    return most[True], most[False]


def settled(process: QemuProcess, expected: int) -> MemoryMaps:
    """The maps once connections have gone: at the latest when there should be no more."""
    deadline = time.monotonic() + SETTLES_WITHIN_S
    while (maps := count(process)).stacks > expected and time.monotonic() < deadline:
        time.sleep(SAMPLES_EVERY_S)
    return maps


def measure(build: Build, shape: Shape, at: Path) -> Seen:
    """One geometry under load."""
    with running(build, at / "qmp", uuid=uuid4(), machine=shape.machine) as qemu:
        facts = asyncio.run(probe(qemu))
        limit = int(LIMIT.read_text())
        process = QemuProcess(qemu.pid)
        before = count(process)
        other = before.total - MAPS_PER_STACK * before.stacks
        loops = ["main", *(f"iothread{number}" for number in range(shape.iothreads))]
        pooled = pool_model(geometry_of(facts)).max_pooled
        connections = max(len(loops), math.ceil(pooled / REQUESTS_PER_CONNECTION))
        requests = connections * REQUESTS_PER_CONNECTION
        model = pool_model(geometry_of(facts), requests)
        with exports(qemu, at, loops, int(requests / RATE_PER_S * 1e9)) as path:
            most, hanging_up = watch(process, path, load(path, loops, connections), connections)
        assert most, f"fio never had {connections} connections at once"
        after = settled(process, model.max_pooled)
        return Seen(
            str(shape), requests, before, most, hanging_up, after, model.max_maps(other),
            headroom(facts, limit).max_maps, model.max_pooled,
        )  # fmt: skip


def checks(found: Sequence[Seen]) -> list[Check]:
    """The bars, by the worst geometry."""
    kept = max(seen.after.stacks / seen.max_pooled for seen in found)
    return [
        Check("geometries", len(found), "", len(SHAPES), "min"),
        Check("most maps by the model's", max(1 / s.ratio for s in found), "times", 1, "max"),
        Check("the model's maps by those seen", max(s.ratio for s in found), "times", 2, "max"),
        Check("coroutines kept by the pool's most", kept, "times", 1, "max"),
    ]


def main() -> None:
    """Measure and report."""
    build = installed()
    where = environment()
    for why in (build.why_not, "" if shutil.which("fio") else "fio is not installed"):
        if why:
            print(f"{why}: run vmtune/lab/bootstrap.sh --tests")
            finish("pool_model", [], {"skipped": why}, where)
    shapes = SHAPES[: int(sys.argv[1])] if len(sys.argv) > 1 else SHAPES
    print(f"{build.label}; disks x queues x size")
    print(f"{'geometry':28}{'in flight':>10}{'before':>8}{'most':>8}{'model':>8}{'times':>7}"
          f"{'kept':>7}{'at most':>9}{'hanging up':>12}")  # fmt: skip
    found: list[Seen] = []
    for shape in shapes:
        with folder() as at:
            seen = measure(build, shape, at)
        found.append(seen)
        print(f"{seen.shape:28}{seen.requests:>10}{seen.before.total:>8}{seen.most:>8}"
              f"{seen.modelled:>8}{seen.ratio:>7.2f}{seen.after.stacks:>7}{seen.max_pooled:>9}"
              f"{seen.hanging_up:>12}",
              flush=True)  # fmt: skip
    finish("pool_model", checks(found), {"geometries": [asdict(seen) for seen in found]}, where)


if __name__ == "__main__":
    main()
