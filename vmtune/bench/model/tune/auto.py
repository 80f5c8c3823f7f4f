"""``space = "auto"``: every tunable that is worth a search on what a pair of QEMUs offers.

Which and between which values follows from the table of tunables, packs included. A range that is
wider than any search can cover is taken about its default, by factors.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.scenario.block import VIRTIO_QUEUE_SIZE, VIRTIO_QUEUES
from vmtune.bench.model.scenario.boot import SETTABLE
from vmtune.bench.model.tune.space import Dimension, Space, settle, switch_of
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.rows.storage import STORAGE_NAMES
from vmtune.model.tunables.rules import contradictions
from vmtune.model.tunables.tunable import Kind, Route, Tunable, Value

WIDE = 64
"""A range of more values than that is taken about the default."""
ABOUT = 16
"""How many times above and below the default."""
_MOST_SWITCHES = 3
_DISK_QUEUES = frozenset({VIRTIO_QUEUES, VIRTIO_QUEUE_SIZE})
_ROUTES: Mapping[ScenarioKind, frozenset[Route]] = {
    ScenarioKind.MIGRATION: frozenset({Route.MIGRATE, Route.MONITOR, Route.CONTROL}),
    ScenarioKind.BLOCK: frozenset({Route.LIVE}),
    ScenarioKind.BOOT: frozenset(),
    ScenarioKind.SRCU: frozenset(),
}
assert set(_ROUTES) == set(ScenarioKind)

NOT_SEARCHED: Mapping[str, str] = {
    "max_bandwidth_bytes_per_s": "a limit that the operator sets: more is always faster",
    "max_postcopy_bandwidth_bytes_per_s": "a limit that the operator sets: more is always faster",
    "avail_switchover_bandwidth_bytes_per_s": "what the network carries is a fact, not a choice",
    "postcopy": "a failure on the way loses the guest: it has to be named",
    "tls": "encryption is a requirement, not a choice",
    "downtime_limit_ms": "how long the guest may stand still is a requirement: name it to vary it",
    "postcopy_recovery": "acts only where a connection breaks",
    "postcopy_recovery_attempts": "acts only where a connection breaks",
    "postcopy_recovery_within_s": "acts only where a connection breaks",
    "compress": "multifd_compression replaced it",
    "announce_initial_ms": "acts after the migration, which no metric of a run sees",
    "announce_max_ms": "acts after the migration, which no metric of a run sees",
    "announce_rounds": "acts after the migration, which no metric of a run sees",
    "announce_step_ms": "acts after the migration, which no metric of a run sees",
    **dict.fromkeys(STORAGE_NAMES, "a run has no disks to copy"),
}
"""Tunables that ``auto`` leaves out, each with its reason. A study may name them."""


def auto_space(
    kind: ScenarioKind,
    tunables: TunableRegistry,
    offered: Collection[str],
    base: Mapping[str, Value],
) -> Space:
    """The space that "auto" stands for.

    :param tunables: the table, with the packs that are loaded.
    :param offered: the tunables that both QEMUs offer, by name.
    :param base: the scenario's own values: what contradicts them whatever it is set to is left
        out, and what they need to have an effect stays only if another of the space switches it on.
    """
    found = {}
    for name, row in tunables.items():
        if name not in offered or name in NOT_SEARCHED or row.read_only or not _fits(row, kind):
            continue
        dimension = usual_dimension(row)
        if dimension is not None:
            allowed = [value for value in dimension.points(WIDE) if _possible(name, value, base)]
            if dimension.choices and 1 < len(allowed) < len(dimension.choices):
                dimension = Dimension(tuple(allowed))
            if len(allowed) > 1:
                found[name] = dimension
    return _reachable(found, base)


def usual_dimension(row: Tunable) -> Dimension | None:
    """The values that a search of *row* goes over; None where there is nothing to go by."""
    if row.kind is Kind.BOOLEAN:
        return Dimension((False, True))
    if row.kind is Kind.CHOICE:
        return Dimension(row.choices)
    if row.kind is Kind.TEXT or row.minimum is None or row.maximum is None:
        return None
    least, most, usual = row.minimum, row.maximum, row.default
    about = isinstance(usual, int) and usual > 0
    if most - least > WIDE and not about and not row.power_of_two:
        return None
    if most - least > WIDE and about:
        assert isinstance(usual, int)
        least, most = max(least, usual // ABOUT, 1), min(most, usual * ABOUT)
    if row.power_of_two:
        powers = [1 << n for n in range(most.bit_length()) if least <= 1 << n <= most]
        values = ([0] if least == 0 else []) + powers
        return Dimension(tuple(values)) if 1 < len(values) <= WIDE else None
    if least >= most:
        return None
    return Dimension(low=least, high=most, log=least > 0 and most >= least * ABOUT)


def _fits(row: Tunable, kind: ScenarioKind) -> bool:
    if kind is ScenarioKind.BOOT:
        return row.name in SETTABLE
    if row.pack:  # what is set on a running QEMU, before it migrates or serves
        return row.route is Route.LIVE or kind is ScenarioKind.MIGRATION
    return row.route in _ROUTES[kind] or (kind is ScenarioKind.BLOCK and row.name in _DISK_QUEUES)


def _possible(name: str, value: Value, base: Mapping[str, Value]) -> bool:
    """Whether *base* leaves room for it: it breaks no rule but that it has no effect."""
    _, broken = settle({name: value}, base)
    _, before = settle({}, base)
    return len(broken) <= len(before)


def _reachable(space: dict[str, Dimension], base: Mapping[str, Value]) -> Space:
    """Without what has an effect under no setting of the space."""
    return {name: each for name, each in space.items() if _varies(name, space, base)}


def _varies(name: str, space: Mapping[str, Dimension], base: Mapping[str, Value]) -> bool:
    """Whether at least two of its values have an effect, or mean what the default does."""
    count = 0
    for value in space[name].points(WIDE):
        count += _acts({name: value}, name, space, base, _MOST_SWITCHES)
        if count == 2:
            return True
    return False


def _acts(
    settings: Mapping[str, Value],
    name: str,
    space: Mapping[str, Dimension],
    base: Mapping[str, Value],
    more: int,
) -> bool:
    """Whether *name* has an effect under *settings*, or with at most so many more."""
    if name in settle(settings, base)[0]:
        return True
    needed = {
        switch
        for each in contradictions({**base, **settings}, "")
        if each.field in settings and (switch := switch_of(each)) in space
    }
    return more > 0 and any(
        _acts({**settings, switch: value}, name, space, base, more - 1)
        for switch in sorted(needed - settings.keys())
        for value in space[switch].points(WIDE)
    )
