"""One measurement of the block benchmark, from a fresh QEMU to a record."""

from __future__ import annotations

from collections.abc import Callable

from vmtune.bench.block_order import BlockOrder, BlockProgress, BlockResult


async def run_block(order: BlockOrder, on_progress: Callable[[BlockProgress], None]) -> BlockResult:
    """Start QEMU, export its node, load it with fio, and take all down.

    A QEMU that dies and a fio that fails are results, with all that was recorded. Cancelling
    the task ends the run: everything is taken down, and the cancellation goes on.

    :param on_progress: called several times a second, from the event loop.
    :raise VmtuneError: the run cannot be done here (no QEMU, no fio, no room for the node);
        nothing was left behind.
    """
    raise NotImplementedError
