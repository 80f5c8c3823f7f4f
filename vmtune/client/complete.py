"""What the shell completes: names that vmtune knows. Never an error, never a wait."""

# ruff: noqa: PLC0415 - imported where needed: a command is to start in a blink

from __future__ import annotations

from collections.abc import Iterable, Mapping

import click
from click.shell_completion import CompletionItem

from vmtune.client.connection.http import Document
from vmtune.client.ids import short
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


def vms(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of VMs, with their hosts."""
    found = _rows(ctx, "/vms", {"search": incomplete} if incomplete else {})
    return _items(((row["name"], f"on {row['host']}") for row in found), incomplete)


def migrations(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Short ids of the newest migrations, with what each is."""
    found = _rows(ctx, "/migrations")
    return _items(
        (
            (short(row["id"]), f"{row['vm_name']} to {row['destination']}, {row['state']}")
            for row in found
        ),
        incomplete,
    )


def evacuations(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Short ids of the newest evacuations, with what each is."""
    found = _rows(ctx, "/evacuations")
    return _items(
        ((short(row["id"]), f"{row['host']}, {row['state']}") for row in found), incomplete
    )


def applications(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Short ids of the newest applications, with what each is."""
    found = _rows(ctx, "/applications")
    return _items(
        ((short(row["id"]), f"{row['profile']} on {row['host']}, {row['state']}") for row in found),
        incomplete,
    )


def runs_by_id(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Short ids of the newest runs, with what each is."""
    found = _rows(ctx, "/runs")
    return _items(
        ((short(row["id"]), f"{row['scenario']}, {row['state']}") for row in found), incomplete
    )


def campaigns(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of the newest campaigns, with their states."""
    found = _rows(ctx, "/campaigns")
    return _items(((row["name"], row["state"]) for row in found), incomplete)


def studies(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of the newest studies, with their states."""
    found = _rows(ctx, "/studies")
    return _items(((row["name"], row["state"]) for row in found), incomplete)


def schedules(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of scheduled campaigns."""
    return _names(ctx, "/schedules", incomplete)


def tokens(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of active tokens."""
    found = (row for row in _rows(ctx, "/tokens") if row["state"] == "active")
    return _items(((row["name"], f"token {row['id']}") for row in found), incomplete)


def browsers(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Short ids of signed-in browsers, with where they are."""
    found = _rows(ctx, "/browsers")
    return _items(((short(row["id"]), f"from {row['address']}") for row in found), incomplete)


def references(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Ids of published measurements."""
    return _names(ctx, "/reference", incomplete, "id")


def _names(
    ctx: click.Context, path: str, incomplete: str, key: str = "name"
) -> list[CompletionItem]:
    return _items(((str(row[key]), "") for row in _rows(ctx, path)), incomplete)


def _rows(ctx: click.Context, path: str, query: Mapping[str, str] | None = None) -> list[Document]:
    """The first 100 of a list; none if the service does not answer at once."""
    session = ctx.ensure_object(Session)
    try:
        items = session.connect(_ANSWER_WITHIN_S).get(path, {**(query or {}), "limit": 100})[
            "items"
        ]
    except VmtuneError:
        return []
    return list(items)


def _items(found: Iterable[tuple[str, str]], incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(word, help=help or None)
        for word, help in dict(found).items()
        if word.startswith(incomplete)
    ]


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
