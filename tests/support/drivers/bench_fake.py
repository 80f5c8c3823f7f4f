"""The fake driver on the contract suite's bench."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from tests.support.drivers.benches import Bench, BenchKind
from tests.support.simulated.fakes import NEWEST, OLDEST, fake_pair, only


class FakeBench(Bench):
    def __init__(self, version: str) -> None:
        self.source, self.destination = fake_pair(version)
        self._qemu = only(self.source)
        self.vm, self.name, self.qemu = self._qemu.uuid, self._qemu.name, self._qemu.version

    async def open_destination(self) -> None:
        pass

    async def kill(self) -> None:
        self._qemu.die()

    async def take_monitor(self) -> Callable[[], None]:
        self._qemu.taken = True

        def let_go() -> None:
            self._qemu.taken = False

        return let_go

    async def kill_destination(self) -> None:
        self._qemu.fail("Unable to write to socket: Broken pipe")


def _opener(version: str) -> Callable[[Path], AbstractAsyncContextManager[Bench]]:
    @asynccontextmanager
    async def open_bench(folder: Path) -> AsyncIterator[Bench]:
        bench = FakeBench(version)
        yield bench
        await bench.source.close()
        await bench.destination.close()

    return open_bench


def kinds() -> list[BenchKind]:
    return [BenchKind(f"fake-{version}", _opener(version)) for version in (OLDEST, NEWEST)]
