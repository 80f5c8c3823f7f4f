"""The page of the HTTP API, from the OpenAPI document, the routes and the tables of errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from docs.generator.markdown import plain, table
from vmtune.api.auth.security import declared
from vmtune.api.errors import STATUS_OF
from vmtune.api.main import create_app
from vmtune.config.settings import Settings
from vmtune.model.access.scopes import MEANINGS, Scope

_WORDS_OF_URLS = str.maketrans({"{": "", "}": "", "/": "-", "_": "-"})


def page() -> str:
    """Routes by tag, their scopes and their errors."""
    app = create_app(Settings())
    document = app.openapi()
    scopes = {
        (method, path): declared(route)
        for path, route in _flat(app.routes)
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    parts = [_HEAD, "## Scopes", table(("scope", "allows to"), _scopes())]
    parts += ["## Errors", _ERRORS, table(("status", "code", "when"), _errors())]
    for tag in dict.fromkeys(_tag(operation) for _, _, operation in _operations(document)):
        parts.append(f"## Routes: {tag}")
        parts += [
            _route(method, path, operation, scopes.get((method, path), []))
            for method, path, operation in _operations(document)
            if _tag(operation) == tag
        ]
    return "\n\n".join(parts)


_HEAD = """# HTTP API

The API is at `/api/v1`, over the unix socket and over TCP. A running service shows an interactive
form of this page at `/api/v1/docs`, and the OpenAPI document at `/api/v1/openapi.json`
(`api/openapi.json` in the repository).

```
curl --unix-socket /run/vmtune/vmtune.sock http://localhost/api/v1/hosts
curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8470/api/v1/hosts
```

- Lists are paged: pass `next` of an answer as `after`. Unknown fields and parameters are refused.
- Long work answers 202 with the record's id; follow the record, or `/api/v1/events`.
- A profile has an ETag. `PUT` and `PATCH` of a profile need `If-Match`.
- A POST that is repeated with the same `Idempotency-Key` is executed once
  ([how](../how-to/repeat-requests.md))."""

_ERRORS = """Every error is a problem document (RFC 9457, `application/problem+json`) with `status`,
`code`, `title`, `detail`, `instance` (the request's id, also in the log), and `errors`: one item
with `field`, `code`, `message` and `remedy` for each problem. The codes below are those of the
document; an item's code is often more precise. Any other error is a fault of vmtune: 500."""


def _scopes() -> Iterator[tuple[str, str]]:
    for scope, meaning in MEANINGS.items():
        yield f"`{scope}`", plain(meaning)


def _errors() -> Iterator[tuple[str, str, str]]:
    for kind, status in STATUS_OF.items():
        yield str(status), f"`{kind.code}`", plain((kind.__doc__ or "").split("\n\n")[0])


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield method.upper(), path, operation


def _tag(operation: Mapping[str, Any]) -> str:
    return str(operation.get("tags", ["other"])[0])


def _route(method: str, path: str, operation: Mapping[str, Any], scopes: list[Scope | None]) -> str:
    anchor = f"{method.lower()}{path.removeprefix('/api/v1').translate(_WORDS_OF_URLS)}"
    needs = ", ".join(f"`{scope}`" if scope else "none: open to everybody" for scope in scopes)
    lines = [
        f"### `{method} {path}` {{ #{anchor} }}",
        plain(" ".join(operation.get("description", operation["summary"]).split())),
        f"Scope: {needs or '`admin`'}. Answers: {', '.join(operation['responses'])}.",
    ]
    rows = [
        (f"`{one['name']}`", one["in"], plain(one.get("description", "")))
        for one in operation.get("parameters", ())
    ]
    if rows:
        lines.append(table(("parameter", "in", "meaning"), rows))
    return "\n\n".join(lines)


def _flat(routes: list[BaseRoute], prefix: str = "") -> Iterator[tuple[str, BaseRoute]]:
    """Each route with its whole path, however deep it was included."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        if isinstance(inner, APIRouter):
            context = route.include_context  # type: ignore[attr-defined] # FastAPI's own
            yield from _flat(inner.routes, prefix + context.prefix)
        else:
            yield prefix + getattr(route, "path", "?"), route
