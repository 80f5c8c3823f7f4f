"""The kinds of benchmarks: what their scenarios, their records and their metrics go by."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class ScenarioKind(StrEnum):
    """What is measured. The word is ``kind`` in a scenario's JSON; without it, a migration."""

    MIGRATION = "migration"
    """A live migration between two fresh VMs."""
    BLOCK = "block"
    """Block I/O of a QEMU without a guest."""
    BOOT = "boot"
    """The boot of a fresh VM."""
    SRCU = "srcu"
    """Updates of a VM's memory map, each of which waits for SRCU grace periods."""


def kind_of_setup(setup: Mapping[str, object]) -> ScenarioKind:
    """The kind of a scenario from its JSON, as a run keeps it."""
    try:
        return ScenarioKind(str(setup.get("kind", ScenarioKind.MIGRATION.value)))
    except ValueError:  # of a later version: as much of it as can be is shown all the same
        return ScenarioKind.MIGRATION
