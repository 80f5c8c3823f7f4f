"""``vmtune audit``: who changed what and why, and who was refused."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import click

from vmtune.client.connection.http import Document, Query
from vmtune.client.session import CLEAN, DIFFERENCES, Session, pass_session, watchable
from vmtune.client.views.output import line, paint
from vmtune.client.views.render import moment

_COLORS = {"changed": "green", "done": "green", "refused": "yellow", "failed": "red"}
_MAX_CELL = 60


@click.command()
@click.option("--actor", help="Only by this token id or user number.")
@click.option("--action", help="Only this action, such as apply_to_vm.")
@click.option("--outcome", type=click.Choice(list(_COLORS)), help="Only with this outcome.")
@click.option("--about", help="Only where the subject contains this text.")
@click.option("--since", help="Only since this time, such as 2026-11-21T00:00:00Z.")
@click.option("--until", help="Only before this time.")
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="At most so many entries.",
)
@click.option(
    "--export",
    "form",
    type=click.Choice(["jsonl", "csv"]),
    help="Print the whole log, oldest first, one entry per line.",
)
@click.option(
    "--verify", is_flag=True, help="Check the log's hashes; exits 2 if the log was altered."
)
@watchable
@pass_session
def audit(
    session: Session,
    actor: str | None,
    action: str | None,
    outcome: str | None,
    about: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    form: str | None,
    verify: bool,
) -> int:
    """Show the audit log: changes and refused requests, newest first."""
    if verify:
        return _verify(session)
    query: Query = {
        "actor": actor,
        "action": action,
        "outcome": outcome,
        "about": about,
        "since": since,
        "until": until,
    }
    if form is not None:
        for piece in session.client.pieces("/audit/export", {**query, "form": form}):
            click.echo(piece, nl=False)
        return CLEAN
    rows = list(itertools.islice(session.client.items("/audit", query), limit))
    session.show({"items": rows, "next": None}, lambda: _lines(rows))
    return CLEAN


def _verify(session: Session) -> int:
    found = session.client.get("/audit/integrity")
    broken = found["broken_at"]
    if broken is None:
        older = f", {found['dropped']} older entries deleted" if found["dropped"] else ""
        sentence = f"{found['entries']} entries, none altered{older}; the newest is "
        sentence += str(found["newest"])
    else:
        sentence = f"entry {broken} does not match the hash of its predecessor: the log was altered"
    session.report(found, sentence)
    return CLEAN if broken is None else DIFFERENCES


def _lines(rows: list[Document]) -> Iterator[str]:
    if not rows:
        yield "the audit log has no entries"
    for row in rows:
        for text in _entry(row):
            yield from line(text)


def _entry(row: Document) -> Iterator[str]:
    who = row["who"]
    name = " ".join(filter(None, (who["kind"], who["name"] or who["id"])))
    outcome = paint(row["outcome"], _COLORS.get(row["outcome"], ""))
    vm = f" ({row['vm_name']})" if row.get("vm_name") else ""
    yield (
        f"{moment(row['at'])}  #{row['number']:<6} {outcome:<8} {row['action'] or 'service'}  "
        f"{row['subject']}{vm}"
    ).rstrip()
    from_where = f", {row['origin']}" if row["origin"] else ""
    yield f"    by {name}{from_where}"
    if row["reason"]:
        yield f"    reason: {row['reason']!r}"
    if row["codes"]:
        yield f"    {', '.join(row['codes'])}"
    for change in row["changes"]:
        before, after = change["before"] or {}, change["after"] or {}
        if change["before"] is None:
            yield f"    {change['what']} {change['key']} created: {_values(after)}"
        elif change["after"] is None:
            yield f"    {change['what']} {change['key']} deleted: {_values(before)}"
        else:
            changes = ", ".join(f"{k} {_value(before.get(k))} -> {_value(after[k])}" for k in after)
            yield f"    {change['what']} {change['key']}: {changes}"


def _values(values: Document) -> str:
    shown = {key: value for key, value in values.items() if value not in (None, "", [], {})}
    return ", ".join(f"{key} {_value(value)}" for key, value in shown.items())


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_CELL else text[: _MAX_CELL - 3] + "..."
