"""The reaper of a migration's record, and whether the migration may start without it."""

from __future__ import annotations

from contextlib import suppress

import structlog

from vmtune.engine.notes import Hosts
from vmtune.engine.reaper.settings import ReaperSettings, wanted_reaper
from vmtune.errors import CommandRefused, InvalidInput, VmtuneError
from vmtune.model.migration.controller_record import ReaperReport
from vmtune.model.migration.record import Migration
from vmtune.model.plan.outcome import Status

log = structlog.get_logger(__name__)


def reaper_of(record: Migration) -> ReaperSettings | None:
    """The record's reaper. A migration does not fail because of settings that an older vmtune
    accepted and this one does not."""
    rejected = {o.tunable for o in record.outcomes if o.status is Status.REJECTED}
    try:
        return wanted_reaper({n: v for n, v in record.wanted.items() if n not in rejected})
    except (InvalidInput, ValueError) as error:
        log.warning("no reaper", reason=str(error))
        return None


async def full_rings_kill(hosts: Hosts) -> bool:
    """Whether the source's kernel empties rings in part, so that the reaper may make no pause;
    see :mod:`vmtune.model.preflight.rings`."""
    with suppress(VmtuneError):
        return (await (await hosts.source()).host_facts()).ring_reset_ends_early is True
    return False


def refuse_without_reaper(record: Migration, report: ReaperReport | None) -> None:
    """Refuse to start without the reaper, unless somebody has accepted that.

    :param report: of the reaper that could not begin; None without one.
    :raise CommandRefused: a full ring can end the guest.
    """
    if "ring_without_reaper" in record.overrides or report is None:
        return
    why = report.reason or "somebody else measures the VM's dirty rate"
    raise CommandRefused(
        f"the reaper could not begin ({why}), and without it a full ring can end the guest",
        field="values.reaper_policy",
        code="ring_without_reaper",
        remedy="migrate it again later, or override ring_without_reaper",
    )
