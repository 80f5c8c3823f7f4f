"""What the shell completes: names that vmtune knows. Never an error, never a wait."""

# ruff: noqa: PLC0415 - imported where needed: a command is to start in a blink

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from vmtune.client.session import Session
from vmtune.errors import VmtuneError

_ANSWER_WITHIN_S = 1.0


def tunable_names(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Tunables, with what each is."""
    from vmtune.model.tunables.built_in import BUILT_IN

    return [
        CompletionItem(name, help=row.title)
        for name, row in BUILT_IN.items()
        if name.startswith(incomplete)
    ]


def assignments(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """``TUNABLE=``, and its values where they are few."""
    from vmtune.model.tunables.built_in import BUILT_IN
    from vmtune.model.tunables.tunable import Kind

    name, equals, text = incomplete.partition("=")
    if not equals:
        return [
            CompletionItem(f"{item.value}=", help=item.help)
            for item in tunable_names(ctx, parameter, incomplete)
        ]
    row = BUILT_IN.get(name)
    words = ("on", "off") if row and row.kind is Kind.BOOLEAN else row.choices if row else ()
    return [CompletionItem(f"{name}={word}") for word in words if word.startswith(text)]


def hosts(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of hosts."""
    return _names(ctx, "/hosts", incomplete)


def profiles(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of profiles."""
    return _names(ctx, "/profiles", incomplete)


def references(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Ids of published measurements."""
    return _names(ctx, "/reference", incomplete, "id")


def _names(
    ctx: click.Context, path: str, incomplete: str, key: str = "name"
) -> list[CompletionItem]:
    session = ctx.ensure_object(Session)
    try:
        rows = session.connect(_ANSWER_WITHIN_S).get(path, {"limit": 100})["items"]
    except VmtuneError:
        return []
    names = [str(row[key]) for row in rows]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def scenarios(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of scenarios."""
    return _names(ctx, "/scenarios", incomplete)


def qemus(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the QEMUs that benchmarks may run."""
    return _names(ctx, "/qemus", incomplete)


def metric_names(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of the figures of a run."""
    return _names(ctx, "/run-metrics", incomplete)
