"""``vmtune bench``: measure, and show results."""

from __future__ import annotations

import click

from vmtune.client.lazy import LazyGroup
from vmtune.client.session import common

_HERE = "vmtune.client.commands.bench."
COMMANDS = {
    "migration": (_HERE + "migration:migration", "Measure live migrations of new VMs."),
    "block": (_HERE + "block:block", "Measure block I/O of a QEMU."),
    "boot": (_HERE + "boot:boot", "Measure how long a VM takes to boot."),
    "srcu": (_HERE + "srcu:srcu", "Measure what updates of a VM's memory map cost."),
    "campaign": (_HERE + "campaign:campaign", "Compare arms in randomised blocks, from a file."),
    "scenarios": (_HERE + "scenarios:scenarios", "List the scenarios, and which can run here."),
    "metrics": (_HERE + "scenarios:metrics", "List the metrics of a run and their meaning."),
    "runs": (_HERE + "runs:runs", "List the runs, newest first."),
    "show": (_HERE + "runs:show", "Show a run: its metrics and conditions."),
    "cancel": (_HERE + "runs:cancel", "Cancel a queued or running run."),
    "plot": (_HERE + "files:plot", "Write the plots of a run to a file."),
    "history": (_HERE + "history:history", "Show a metric of a scenario over time."),
    "changes": (_HERE + "trends:changes", "List changes of metrics over time."),
    "triage": (_HERE + "trends:triage", "Decide about a CHANGE: known, accepted or to-fix."),
    "schedule": (_HERE + "trends:schedule", "Start campaigns again and again."),
    "export": (_HERE + "files:export", "Write a run to a file; with --dataset all migrations."),
    "import": ("vmtune.admin.commands.import_runs:import_", "Import runs from files."),
}
"""Each subcommand: its module and its line of help."""


@click.group(cls=LazyGroup, commands=COMMANDS)
@common
def bench() -> None:
    """Run benchmarks and show their results."""
