"""What was set on a migration's two QEMUs before it was prepared there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from vmtune.model.plan.changes import Change


@dataclass(frozen=True, slots=True)
class Prior:
    """What was set on one QEMU.

    :param changes: what has to be set to restore its tunables, in order.
    :param switches: capabilities that are no tunables and that a migration sets, where QEMU has
        them.
    """

    changes: tuple[Change, ...] = ()
    switches: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PriorSettings:
    """What was set on both."""

    source: Prior
    destination: Prior


NotePrior = Callable[[PriorSettings], Awaitable[None]]
"""Records what was set, before anything is. Nothing is set where it fails."""
