"""``vmtune reference``: published measurements, and the files that repeat them."""

# ruff: noqa: PLC0415 - imported where needed: a command is to start in a blink

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from string import ascii_lowercase

import click

from vmtune.client.complete import references
from vmtune.client.connection.http import Document, segment
from vmtune.client.session import Session, common, listing, pass_session
from vmtune.client.views.output import Column, fields, paint, table

_PAIR = 2


@click.group()
@common
def reference() -> None:
    """Published measurements, to compare your own with."""


@reference.command("list")
@listing
@pass_session
def list_references(session: Session) -> None:
    """List the sources of published tables."""
    rows = list(session.client.items("/reference"))
    columns = (
        Column("ID"),
        Column("TITLE", wraps=True),
        Column("PUBLISHED", field="source.date", spare=1),
        Column("TABLES", right=True, spare=2),
        Column("FIGURES", right=True, field="tables", spare=3),
    )

    def cells(row: Document) -> tuple[str, ...]:
        return (
            row["id"],
            row["title"],
            ", ".join(part for part in (row["source"]["place"], row["source"]["date"]) if part),
            str(len(row["tables"])),
            str(sum(each["rows"] for each in row["tables"])),
        )

    session.show_list({"items": rows, "next": None}, columns, cells, "no references")


@reference.command()
@click.argument("name", metavar="ID", shell_complete=references)
@click.option("--table", "only", metavar="TABLE", help="Only this table of the source.")
@common
@pass_session
def show(session: Session, name: str, only: str | None) -> None:
    """Show a source: its setup and its tables, with recomputed ratios and changes.

    Next to each figure stands what was measured with vmtune, or why nothing was.
    """
    document = session.client.get(f"/reference/{segment(name)}", {"table": only})
    session.show(document, lambda: _shown(document))


@reference.command()
@listing
@pass_session
def scenarios(session: Session) -> None:
    """List the campaign files that repeat the published matrices on this machine."""
    from vmtune.reference.files import scenario_files

    files = scenario_files().values()
    rows = [{"name": each.name, "kind": each.kind.value, "title": each.title} for each in files]
    columns = (Column("NAME"), Column("FOR", field="kind"), Column("TITLE", wraps=True))

    def cells(row: Document) -> tuple[str, ...]:
        return row["name"], row["kind"], row["title"]

    session.show_list({"items": rows, "next": None}, columns, cells, "no files")


@reference.command()
@click.argument("name")
@common
@pass_session
def scenario(session: Session, name: str) -> None:
    """Print a campaign file, to save it as FILE.toml and edit it."""
    from vmtune.reference.files import scenario_file

    file = scenario_file(name)
    document = {"name": file.name, "kind": file.kind.value, "title": file.title, "text": file.text}
    session.show(document, file.text.splitlines)


def _shown(document: Document) -> Iterator[str]:
    source = document["source"]
    yield f"{document['id']}: {document['title']}"
    published = ", ".join(part for part in (source["place"], source["date"], source["key"]) if part)
    yield from fields(
        [
            ("published", published),
            ("title", source["title"]),
            ("by", source["author"]),
            ("address", source["url"]),
            ("setup", _facts(document["setup"])),
            ("constants", _constants(document["constants"])),
            ("repeat with", ", ".join(document["scenarios"])),
        ]
    )
    if not source["checked"]:
        yield paint("not checked against the original text", "yellow")
    for note in document["notes"]:
        yield f"- {note}"
    for each in document["tables"]:
        yield ""
        yield from _table(each)


def _facts(facts: Sequence[Document]) -> str:
    return "; ".join(f"{fact['title']}: {fact['text']}" for fact in facts)


def _constants(constants: Sequence[Document]) -> str:
    return "; ".join(
        f"{each['name']} {', '.join(map(_number, each['values']))}" for each in constants
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else str(value)


def _table(document: Document) -> Iterator[str]:
    better = "" if document["better"] == "none" else f", {document['better']} is better"
    yield f"{document['name']}: {document['title']}, in {document['unit']}{better}"
    if document["note"]:
        yield document["note"]
    metric = document["metric"]
    note = document["metric_note"]
    beside = (
        f"comparable metric of own runs: {metric}"
        if metric
        else "own runs have no comparable metric"
    )
    yield f"{beside}: {note}" if note else beside
    rows = document["rows"]
    ways = list(dict.fromkeys(_way(row) for row in rows))
    here = _Here(document, ways)
    yield from (_pairs(rows, here) if _paired(rows) else _figures(rows, here))
    yield ""
    for number, (measured, command, why) in enumerate(ways, 1):
        run = f"; run: {command}" if command else ""
        yield f"[{number}] measured here: {measured}: {why}{run}"
    for mark, each in zip(ascii_lowercase, document["measurements"], strict=False):
        where = f"{each['date']}, QEMU {each['qemu']}, {each['machine']}"
        yield f"[{mark}] {where}: {each['how']}; run: {each['command']}"


def _way(row: Document) -> tuple[str, str, str]:
    """How a figure is measured here."""
    repeat = row["repeat"]
    return repeat["measured"], repeat["command"], repeat["why"]


class _Here:
    """The columns of what was measured here."""

    def __init__(self, document: Document, ways: Sequence[tuple[str, str, str]]) -> None:
        keys = [each["key"] for each in document["measurements"]]
        self._marks = dict(zip(keys, ascii_lowercase, strict=False))
        self._ways = ways

    def figure(self, row: Document) -> str:
        """``79,500 1/s [a]``; a dash where nothing was measured."""
        own = row["own"]
        return f"{own['text']} [{self._marks[own['measurement']]}]" if own else "-"

    @staticmethod
    def ratios(row: Document) -> str:
        """To each base that was measured."""
        found = [each for each in row["own_ratios"] if each["low"] is not None]
        several = len(row["own_ratios"]) > 1
        return "; ".join(
            f"{each['title']}: {_ratio_text(each)}" if several else _ratio_text(each)
            for each in found
        ) or "-"  # fmt: skip

    def verdict(self, row: Document) -> str:
        """``same direction [1]``."""
        return f"{row['verdict']} [{self._ways.index(_way(row)) + 1}]"


def _ratio_text(ratio: Document) -> str:
    low, high = f"{ratio['low']:.3g}", f"{ratio['high']:.3g}"
    return low if low == high else f"{low} to {high}"


def _paired(rows: Sequence[Document]) -> bool:
    """Every second row has one ratio, to the row before it: a line for each pair reads best."""
    return len(rows) % _PAIR == 0 and all(
        not base["ratios"]
        and [ratio["base"] for ratio in arm["ratios"]] == [base["arm"]]
        and base["at"] == arm["at"]
        for base, arm in zip(rows[::2], rows[1::2], strict=True)
    )


def _pairs(rows: Sequence[Document], here: _Here) -> Iterator[str]:
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    base, arm = pairs[0]
    changes = any(arm["change"] for _, arm in pairs)
    conditions = _conditions(rows)
    columns = (
        *conditions.values(),
        Column(base["arm"].upper(), right=True),
        Column(arm["arm"].upper(), right=True),
        Column("RATIO", right=True),
        *_change_columns(changes),
        *(Column(f"{each['arm'].upper()} HERE") for each in (base, arm)),
        Column("RATIO HERE"),
        Column("VERDICT"),
    )
    cells = [
        (
            *_at(arm, conditions),
            base["printed"],
            arm["printed"],
            arm["ratios"][0]["text"] or "-",
            *_change(arm, changes),
            here.figure(base),
            here.figure(arm),
            here.ratios(arm),
            here.verdict(arm),
        )
        for base, arm in pairs
    ]
    yield from table(columns, cells, "no figures")


def _figures(rows: Sequence[Document], here: _Here) -> Iterator[str]:
    titles = list(dict.fromkeys(ratio["title"] for row in rows for ratio in row["ratios"]))
    changes = any(row["change"] for row in rows)
    conditions = _conditions(rows)
    columns = (
        *conditions.values(),
        Column("ARM"),
        Column("FIGURE", right=True),
        *(Column(f"TO {title.upper()}", right=True) for title in titles),
        *_change_columns(changes),
        Column("HERE"),
        Column("RATIOS HERE"),
        Column("VERDICT"),
    )
    cells = [
        (
            *_at(row, conditions),
            row["arm"],
            row["printed"],
            *_ratios(row, titles),
            *_change(row, changes),
            here.figure(row),
            here.ratios(row),
            here.verdict(row),
        )
        for row in rows
    ]
    yield from table(columns, cells, "no figures")


def _ratios(row: Document, titles: Sequence[str]) -> Iterator[str]:
    """The row's ratios by their titles; an arm's to itself is its base's mark."""
    by_title = {ratio["title"]: ratio for ratio in row["ratios"]}
    for title in titles:
        ratio = by_title.get(title)
        if ratio is None or not ratio["text"]:
            yield "-"
        else:
            yield "1 (base)" if ratio["base"] == row["arm"] else ratio["text"]


def _conditions(rows: Sequence[Document]) -> dict[str, Column]:
    """The columns of the conditions, by fact. A row may leave some out."""
    return {
        fact["name"]: Column(fact["title"].upper(), right=not isinstance(fact["value"], str))
        for row in rows
        for fact in row["at"]
    }


def _at(row: Document, names: Iterable[str]) -> Iterator[str]:
    texts = {fact["name"]: fact["text"] for fact in row["at"]}
    return (texts.get(name, "-") for name in names)


def _change_columns(changes: bool) -> tuple[Column, ...]:
    if not changes:
        return ()
    return (
        Column("CHANGE PRINTED", right=True),
        Column("RECOMPUTED", right=True),
        Column("AGREES"),
    )


def _change(row: Document, changes: bool) -> tuple[str, ...]:
    if not changes:
        return ()
    change = row["change"]
    if change is None:
        return "-", "-", "-"
    return change["printed"], change["recomputed"], "yes" if change["agrees"] else "no"
