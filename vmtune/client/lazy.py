"""A group whose subcommands are imported only when they are called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click


class LazyGroup(click.Group):
    """A group that knows its subcommands by name, module and one line of help.

    :param commands: ``{name: ("module:attribute", "one line of help")}``. The line is here
        so that the help page needs none of the modules.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        commands: Mapping[str, tuple[str, str]] | None = None,
        **attributes: object,
    ) -> None:
        super().__init__(name, **attributes)  # type: ignore[arg-type]  # click's own keywords
        self.commands_by_name: Mapping[str, tuple[str, str]] = commands or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order in which people should read them."""
        return list(self.commands_by_name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand, imported now."""
        if cmd_name not in self.commands_by_name:
            return None
        module, _, attribute = self.commands_by_name[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command), self.commands_by_name[cmd_name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The help page's list of commands, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.commands_by_name.items()])
