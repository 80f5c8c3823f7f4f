"""The block benchmark inside a guest: fio, run by the guest agent, reads a disk of the VM.

What is measured is all of the way: the guest's driver, the virtio queues, QEMU and the disk. The
guest's fio uses the CPU time of QEMU's vCPUs, so that CPU time for each request is not reported.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from vmtune.bench.block.command_lines import fio_counts
from vmtune.bench.block.fio_json import read_fio
from vmtune.bench.block.live import ENDED
from vmtune.bench.block.live_order import FIO, GuestOrder, no_fio
from vmtune.bench.block.load import MAPS_EVERY_S, Load, Watch
from vmtune.bench.block.order import BlockPhase, BlockResult
from vmtune.bench.block.run import Reporter, around, block_result
from vmtune.bench.migration.order import RunProgress
from vmtune.bench.model.scenario.block import BlockScenario, LoadPhase
from vmtune.errors import CommandRefused, InvalidInput, OutcomeUnknown
from vmtune.hypervisor.linux.qemu_process import QemuProcess
from vmtune.hypervisor.qemu.guest_agent import Finished

_STARTS_WITHIN_S = 60.0
_KILLED = -9


async def run_in_guest(
    order: GuestOrder, on_progress: Callable[[RunProgress], None]
) -> BlockResult:
    """Run fio in the guest, and sample QEMU meanwhile. Cancelling interrupts fio in the guest; if
    the service has died, fio ends when its time is over. A fio that fails, and a QEMU
    that ends meanwhile, are results.

    :raise VmtuneError: it cannot be done in this guest.
    """
    scenario = order.scenario
    reporter = Reporter(scenario.longest_s, on_progress)
    reporter.report(BlockPhase.STARTING)
    watch = Watch(order.pid)
    reporter.start(watch)
    await around(watch, LoadPhase.BEFORE, reporter)
    begun_ms = watch.mark()
    looking = asyncio.create_task(_look(watch), name="look at QEMU")
    try:
        finished = await order.agent.run(
            FIO,
            guest_line(scenario, order.device),
            scenario.ramp_s + scenario.runtime_s + _STARTS_WITHIN_S,
            lambda: reporter.report(BlockPhase.LOADING),
        )
    except CommandRefused as refusal:
        raise no_fio(refusal.message) from refusal
    except OutcomeUnknown as error:
        if QemuProcess(order.pid).memory_bytes() is not None:
            raise
        finished = Finished(_KILLED, "", error.message)
    finally:
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking
    ended_ms = watch.mark()
    ended = QemuProcess(order.pid).memory_bytes() is None
    if not ended:
        await around(watch, LoadPhase.AFTER, reporter)
    reporter.report(BlockPhase.CLEANING_UP)
    done = _load(finished, begun_ms, ended_ms)
    return block_result(watch, done, order.version, ENDED if ended else "")


def guest_line(scenario: BlockScenario, device: str) -> list[str]:
    """fio's arguments. Two of them forbid writing: the rw mode, and --readonly."""
    return [
        "--name=load",
        "--ioengine=libaio",
        "--direct=1",
        "--readonly",
        "--allow_file_create=0",
        # A colon is fio's own between several files.
        f"--filename={device.replace(':', chr(92) + ':')}",
        *fio_counts(scenario),
        "--output-format=json",
    ]


async def _look(watch: Watch) -> None:
    while True:
        await watch.look(LoadPhase.DURING)
        watch.mark()
        await asyncio.sleep(MAPS_EVERY_S)


def _load(finished: Finished, begun_ms: float, ended_ms: float) -> Load:
    try:
        report = read_fio(finished.out)
    except InvalidInput:
        said = (finished.err or finished.out).strip()
        return Load(begun_ms, ended_ms, None, None, said, finished.status)
    said = report.messages or finished.err.strip()
    return Load(begun_ms, ended_ms, None, report.document, said, finished.status)
