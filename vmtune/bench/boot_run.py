"""One run of the boot benchmark, from QEMU's process to the guest's user space."""

from __future__ import annotations

from collections.abc import Callable

from vmtune.bench.boot_order import BootOrder, BootPhase, BootProgress, BootResult

__all__ = ["BootOrder", "BootPhase", "BootProgress", "BootResult", "run_boot"]


async def run_boot(order: BootOrder, on_progress: Callable[[BootProgress], None]) -> BootResult:
    """Start a fresh QEMU, watch it boot, and take it down.

    A boot that is given up, or whose QEMU dies, is a result, with all that was recorded.
    Cancelling the task ends the run: everything is taken down, and the cancellation goes on.

    :param on_progress: called at each phase and several times a second, from the event loop.
    :raise VmtuneError: the boot cannot be done here (no QEMU, no firmware, no KVM where it is
        needed, no kernel to be had); nothing was left behind.
    """
    raise NotImplementedError
