"""Groups whose subcommand ``run`` may be left out."""

from __future__ import annotations

import click


class OptionalRun(click.Group):
    """A group that takes what is no subcommand as if ``run`` were before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """With the word that was left out."""
        if self.leaves_out_run(ctx, args):
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def leaves_out_run(self, ctx: click.Context, args: list[str]) -> bool:
        """Whether ``run`` is meant and not said."""
        first = self.first_word(ctx, args)
        return bool(first) and self.get_command(ctx, first) is None

    def first_word(self, ctx: click.Context, args: list[str]) -> str:
        """The first that is neither an option of the group nor an option's value; empty where
        there is none, or the group's help is asked for. An option of ``run`` counts as a word."""
        parser = self.make_parser(ctx)
        parser.ignore_unknown_options = True
        options, rest, _ = parser.parse_args(list(args))
        return "" if options.get("help") or not rest else rest[0]
