"""Documents of the service as programs read them: JSON, YAML, CSV, names."""

# ruff: noqa: PLC0415 - imported where needed: a command is to start in a blink

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from vmtune.client.connection.http import Document

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./+-]*( [A-Za-z0-9_./+-]+)*")
_NOT_TEXT = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""What YAML 1.1 or 1.2 reads as something else than text."""
_IDENTIFIERS = ("name", "id", "uuid", "tunable", "host", "vm")
_UNIQUE = ("id", "uuid")


def to_json(document: Document) -> Iterator[str]:
    """*document* as JSON, indented."""
    yield json.dumps(document, indent=2, ensure_ascii=False)


def to_yaml(document: Document) -> Iterator[str]:
    """*document* as YAML, in blocks."""
    yield from _block(document)


def _block(value: object) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _entry(f"{_scalar(key)}:", inner)
    elif isinstance(value, list | tuple) and value:
        for inner in value:
            first, *rest = _block(inner)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(value)


def _entry(key: str, value: object) -> Iterator[str]:
    if isinstance(value, Mapping | list | tuple) and value:
        yield key
        yield from (f"  {line}" for line in _block(value))
    else:
        yield f"{key} {_scalar(value)}"


def _scalar(value: object) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else _escaped(c) for c in quoted)


def _escaped(character: str) -> str:
    """A character that YAML allows in a quoted text only by its number."""
    return f"\\U{ord(character):08x}"


def to_csv(document: Document) -> Iterator[str]:
    """The items of a list, or one document, as CSV: a column for each field, with ``a.b`` for
    field b of a; lists are JSON. Nothing for an empty list."""
    import csv
    import io

    rows = [dict(_flat(row)) for row in items_of(document)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    yield text.getvalue().rstrip("\n")


def _flat(row: Document, above: str = "") -> Iterator[tuple[str, object]]:
    for key, value in row.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{name}.")
        elif isinstance(value, Mapping | list):
            yield name, json.dumps(value, ensure_ascii=False) if value else ""
        elif isinstance(value, bool):
            yield name, json.dumps(value)
        else:
            yield name, value


def to_names(document: Document) -> Iterator[str]:
    """The name of each item, or else its id: what other commands take. An item whose name
    others have too by its id; what is listed twice, as a migrating VM is, once."""
    rows = items_of(document)
    named = dict.fromkeys(
        (_identifier(row, _IDENTIFIERS), _identifier(row, _UNIQUE)) for row in rows
    )
    count = Counter(name for name, _ in named)
    for name, unique in named:
        shown = name if count[name] == 1 else unique or name
        if shown:
            yield shown


def _identifier(row: Document, keys: Sequence[str]) -> str:
    return next((str(row[key]) for key in keys if row.get(key) not in (None, "")), "")


def items_of(document: Document) -> Sequence[Document]:
    """The items of a list, or the document alone."""
    items = document.get("items")
    return items if isinstance(items, list) else [document]


FORMATS: Mapping[str, Callable[[Document], Iterator[str]]] = {
    "json": to_json,
    "yaml": to_yaml,
    "csv": to_csv,
    "name": to_names,
}
"""What ``-o`` takes beside ``table``."""
