"""The tunables that this process's benchmarks can set: vmtune's own, and those of its packs.

A scenario is read from its document alone, in many places, and from records, too; so the table
belongs to the process. The wiring chooses it once, before anything is read, and so do the processes
that do heavy work. Without a choice it is vmtune's own.
"""

from __future__ import annotations

from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.registry import TunableRegistry

_chosen: TunableRegistry = BUILT_IN


def settable() -> TunableRegistry:
    """The table."""
    return _chosen


def choose(tunables: TunableRegistry) -> None:
    """Use *tunables* from now on."""
    global _chosen  # noqa: PLW0603 - see above
    _chosen = tunables
