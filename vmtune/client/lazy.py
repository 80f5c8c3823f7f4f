"""A group whose subcommands are imported only when they are called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence

import click


class LazyGroup(click.Group):
    """A group that knows its subcommands by name, module and one line of help.

    :param commands: ``{name: ("module:attribute", "one line of help")}``. The line is here
        so that the help page needs none of the modules. Empty: the command is hidden.
        Commands may be added as to any group too.
    :param sections: titles of the help page with the names below each; one list without.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        commands: Mapping[str, tuple[str, str]] | None = None,
        sections: Mapping[str, Sequence[str]] | None = None,
        **attributes: object,
    ) -> None:
        super().__init__(name, **attributes)  # type: ignore[arg-type]  # click's own keywords
        self.commands_by_name: Mapping[str, tuple[str, str]] = commands or {}
        self.sections: Mapping[str, Sequence[str]] = sections or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order in which people should read them."""
        return [name for name, _ in self._lines()] + super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand, imported now."""
        if cmd_name not in self.commands_by_name:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self.commands_by_name[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command), self.commands_by_name[cmd_name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The help page's list of commands: lazy ones from the table alone."""
        lines = dict(self._lines())
        widest = max(map(len, lines), default=0)
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), lines[name]) for name in names])
        if self.sections:
            return
        with formatter.section("Commands"):
            formatter.write_dl(
                self._lines()
                + [(n, c.get_short_help_str(limit=80)) for n, c in sorted(self.commands.items())]
            )

    def _lines(self) -> list[tuple[str, str]]:
        return [(name, line) for name, (_, line) in self.commands_by_name.items() if line]
