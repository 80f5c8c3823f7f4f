"""``vmtune bench``: measure, and look at what was measured."""

from __future__ import annotations

import click

from vmtune.client.lazy import LazyGroup
from vmtune.client.session import common

_HERE = "vmtune.client.commands.bench."
PLACES = {
    "migration": (_HERE + "migration:migration", "Measure live migrations of fresh VMs."),
    "block": (_HERE + "block:block", "Measure block I/O of a QEMU."),
    "boot": (_HERE + "boot:boot", "Measure how long a VM takes to boot."),
    "campaign": (_HERE + "campaign:campaign", "Compare arms in randomised blocks, from a file."),
    "scenarios": (_HERE + "scenarios:scenarios", "List what can be measured, and what not here."),
    "metrics": (_HERE + "scenarios:metrics", "List the figures of a run and what they mean."),
    "runs": (_HERE + "runs:runs", "List the runs, newest first."),
    "show": (_HERE + "runs:show", "Show a run: its figures, and how it came to them."),
    "cancel": (_HERE + "runs:cancel", "End a run that waits or runs."),
    "plot": (_HERE + "files:plot", "Write a picture of a run to a file."),
    "history": (_HERE + "history:history", "Show a metric of a scenario over time."),
    "export": (_HERE + "files:export", "Write a run to a file."),
    "import": (_HERE + "files:import_", "Take over runs from files."),
}
"""Each subcommand: where it is, and its line of help."""


@click.group(cls=LazyGroup, places=PLACES)
@common
def bench() -> None:
    """Measure, and look at what was measured."""
