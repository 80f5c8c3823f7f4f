"""What routes answer besides their result, as OpenAPI documents it."""

from __future__ import annotations

import re
from typing import Any

PROBLEM_JSON = "application/problem+json"

_MEANINGS = {
    400: "The body is not JSON.",
    401: "No credentials, or invalid ones: each request over TCP needs a token or a session.",
    403: "No permission; or the request comes from a page of another origin.",
    404: "No such object.",
    409: "The request conflicts with stored data or a running operation; `errors` has the reasons.",
    412: "The revision of If-Match is no longer current.",
    413: "The body is too large.",
    415: "The Content-Type is not application/json.",
    421: "The Host header names neither this machine's loopback address nor an allowed host.",
    422: "Invalid input; `errors` names each field.",
    424: "A host or its QEMU did not answer, or the connection was lost: the outcome is then "
    "unknown, and must be checked again.",
    428: "If-Match is missing.",
    429: "Too many failed authentications; Retry-After says when to try again.",
    500: "Internal error; the log has the details under the id in `instance`.",
    503: "The service or its database is not ready.",
}
_ALWAYS = (401, 403, 413, 415, 421, 422, 429, 500, 503)
WITH_BODY = (400,)
ASKS_A_HOST = (404, 409, 424)
"""A route that contacts a host: it may be unreachable, its monitor busy, the VM gone."""
LOCATION = {"Location": {"description": "URL of the created object.", "schema": {"type": "string"}}}
ETAG = {
    "ETag": {
        "description": "The value of If-Match for a change.",
        "schema": {"type": "string"},
    }
}

_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]+")


def saved_as(name: str, how: str = "attachment") -> dict[str, str]:
    """The header that names a download; safe for any *name*, also one that others sent."""
    return {"Content-Disposition": f'{how}; filename="{_FILE_NAME.sub("-", name)[:150]}"'}


Responses = dict[int | str, dict[str, Any]]  # any: FastAPI's own type


def problems(*statuses: int) -> Responses:
    """The problems that a route can answer with, beside those that every route can."""
    return {
        status: {
            "description": _MEANINGS[status],
            "content": {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
        }
        for status in sorted({*statuses, *_ALWAYS})
    }


_VERSION = {
    "ETag": {
        "description": "Version of this content, for If-None-Match.",
        "schema": {"type": "string"},
    }
}
KEPT: Responses = {
    200: {"headers": _VERSION},
    304: {"description": "The content has the version of If-None-Match.", "headers": _VERSION},
}
"""A route whose answers have a version."""


def with_headers(status: int, *headers: dict[str, Any]) -> Responses:  # any: OpenAPI
    """The headers that the result of *status* has."""
    return {status: {"headers": {name: h for part in headers for name, h in part.items()}}}
