"""``vmtune profile``: named sets of tunable values, and their revisions."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import click

from vmtune.client.complete import assignments, profiles
from vmtune.client.connection.errors import Refused
from vmtune.client.connection.http import Client, Document, segment
from vmtune.client.intent_options import intent_options
from vmtune.client.session import Session, common, listing, pass_session
from vmtune.client.steps import given_steps, in_words, step_options
from vmtune.client.values import RawValues, parse_assignments, read_file
from vmtune.client.views import render
from vmtune.client.views.controllers import step_lines
from vmtune.client.views.output import Column, fields, table
from vmtune.errors import InvalidInput, StaleRevision
from vmtune.units import Unit, UnitError, parse

_STALE = 412
_MEMORY = click.option(
    "--memory",
    metavar="SIZE",
    help="The guest's memory, such as 8GiB: some templates wait for so many seconds per GiB.",
)


def _path(name: str) -> str:
    return f"/profiles/{segment(name)}"


@click.group()
@common
def profile() -> None:
    """Profiles: named sets of tunable values. Each change makes a new revision."""


@profile.command()
@click.argument("name")
@click.argument("values", nargs=-1, metavar="[TUNABLE=VALUE]...", shell_complete=assignments)
@click.option(
    "--file",
    "file",
    type=click.Path(path_type=Path),
    help="A .toml or .json file with a [values] table and optional steps; arguments override it.",
)
@click.option(
    "--template",
    "template",
    metavar="TEMPLATE",
    help="Begin with the values and steps of a template (`vmtune profile templates`); a file and "
    "arguments override them.",
)
@_MEMORY
@step_options
@intent_options
@click.option("--description", default=None, help="Description of the profile.")
@click.option("--note", default=None, help="Note for the first revision.")
@common
@pass_session
def create(
    session: Session,
    name: str,
    values: tuple[str, ...],
    file: Path | None,
    template: str | None,
    memory: str | None,
    step_texts: tuple[str, ...],
    steps_file: Path | None,
    description: str | None,
    note: str | None,
    intent: Document | None,
) -> None:
    """Create a profile, such as: vmtune profile create fast multifd=on multifd_channels=8."""
    given = parse_assignments(values)
    begun = _template(session.client, template, memory)
    stored = {**begun, **(read_file(file) if file else {})}
    steps = given_steps(step_texts, steps_file)
    body = {
        "name": name,
        "values": {**begun["values"], **stored["values"], **given},
        "steps": in_words(stored.get("steps", []), file) if steps is None else steps,
        "description": description if description is not None else stored.get("description", ""),
        "note": note if note is not None else stored.get("note", ""),
        "intent": intent,
    }
    made = session.client.post("/profiles", body)
    session.show(made, lambda: _profile_lines(made))


@profile.command()
@_MEMORY
@listing
@pass_session
def templates(session: Session, memory: str | None) -> None:
    """List templates to begin a profile with.

    `vmtune profile create NAME --template TEMPLATE` takes one; `-o yaml` shows what each sets.
    """
    page = session.client.get("/profile-templates", _memory_query(memory))
    columns = (
        Column("TEMPLATE", field="name"),
        Column("FOR", field="title", wraps=True),
        Column("DESCRIPTION", wraps=True),
        Column("SOURCE", wraps=True, spare=1),
    )

    def cells(row: Document) -> tuple[str, ...]:
        return row["name"], row["title"], row["description"], row["source"]

    session.show_list(page, columns, cells, "no templates")


def _template(client: Client, name: str | None, memory: str | None) -> Document:
    """The values, the steps and the description of a template; none without a name."""
    if name is None:
        if memory is not None:
            raise InvalidInput("needs --template", field="--memory")
        return {"values": {}}
    page = client.get("/profile-templates", _memory_query(memory))  # they are one page
    found = {row["name"]: row for row in page["items"]}
    if name not in found:
        near = " or ".join(difflib.get_close_matches(name, found, n=3))
        raise InvalidInput(
            f"there is no template named {name}",
            field="--template",
            remedy=f"did you mean {near}?" if near else "see `vmtune profile templates`",
        )
    return {part: found[name][part] for part in ("values", "steps", "description")}


def _memory_query(memory: str | None) -> dict[str, str]:
    if memory is None:
        return {}
    try:
        return {"memory_bytes": str(parse(memory, Unit.BYTES))}
    except UnitError as error:
        raise InvalidInput(str(error), field="--memory", remedy="write 8GiB") from None


@profile.command("set")
@click.argument("name", shell_complete=profiles)
@click.argument(
    "changes", nargs=-1, metavar="TUNABLE=VALUE|TUNABLE-...", shell_complete=assignments
)
@step_options
@click.option("--no-steps", is_flag=True, help="Remove all steps.")
@intent_options
@click.option("--note", default="", help="Note for this revision.")
@click.option("--description", help="Description of the profile; it alone makes no new revision.")
@common
@pass_session
def set_(
    session: Session,
    name: str,
    changes: tuple[str, ...],
    step_texts: tuple[str, ...],
    steps_file: Path | None,
    no_steps: bool,
    note: str,
    description: str | None,
    intent: Document | None,
) -> None:
    """Change values of a profile; TUNABLE- unsets one. Makes a new revision.

    Given steps replace all steps of the profile.
    """
    values = parse_assignments(changes, unset=True)
    steps = given_steps(step_texts, steps_file)
    if no_steps and steps is not None:
        raise InvalidInput("excludes --step and --steps", field="--no-steps")
    steps = [] if no_steps else steps
    if not values and description is None and steps is None and intent is None:
        raise InvalidInput(
            "no change is given", field="TUNABLE=VALUE", remedy="give at least one tunable"
        )
    before = session.client.request("GET", _path(name))
    body: dict[str, object] = {"values": values, "note": note}
    if steps is not None:
        body["steps"] = steps
    if intent is not None:
        body["intent"] = intent
    if description is not None:
        body["description"] = description
    try:
        after = session.client.patch(_path(name), body, before.etag)
    except Refused as error:
        if error.status != _STALE:
            raise
        raise _moved_on(session.client, name, before.document, values) from error
    session.show(after, lambda: _change_lines(before.document, after))


def _moved_on(client: Client, name: str, before: Document, values: RawValues) -> StaleRevision:
    """What another user changed between our reading and our writing."""
    now = client.get(_path(name))
    changed = ", ".join(difference_words(before, now)) or "no value"
    both = sorted(values.keys() & _differing(before["values"], now["values"]))
    clash = f"; you also changed {', '.join(both)}" if both else ""
    return StaleRevision(
        f"{name} changed meanwhile from revision {before['revision']} to {now['revision']}, "
        f"which changed {changed}{clash}",
        field="If-Match",
        remedy="repeat the command to apply your change to the new revision",
    )


def _differing(old: Document, new: Document) -> set[str]:
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def difference_words(old: Document, new: Document) -> list[str]:
    """``multifd_channels from 4 to 8`` for each difference between two revisions."""
    before, after = old["texts"], new["texts"]
    return [
        f"{name} from {before.get(name, 'unset')} to {after.get(name, 'unset')}"
        for name in sorted(_differing(old["values"], new["values"]))
    ] + [f"{name} from {was or 'none'} to {now or 'none'}" for name, was, now in _steps(old, new)]


def _steps(old: Document, new: Document) -> Iterator[tuple[str, str, str]]:
    """Each step by its place that differs between two revisions."""
    pairs = zip_longest(old["step_texts"], new["step_texts"], fillvalue="")
    for number, (was, now) in enumerate(pairs, start=1):
        if was != now:
            yield f"step {number}", was, now


@profile.command()
@click.argument("name", shell_complete=profiles)
@click.option("--revision", type=click.IntRange(min=1), help="Older revision.")
@common
@pass_session
def show(session: Session, name: str, revision: int | None) -> None:
    """Show a profile's values."""
    if revision is None:
        found = session.client.get(_path(name))
        session.show(found, lambda: _profile_lines(found))
        return
    older = session.client.get(f"{_path(name)}/revisions/{revision}")
    session.show(older, lambda: _profile_lines(older))


@profile.command("list")
@listing
@pass_session
def list_(session: Session) -> None:
    """List the profiles."""
    rows = list(session.client.items("/profiles"))
    columns = (
        Column("NAME"),
        Column("REVISION", right=True),
        Column("TUNABLES", right=True, field="values", spare=2),
        Column("CHANGED", field="revised_at", spare=1),
        Column("DESCRIPTION", wraps=True),
    )

    def cells(row: Document) -> tuple[str, ...]:
        return (
            row["name"],
            str(row["revision"]),
            str(len(row["values"])),
            render.moment(row["revised_at"]),
            row["description"],
        )

    empty = "no profiles; create one with `vmtune profile create NAME TUNABLE=VALUE`"
    session.show_list({"items": rows, "next": None}, columns, cells, empty)


@profile.command()
@click.argument("name", shell_complete=profiles)
@listing
@pass_session
def history(session: Session, name: str) -> None:
    """List a profile's revisions and their changes, newest first."""
    rows = list(session.client.items(f"{_path(name)}/revisions"))
    columns = (
        Column("REVISION", right=True),
        Column("MADE", field="created_at", spare=1),
        Column("NOTE", wraps=True),
        Column("CHANGES", wraps=True),
    )
    items = [
        {**row, "changes": difference_words(older, row) if older else ["created"]}
        for row, older in zip(rows, [*rows[1:], None], strict=True)
    ]

    def cells(row: Document) -> tuple[str, ...]:
        made = render.moment(row["created_at"])
        return str(row["revision"]), made, row["note"], "; ".join(row["changes"])

    session.show_list({"items": items, "next": None}, columns, cells, "no revisions")


@profile.command()
@click.argument("name", shell_complete=profiles)
@click.argument("first", type=click.IntRange(min=1))
@click.argument("second", type=click.IntRange(min=1))
@common
@pass_session
def diff(session: Session, name: str, first: int, second: int) -> None:
    """Show the differences of two revisions."""
    old = session.client.get(f"{_path(name)}/revisions/{first}")
    new = session.client.get(f"{_path(name)}/revisions/{second}")
    names = sorted(_differing(old["values"], new["values"]))
    changes = [
        {"tunable": n, "from": old["values"].get(n), "to": new["values"].get(n)} for n in names
    ]
    document = {"profile": name, "from": first, "to": second, "changes": changes}
    if old["steps"] != new["steps"]:
        document["steps"] = {"from": old["step_texts"], "to": new["step_texts"]}
    columns = (Column("TUNABLE"), Column(f"REVISION {first}"), Column(f"REVISION {second}"))
    cells = [(n, old["texts"].get(n, "unset"), new["texts"].get(n, "unset")) for n in names]
    cells += [(n, was or "none", now or "none") for n, was, now in _steps(old, new)]
    session.show(document, lambda: table(columns, cells, "no differences"))


@profile.command()
@click.argument("name", shell_complete=profiles)
@click.argument("revision", type=click.IntRange(min=1))
@common
@pass_session
def restore(session: Session, name: str, revision: int) -> None:
    """Create a new revision with the values of an older one."""
    before = session.client.request("GET", _path(name))
    after = session.client.request(
        "POST",
        f"{_path(name)}/revisions/{revision}/restore",
        body={},
        if_match=before.etag,
    ).document
    session.show(after, lambda: _change_lines(before.document, after))


@profile.command()
@click.argument("name", shell_complete=profiles)
@common
@pass_session
def delete(session: Session, name: str) -> None:
    """Delete a profile without assignments. Records keep its revisions."""
    session.report(session.client.delete(_path(name)), f"profile {name} deleted")


@profile.command()
@click.argument("values", nargs=-1, metavar="[TUNABLE=VALUE]...", shell_complete=assignments)
@click.option("--file", type=click.Path(path_type=Path), help="A .toml or .json profile file.")
@step_options
@common
@pass_session
def check(
    session: Session,
    values: tuple[str, ...],
    file: Path | None,
    step_texts: tuple[str, ...],
    steps_file: Path | None,
) -> None:
    """Check whether values and steps are valid together. Stores nothing."""
    given = parse_assignments(values)
    stored = read_file(file) if file else {"values": {}}
    steps = given_steps(step_texts, steps_file)
    body = {
        "values": {**stored["values"], **given},
        "steps": in_words(stored.get("steps", []), file) if steps is None else steps,
    }
    if not body["values"] and not body["steps"]:
        raise InvalidInput(
            "nothing to check is given", field="TUNABLE=VALUE", remedy="give at least one tunable"
        )
    checked = session.client.post("/profiles/check", body)
    session.show(checked, lambda: _checked_lines(checked))


def _checked_lines(checked: Document) -> Iterator[str]:
    yield from fields(list(checked["texts"].items()))
    yield from step_lines(checked["step_texts"])


def _profile_lines(document: Document) -> Iterator[str]:
    """A profile, or one of its revisions."""
    yield from fields(
        [
            ("profile", document.get("name") or document.get("profile", "")),
            ("revision", str(document["revision"])),
            ("description", document.get("description", "")),
            ("note", document["note"]),
            ("made", render.moment(document.get("revised_at") or document["created_at"])),
            *([("intent", stated["text"])] if (stated := document.get("intent")) else []),
        ]
    )
    yield ""
    columns = (Column("TUNABLE"), Column("VALUE", right=True))
    yield from table(columns, list(document["texts"].items()), "no values are set")
    yield from step_lines(document["step_texts"])


def _change_lines(before: Document, after: Document) -> Iterator[str]:
    if before["revision"] == after["revision"]:
        yield f"profile {after['name']} is unchanged, at revision {after['revision']}"
        return
    yield f"profile {after['name']} is now at revision {after['revision']}"
    yield from (f"  {words}" for words in difference_words(before, after))
