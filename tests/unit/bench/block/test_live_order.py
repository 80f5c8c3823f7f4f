"""Of a running VM, only nodes are measured by which QEMU cannot die."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.support.examples import facts
from vmtune.bench.block import live_order
from vmtune.bench.block.live_order import LiveOrder, check_live
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.block_target import LiveTarget
from vmtune.bench.model.scenario.matrix_cells import BlockCell, IoPattern, NodeKind
from vmtune.errors import SetupError
from vmtune.hypervisor.qemu.block_export import BlockNode
from vmtune.model.host.facts import MemoryMaps
from vmtune.model.migration.record import QemuStatus, Snapshot
from vmtune.model.versions import Version

VM = UUID(int=1)


class Driver:
    """A VM with two disks, of which an iothread handles one."""

    def __init__(self, qemu: Version) -> None:
        self.qemu = qemu

    async def vm_facts(self, _: UUID) -> Any:
        return replace(facts.vm(self.qemu), pid=1, maps=MemoryMaps(300, 0))

    async def migration(self, _: UUID) -> Snapshot:
        return Snapshot(QemuStatus.NONE)

    async def block_nodes(self, _: UUID) -> list[BlockNode]:
        return [
            BlockNode("fast", "raw", size_bytes=1 << 30, read_only=False, on_main_loop=False),
            BlockNode("plain", "raw", size_bytes=1 << 30, read_only=False, on_main_loop=True),
        ]


@pytest.mark.parametrize("release", [Version(7, 2), Version(10, 0, 2), Version(11, 1, 3)], ids=str)
async def test_a_node_that_an_iothread_may_handle_is_refused_of_every_qemu(
    release: Version, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that hangs up lets QEMU start coroutines until the main loop closes it."""
    monkeypatch.setattr(live_order, "require_programs", lambda *_: None)
    cell = BlockCell(NodeKind.VM, IoPattern.RANDREAD, 4096, 4, 1)
    for node in ("fast", "plain"):
        scenario = BlockScenario(cell, target=LiveTarget(VM, node))
        order = LiveOrder(scenario, Driver(release), tmp_path)  # type: ignore[arg-type]
        if node == "plain":
            await check_live(order)
            continue
        with pytest.raises(SetupError) as refused:
            await check_live(order)
        (problem,) = refused.value.problems
        assert (problem.field, problem.code) == ("target.node", "qemu_would_die")
        assert "plain" in problem.remedy
