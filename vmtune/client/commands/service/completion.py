"""``vmtune completion``: the shell's completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from vmtune.client.session import common


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@common
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    To enable it: eval "$(vmtune completion bash)"."""
    root = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(root, {}, "vmtune", "_VMTUNE_COMPLETE").source())
