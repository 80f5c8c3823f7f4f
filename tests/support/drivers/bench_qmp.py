"""The QMP driver on the contract suite's bench, with real QEMUs."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from pathlib import Path
from typing import ClassVar
from uuid import UUID

from tests.support.drivers.benches import Bench, BenchKind
from tests.support.qemus import qemu
from vmtune.hypervisor.qmp.driver import QmpDriver
from vmtune.model.tunables.tunable import Value
from vmtune.model.versions import Version

VM = UUID("5f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e10")


class QmpBench(Bench):
    # All that this guest has written is 800 KB.
    slow: ClassVar[Mapping[str, Value]] = {"max_bandwidth_bytes_per_s": 16 << 10}

    def __init__(self, build: qemu.Build, folder: Path, stack: ExitStack) -> None:
        self._build, self._there, self._stack = build, folder / "b", stack
        self._there.mkdir()
        self.vm, self.name = VM, "vm"
        self.qemu = Version.parse(build.label.removeprefix("qemu-"))
        self._qemu = stack.enter_context(qemu.running(build, folder / "a", self.name, VM))
        self._waiting: qemu.RunningQemu | None = None
        # A short patience: the tests take monitors on purpose.
        self.source = QmpDriver(f"qmp+unix://{folder / 'a'}", greeting_timeout_s=1.0)
        self.destination = QmpDriver(f"qmp+unix://{self._there}", greeting_timeout_s=1.0)

    async def open_destination(self) -> None:
        self._waiting = self._stack.enter_context(
            qemu.running(self._build, self._there, self.name, VM, extra=("-incoming", "defer"))
        )

    async def kill(self) -> None:
        self._qemu.kill()

    async def take_monitor(self) -> Callable[[], None]:
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(self._qemu.socket))
        client.recv(1)  # the greeting has begun: the monitor is this client's
        return client.close

    async def kill_destination(self) -> None:
        assert self._waiting is not None
        self._waiting.kill()


def _opener(build: qemu.Build) -> Callable[[Path], AbstractAsyncContextManager[Bench]]:
    @asynccontextmanager
    async def open_bench(folder: Path) -> AsyncIterator[Bench]:
        with ExitStack() as stack:
            bench = QmpBench(build, folder, stack)
            yield bench
            await bench.source.close()
            await bench.destination.close()

    return open_bench


def kinds() -> list[BenchKind]:
    return [BenchKind(f"qmp-{b.label}", _opener(b), b.why_not) for b in qemu.builds()]
