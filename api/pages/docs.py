"""The API's documentation as one page: made from the OpenAPI document, without scripts or
anything from the network, so that it reads the same on a host without internet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

Node = Mapping[str, Any]  # any: OpenAPI

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem;
  color: #1f1f1f; background: #fff }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc }
code, .path { font: 14px ui-monospace, monospace }
details { border: 1px solid #ddd; border-radius: 6px; margin: .4rem 0; padding: .4rem .8rem }
summary { cursor: pointer }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700 }
table { border-collapse: collapse; margin: .5rem 0 }
td, th { text-align: left; vertical-align: top; padding: .15rem 1rem .15rem 0 }
@media (prefers-color-scheme: dark) {
  body { color: #e6e6e6; background: #151515 } a { color: #92c5f9 }
  h2, details { border-color: #444 } }
"""


def page(document: Node) -> str:
    """The HTML page for an OpenAPI document."""
    info = document["info"]
    title = f"{escape(info['title'])} {escape(info['version'])}"
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        f"<title>{title}: HTTP API</title><style>{_STYLE}</style>",
        f"<h1>{title}: HTTP API</h1><p>{escape(info.get('summary', ''))}</p>",
        "<p>Machine-readable: <a href=openapi.json>openapi.json</a>. Errors are "
        f"<code>application/problem+json</code>: {_link('ProblemDocument')}.</p>",
    ]
    tag = None
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if operation["tags"][0] != tag:
                tag = operation["tags"][0]
                parts.append(f"<h2 id={escape(tag)}>{escape(tag)}</h2>")
            parts += _operation(path, method, operation)
    parts.append("<h2>schemas</h2>")
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts += _schema(name, schema)
    return "\n".join(parts)


def _operation(path: str, method: str, operation: Node) -> Iterator[str]:
    yield (
        f"<details><summary><span class=method>{method.upper()}</span> "
        f"<span class=path>{escape(path)}</span></summary>"
        f"<p>{escape(operation.get('description', operation['summary']))}</p>"
    )
    rows = [
        (
            f"<code>{escape(p['name'])}</code>",
            p["in"] + (", required" if p.get("required") else ""),
            _type(p["schema"]),
            escape(p.get("description", "")),
        )
        for p in operation.get("parameters", ())
    ]
    if "requestBody" in operation:
        ((media_type, body),) = operation["requestBody"]["content"].items()
        rows.append(("body", "", _type(body["schema"]), escape(media_type)))
    yield from _table(rows)
    yield from _table(
        (status, _content(answer), escape(answer.get("description", "")), "")
        for status, answer in sorted(operation["responses"].items())
    )
    yield "</details>"


def _content(answer: Node) -> str:
    found = [_type(c["schema"]) for c in answer.get("content", {}).values() if "schema" in c]
    return found[0] if found else ""


def _schema(name: str, schema: Node) -> Iterator[str]:
    yield f"<details id='{escape(name)}'><summary><code>{escape(name)}</code></summary>"
    yield f"<p>{escape(schema.get('description', ''))}</p>"
    if "enum" in schema:
        yield f"<p>{_type(schema)}</p>"
    required = schema.get("required", ())
    yield from _table(
        (
            f"<code>{escape(field)}</code>",
            "" if field in required else "optional",
            _type(kind),
            escape(kind.get("description", "")),
        )
        for field, kind in schema.get("properties", {}).items()
    )
    yield "</details>"


def _table(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    lines = [f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows]
    if lines:
        yield f"<table>{''.join(lines)}</table>"


def _type(schema: Node) -> str:
    """A schema in a few words, as HTML."""
    if "$ref" in schema:
        return _link(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"<code>{escape(str(choice))}</code>" for choice in schema["enum"])
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {_type(schema['items'])}"
    values = schema.get("additionalProperties")
    if kind == "object" and isinstance(values, dict):
        return f"{_type(values)} by name"
    return escape(str(schema.get("format", kind)))


def _link(name: str) -> str:
    return f"<a href='#{escape(name)}'>{escape(name)}</a>"
