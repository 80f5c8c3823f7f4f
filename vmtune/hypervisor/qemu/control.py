"""What vmtune does to a QEMU while it migrates, over any monitor."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping

from vmtune.errors import CommandRefused, Conflict
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qemu.names import capabilities
from vmtune.hypervisor.qemu.qom import children_of
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.model.host.dirty_rates import (
    DirtyPoint,
    DirtyRates,
    read_query_dirty_rate,
    read_sampled,
)

ALREADY_MEASURING = "already_measuring"
"""Code of the refusal while another client measures dirty rates."""
WHOLE_SECONDS = "whole_seconds"
"""Code of the refusal of a time that QEMU cannot measure."""

_IN_MS = {"calc-time-unit": "millisecond"}
_MS_IN_S = 1000
_SAMPLED_WITHIN_S = 15.0
"""Hashing the samples takes time, twice."""
_LOOK_EVERY_S = 0.02
_PAIR = ("multifd", "postcopy-ram")
_EXCLUDES_THEM = "background-snapshot"
_EXCLUDED = "not yet compatible with multifd"  # migrate_caps_check of QEMU 8.0 to 10.0
_BUSY = "already being measured"  # qmp_calc_dirty_rate in QEMU's migration/dirtyrate.c


def already_migrating() -> Conflict:
    """The refusal to begin a migration while another's runs: nothing of that one is touched."""
    return Conflict(
        "the VM is being migrated already, by another client",
        field="vm",
        code="already_migrating",
        remedy="wait until that has ended, or abort it",
    )


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
        raise _already_measuring(refusal) from refusal


async def dirty_rates(monitor: Monitor) -> DirtyRates:
    """The last measurement; see :meth:`vmtune.hypervisor.protocol.Driver.dirty_rates`."""
    reply = await monitor.execute("query-dirty-rate", _IN_MS)
    with reading_reply("its dirty rate"):
        return read_query_dirty_rate(reply)


async def sample_dirtied(monitor: Monitor, over_ms: int, pages_per_gib: int) -> DirtyPoint:
    """What the guest changes in *over_ms* milliseconds; see
    :meth:`vmtune.hypervisor.protocol.Driver.sample_dirtied`.

    Sampled pages are hashed at the beginning and at the end (migration/dirtyrate.c,
    calculate_dirtyrate_sample_vm): nothing is tracked, and nothing stays switched on.
    """
    in_ms = await _begin_sampling(monitor, over_ms, pages_per_gib)
    deadline = time.monotonic() + over_ms / 1000 + _SAMPLED_WITHIN_S
    await asyncio.sleep(over_ms / 1000)
    while True:
        reply = await monitor.execute("query-dirty-rate", _IN_MS if in_ms else {})
        with reading_reply("its dirty rate"):
            found = read_sampled(reply, 1 if in_ms else _MS_IN_S)
        if found is not None:
            return found
        if time.monotonic() > deadline:
            raise CommandRefused(
                f"QEMU has not measured within {_SAMPLED_WITHIN_S:g} s more than it was told to",
                field="vm",
                code="not_measured",
                remedy="ask again; the VM's host may be overloaded",
            )
        await asyncio.sleep(_LOOK_EVERY_S)


async def _begin_sampling(monitor: Monitor, over_ms: int, pages_per_gib: int) -> bool:
    """Whether it counts in milliseconds."""
    asked = {"mode": "page-sampling", "sample-pages": pages_per_gib}
    try:
        await monitor.execute("calc-dirty-rate", {**asked, "calc-time": over_ms, **_IN_MS})
    except CommandRefused as refusal:
        if _BUSY in refusal.message:
            raise _already_measuring(refusal) from refusal
        if "calc-time-unit" not in refusal.message:
            raise
        if over_ms % _MS_IN_S:
            raise CommandRefused(
                "this QEMU measures dirtied memory in whole seconds: milliseconds came with 8.2",
                code=WHOLE_SECONDS,
                remedy="measure whole seconds",
            ) from refusal
    else:
        return True
    await monitor.execute("calc-dirty-rate", {**asked, "calc-time": over_ms // _MS_IN_S})
    return False


def _already_measuring(refusal: CommandRefused) -> CommandRefused:
    return CommandRefused(
        refusal.message,
        code=ALREADY_MEASURING,
        remedy="wait until that measurement has ended",
    )


async def objects(monitor: Monitor) -> Collection[str]:
    """The ids of QEMU's objects; see :meth:`vmtune.hypervisor.protocol.Driver.objects`."""
    reply = await children_of(monitor, "/objects")
    return frozenset(row["name"] for row in reply if row["type"].startswith("child<"))


async def lift_dirty_limit(monitor: Monitor) -> None:
    """Let the vCPUs write as they like; see
    :meth:`vmtune.hypervisor.protocol.Driver.lift_dirty_limit`.

    QEMU lifts it where a migration is cancelled (migration_cancel in migration/migration.c), and
    not where it fails: it stays though the capability is switched off.
    """
    await monitor.execute("cancel-vcpu-dirty-limit")


async def takes_postcopy_with_multifd(monitor: Monitor) -> bool | None:
    """Whether QEMU takes the two capabilities together; see
    :meth:`vmtune.hypervisor.protocol.Driver.takes_postcopy_with_multifd`.

    It is asked for both and for a third that excludes each of them, of which QEMU complains after
    the pair (migrate_caps_check in migration/options.c). So it refuses in any case, and sets
    nothing: a request is executed as a whole or not at all.
    """
    reply = await monitor.execute("query-migrate-capabilities")
    with reading_reply("its capabilities"):
        known = capabilities(reply)
    names = (*_PAIR, _EXCLUDES_THEM)
    if not known.keys() >= set(names):
        return None
    if all(known[name] for name in _PAIR):
        return True
    try:
        await monitor.execute("migrate-set-capabilities", _states(dict.fromkeys(names, True)))
    except CommandRefused as refusal:
        if _EXCLUDED in refusal.message:
            return False
        return True if _EXCLUDES_THEM in refusal.message.lower() else None
    await monitor.execute("migrate-set-capabilities", _states({n: known[n] for n in names}))
    return True


def _states(wanted: Mapping[str, bool]) -> dict[str, object]:
    rows = [{"capability": name, "state": on} for name, on in wanted.items()]
    return {"capabilities": rows}
