"""Changing how disks are copied while they are, over any monitor."""

from __future__ import annotations

from collections.abc import Collection

from vmtune.errors import CommandRefused, TooLate
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qemu.replies import reading_reply

_COPIES = ("created", "running", "paused", "ready", "standby")
"""States of a job that has not ended (JobStatus of qapi/job.json)."""


async def help_copies(
    monitor: Monitor, jobs: Collection[str], bytes_per_s: int | None, *, synchronous: bool
) -> None:
    """As :meth:`vmtune.hypervisor.protocol.Driver.help_copies`.

    :param jobs: the names of those that copy the disks.
    """
    reply = await monitor.execute("query-jobs")
    with reading_reply("its jobs"):
        going = [str(job["id"]) for job in reply if str(job["status"]) in _COPIES]
    named = [job for job in going if job in jobs]
    if not named:
        raise TooLate("no disk is copied right now", field="migration")
    for job in named:
        if bytes_per_s is not None:
            await monitor.execute("block-job-set-speed", {"device": job, "speed": bytes_per_s})
        if synchronous:
            await _write_along(monitor, job)


async def _write_along(monitor: Monitor, job: str) -> None:
    change = {"id": job, "type": "mirror", "copy-mode": "write-blocking"}
    try:
        await monitor.execute("block-job-change", change)
    except CommandRefused as refusal:
        if "has not been found" not in refusal.message:
            raise
        raise CommandRefused(
            "QEMU lets the guest's writes wait while a copy runs since 8.2, and this one is older",
            field="values.copy_synchronous_writes",
            code="copy_mode_fixed",
            remedy="raise the bandwidth, or begin the migration with copy_synchronous_writes",
        ) from refusal
