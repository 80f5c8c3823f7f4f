"""Requests and answers as JSON, and paths of the API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

PREFIX = "/api/v1"

Document = Mapping[str, Any]  # any: JSON from the service
Query = Mapping[str, str | int | Sequence[str] | None]
"""What goes behind the question mark: None is left out, a sequence is repeated."""


def segment(text: str) -> str:
    """*text* as one segment of a path, escaped."""
    return quote(text, safe="")


NO_JSON: Document = {"detail": "the service's answer is not JSON", "value": None}


def as_object(content: bytes) -> Document | None:
    """*content* as an object; a list becomes its ``items``. None where it is no JSON."""
    if not content:
        return {}
    try:
        document: Any = json.loads(content)  # any: JSON, until it is known to be an object
    except ValueError:
        return None
    return document if isinstance(document, dict) else {"items": document}


def problem_of(status: int, content: bytes) -> Document:
    """What the service has against a request."""
    document = as_object(content)
    return {"status": status, **(NO_JSON if document is None else document)}


def with_query(path: str, query: Query | None) -> str:
    """*path* with those of *query* that are set."""
    given = {key: value for key, value in (query or {}).items() if value is not None}
    text = urlencode(given, doseq=True)
    return f"{path}?{text}" if text else path
