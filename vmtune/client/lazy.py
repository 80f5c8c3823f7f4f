"""A group whose subcommands are imported only when they are called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click


class LazyGroup(click.Group):
    """A group that knows its subcommands by name, place and one line of help.

    :param places: ``{name: ("module:attribute", "one line of help")}``. The line is here
        so that the help page needs none of the modules.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        places: Mapping[str, tuple[str, str]] | None = None,
        **attributes: object,
    ) -> None:
        super().__init__(name, **attributes)  # type: ignore[arg-type]  # click's own keywords
        self.places: Mapping[str, tuple[str, str]] = places or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order in which people should read them."""
        return list(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand, imported now."""
        if cmd_name not in self.places:
            return None
        module, _, attribute = self.places[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command), self.places[cmd_name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The help page's list of commands, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.places.items()])
