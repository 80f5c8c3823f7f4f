"""One run of the benchmark of updates: a VM of its own, of which a memory slot comes and goes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

from vmtune.bench.machine.srcutree import srcutree
from vmtune.bench.migration.order import RunProgress
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.runs.srcu_record import SrcuRecord
from vmtune.bench.srcu.order import SrcuOrder, SrcuPhase, SrcuResult
from vmtune.hypervisor.linux.srcu import ENDS_WITHIN_S, command, config_hz, cost_of, not_measured


async def run_srcu(order: SrcuOrder, on_progress: Callable[[RunProgress], None]) -> SrcuResult:
    """Time the updates. Cancelling the task ends the program that does it.

    :param on_progress: called at each phase, from the event loop.
    :raise SetupError: they cannot be timed here; nothing was left behind.
    """
    scenario = order.scenario
    on_progress(RunProgress(SrcuPhase.TIMING, 0.0, 0))
    began = time.monotonic()
    vcpus = scenario.cell.vcpus
    said = await _said(command(vcpus, scenario.updates, scenario.max_seconds), scenario.longest_s)
    cost = cost_of(vcpus, said)
    ended_ms = (time.monotonic() - began) * 1000
    on_progress(RunProgress(SrcuPhase.DONE, 1.0, round(ended_ms)))
    record = SrcuRecord(
        cost,
        ended_ms,
        asked=scenario.updates,
        host_kernel=os.uname().release,
        srcutree=srcutree(),
        config_hz=config_hz(),
    )
    return SrcuResult(RunState.COMPLETED if record.complete else RunState.NOT_CONVERGED, record)


async def _said(line: tuple[str, ...], longest_s: float) -> bytes:
    """What the program prints.

    :raise SetupError: it does not start, or does not end.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *line,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise not_measured(str(error)) from error
    try:
        async with asyncio.timeout(longest_s + ENDS_WITHIN_S):
            out, errors = await process.communicate()
    except TimeoutError as error:
        raise not_measured(f"it did not end within {longest_s + ENDS_WITHIN_S:g} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        last = errors.decode(errors="replace").strip().splitlines()[-1:]
        raise not_measured(last[0] if last else f"it ended with {process.returncode}")
    return out
