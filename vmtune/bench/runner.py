"""One run of the migration benchmark, from two fresh QEMUs to a record."""

from __future__ import annotations

from collections.abc import Callable

from vmtune.bench.order import RunOrder, RunProgress, RunResult


async def run_migration(order: RunOrder, on_progress: Callable[[RunProgress], None]) -> RunResult:
    """Start source and destination, warm up, migrate, cool down, and take all down.

    A migration that fails or does not converge is a result, with all that was recorded.
    Cancelling the task ends the run: everything is taken down, and the cancellation goes on.

    :param on_progress: called several times a second, from the event loop.
    :raise VmtuneError: the run cannot be done here (no QEMU, no KVM where it is needed, no lab,
        contradicting values); nothing was left behind.
    """
    raise NotImplementedError
