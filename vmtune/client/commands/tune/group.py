"""``vmtune tune``: from a file or by options, and what is done with studies."""

from __future__ import annotations

import click

from vmtune.client.lazy import LazyGroup
from vmtune.client.optional_run import OptionalRun
from vmtune.client.session import common

_HERE = "vmtune.client.commands.tune."
COMMANDS = {
    "run": (_HERE + "run:run", "Start a study and watch it; the word run is optional."),
    "list": (_HERE + "studies:list_studies", "List studies, newest first."),
    "show": (_HERE + "studies:show", "Show a study, its trials and its result."),
    "watch": (_HERE + "run:watch", "Watch a study until it ends."),
    "pause": (_HERE + "studies:pause", "Pause a study: start no more runs."),
    "resume": (_HERE + "studies:resume", "Resume a paused study."),
    "cancel": (_HERE + "studies:cancel", "Cancel a study; what was measured is kept."),
}
"""Each subcommand: its module and its line of help."""


class _Group(OptionalRun, LazyGroup):
    """Takes a file, or the options of ``run``, in the place of a subcommand."""


@click.group(cls=_Group, commands=COMMANDS, subcommand_metavar="STUDY.toml | COMMAND [ARGS]...")
@common
def tune() -> None:
    """Find better settings for a scenario, and prove that they are better.

    STUDY.toml names a scenario, the tunables to vary, the objective and a budget; the options of
    `vmtune tune run` do, too. The best few are compared with the default in a campaign of fresh
    runs: only its verdict counts. A winner becomes a profile that is assigned to nothing.
    """
