"""How far a running migration is, as of now: a bar and its figures."""

from __future__ import annotations

import shutil
import textwrap
import time
from collections.abc import Iterator

from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Client, Document
from vmtune.client.connection.sse import ServerEvent, stream
from vmtune.client.views.progress import describe

_WITHIN_S = 2.0
_WIDTH = 24


def progress_lines(client: Client, record: Document) -> Iterator[str]:
    """The next progress that the service tells of *record*; nothing if it tells of none in time."""
    data = _next(client, str(record["id"]))
    if data is None:
        return
    limit = record["values"].get("downtime_limit_ms")
    share = min(max(float(data["share"]), 0.0), 1.0)
    yield ""
    yield f"{bar(share)} {share:4.0%}"
    figures = describe(data, limit if isinstance(limit, int) else None)
    yield from textwrap.wrap(figures, max(40, shutil.get_terminal_size().columns))


def bar(share: float) -> str:
    """A bar of *share*, from 0 to 1."""
    done = round(share * _WIDTH)
    return "━" * done + "┄" * (_WIDTH - done)


def _next(client: Client, id: str) -> Document | None:
    give_up_s = time.monotonic() + _WITHIN_S
    only = {"topic": "migration", "subject": id}
    try:
        for item in stream(client, "", only, silent_for_s=_WITHIN_S):
            if isinstance(item, ServerEvent) and "share" in item.data["data"]:
                found: Document = item.data["data"]
                return found
            if time.monotonic() > give_up_s:
                return None
    except ClientError:
        return None  # the record itself was read
    return None
