"""What vmtune does to a QEMU while it migrates, over any monitor."""

from __future__ import annotations

from vmtune.errors import CommandRefused
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.model.host.dirty_rates import DirtyRates, read_query_dirty_rate

ALREADY_MEASURING = "already_measuring"
"""Code of the refusal while another client measures dirty rates."""

_IN_MS = {"calc-time-unit": "millisecond"}
_BUSY = "already being measured"  # qmp_calc_dirty_rate in QEMU's migration/dirtyrate.c


async def measure_dirty_rates(monitor: Monitor, over_ms: int) -> None:
    """Begin a measurement in the mode ``dirty-ring``; see
    :meth:`vmtune.hypervisor.protocol.Driver.measure_dirty_rates`.

    QEMU has the mode since 7.0 and milliseconds since 8.2. At the end of the time it empties the
    rings of all vCPUs, and switches its tracking off again (migration/dirtyrate.c,
    calculate_dirtyrate_dirty_ring).
    """
    arguments = {"mode": "dirty-ring", "calc-time": over_ms, **_IN_MS}
    try:
        await monitor.execute("calc-dirty-rate", arguments)
    except CommandRefused as refusal:
        if _BUSY not in refusal.message:
            raise
        raise CommandRefused(
            refusal.message,
            code=ALREADY_MEASURING,
            remedy="wait until that measurement has ended",
        ) from refusal


async def dirty_rates(monitor: Monitor) -> DirtyRates:
    """The last measurement; see :meth:`vmtune.hypervisor.protocol.Driver.dirty_rates`."""
    reply = await monitor.execute("query-dirty-rate", _IN_MS)
    with reading_reply("its dirty rate"):
        return read_query_dirty_rate(reply)
