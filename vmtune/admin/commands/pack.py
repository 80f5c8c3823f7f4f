"""``vmtune pack``: tunable packs, before a service loads them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from vmtune import packs
from vmtune.client.connection.http import Document
from vmtune.client.session import Session, common, listing, pass_session
from vmtune.client.views.output import Column, table
from vmtune.config.settings import Settings
from vmtune.model.tunables.packs.access import consent_to_qom
from vmtune.model.tunables.packs.pack import Pack

_OBJECTS = consent_to_qom("")


@click.group()
@common
def pack() -> None:
    """Tunable packs: files that add the tunables of a patched QEMU."""


@pack.command()
@click.argument("file", type=click.Path(path_type=Path))
@common
@pass_session
def check(session: Session, file: Path) -> None:
    """Check a pack, and show which permissions it needs.

    FILE is a path, or the name of a pack that comes with vmtune. Errors have line and column.
    """
    found = packs.read_file(packs.shipped().get(str(file), file))
    document = _document(found)
    session.show(document, lambda: _checked(found, document))


def _checked(found: Pack, document: Document) -> Iterator[str]:
    yield f"{found.name}: {found.title}"
    yield ""
    columns = (
        Column("TUNABLE"), Column("TYPE"), Column("ALLOWED", wraps=True), Column("IN QEMU"),
    )  # fmt: skip
    cells = [
        (row.name, row.kind.value, row.allowed(), row.qmp.name if row.qmp else "")
        for row in found.tunables
    ]
    yield from table(columns, cells, "no tunables")
    yield ""
    yield "required settings:"
    for setting in ("allow_qom", "allow_qmp_commands"):
        names = document["needs"][setting]
        if names:
            yield f"  {setting} = [{', '.join(repr(name) for name in names)}]".replace("'", '"')
    if not any(document["needs"].values()):
        yield "  none: the pack only reads"


def _document(found: Pack) -> Document:
    return {
        "name": found.name,
        "title": found.title,
        "why": found.why,
        "tunables": [row.name for row in found.tunables],
        "needs": _split(found.consents),
    }


def _split(consents: frozenset[str]) -> dict[str, list[str]]:
    """Consents by the setting that holds them."""
    names = sorted(consents)
    return {
        "allow_qom": [n.removeprefix(_OBJECTS) for n in names if n.startswith(_OBJECTS)],
        "allow_qmp_commands": [n for n in names if not n.startswith(_OBJECTS)],
    }


@pack.command("list")
@listing
@pass_session
def list_(session: Session) -> None:
    """List the packs that come with vmtune and the packs that this machine's settings load."""
    settings = Settings.load(None, os.environ)
    given = settings.consents
    loaded = {found.name: found for found in packs.load(settings.packs)}
    known = dict(loaded)
    for path in packs.shipped().values():
        found = packs.read_file(path)
        known.setdefault(found.name, found)
    rows: list[Document] = [
        {
            **_document(found),
            "loaded": name in loaded,
            "not_allowed": _split(found.consents - given),
        }
        for name, found in known.items()
    ]
    columns = (
        Column("PACK", field="name"), Column("LOADED"), Column("TUNABLES", right=True),
        Column("NOT ALLOWED YET", right=True, field="not_allowed"), Column("TITLE", wraps=True),
    )  # fmt: skip

    def cells(row: Document) -> tuple[str, ...]:
        return (
            row["name"],
            "yes" if row["loaded"] else "no",
            str(len(row["tunables"])),
            str(sum(map(len, row["not_allowed"].values()))),
            row["title"],
        )

    session.show_list({"items": rows, "next": None}, columns, cells, "no packs")
