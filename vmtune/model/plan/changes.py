"""Changes to a running QEMU, and the order in which QEMU accepts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vmtune.model.host.facts import Reading
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import QmpKind, Route, Value


@dataclass(frozen=True, slots=True)
class Change:
    """Set *tunable* to *value*.

    :param owner: the part it belongs to (``iothread1``) where parts differ; empty for
        all parts, or where there are none.
    """

    tunable: str
    value: Value
    owner: str = ""


Readings = Mapping[str, Reading]
AT_START = frozenset(row.name for row in BUILT_IN.on(Route.BOOT))
"""Tunables that are set for the VM's next start."""
OF_HOST = frozenset(row.name for row in BUILT_IN.on(Route.HOST))
"""Tunables of the host."""


def spread(changes: Iterable[Change], readings: Readings) -> list[Change]:
    """One change for each part, where a tunable has parts and the change names none."""
    out: list[Change] = []
    for change in changes:
        parts = readings.get(change.tunable, Reading(None)).parts
        if change.owner or not parts:
            out.append(change)
        else:
            out.extend(Change(change.tunable, change.value, owner) for owner in parts)
    return out


def undo(changes: Iterable[Change], readings: Readings) -> list[Change]:
    """The changes that restore what *readings* had. What was unreadable cannot be restored."""
    prior: list[Change] = []
    for change in spread(changes, readings):
        reading = readings.get(change.tunable, Reading(None))
        value = reading.parts.get(change.owner) if change.owner else reading.value
        if value is not None:
            prior.append(Change(change.tunable, value, change.owner))
    return prior


def _current(change: Change, readings: Readings) -> Value | None:
    reading = readings.get(change.tunable, Reading(None))
    return reading.parts.get(change.owner) if change.owner else reading.value


_PARAMETERS = frozenset(row.name for row in BUILT_IN.by_qmp(QmpKind.PARAMETER).values())
_CAPABILITIES = frozenset(row.name for row in BUILT_IN.by_qmp(QmpKind.CAPABILITY).values())


def in_order(changes: Iterable[Change], readings: Readings) -> list[Change]:
    """*changes* in an order in which QEMU accepts each, given what is set now.

    - Parameters before capabilities, so that compression is none before zero-copy goes
      on; the other way round when compression goes on, so that zero-copy is off before
      (QEMU migration/options.c: migrate_params_check, migrate_caps_check).
    - A first throttle step that would pass the present maximum comes after the new maximum;
      QEMU takes all parameters in one command, so a driver sends them together.
    - What packs add comes with the objects' properties, after both.
    - Thread pools: where the new least passes the present most, raise the most first, else
      set the least first (QEMU util/async.c: aio_context_set_thread_pool_params).
    """
    everything = spread(changes, readings)
    parameters = [c for c in everything if c.tunable in _PARAMETERS]
    capabilities = [c for c in everything if c.tunable in _CAPABILITIES]
    rest = [c for c in everything if c.tunable not in _PARAMETERS | _CAPABILITIES]
    compresses = any(c.tunable == "multifd_compression" and c.value != "none" for c in parameters)
    first, second = (capabilities, parameters) if compresses else (parameters, capabilities)
    return [*first, *second, *_pools_in_order(rest, readings)]


def _pools_in_order(changes: list[Change], readings: Readings) -> list[Change]:
    """*changes* with each pair of thread-pool limits the right way round."""
    out = list(changes)
    for low in changes:
        if not low.tunable.endswith("_thread_pool_min"):
            continue
        partner = low.tunable.removesuffix("_min") + "_max"
        high = next((c for c in changes if c.tunable == partner and c.owner == low.owner), None)
        if high is None:
            continue
        max_now = _current(high, readings)
        raises = isinstance(max_now, int) and int(low.value) > max_now
        pair = (high, low) if raises else (low, high)
        positions = sorted((out.index(low), out.index(high)))
        for position, change in zip(positions, pair, strict=True):
            out[position] = change
    return out
