"""What ``host check`` shows."""

from __future__ import annotations

from collections.abc import Iterator

from vmtune.client.connection.http import Document
from vmtune.client.views.output import paint

_COLORS = {"ok": "green", "warning": "yellow", "failed": "red", "not checked": "cyan"}


def check_lines(check: Document) -> Iterator[str]:
    """Each step with its result, and what to do about those that are not ok."""
    width = max((len(step["result"]) for step in check["steps"]), default=0)
    for step in check["steps"]:
        result = step["result"]
        shown = paint(result, _COLORS[result]) + " " * (width - len(result))
        yield f"{shown}  {step['host']}: {step['what']}: {step['message']}"
        if step["remedy"]:
            yield f"{' ' * width}  remedy: {step['remedy']}"
    yield ""
    subject = f"{check['host']} to {check['to']}" if check["to"] else check["host"]
    failed = sum(step["result"] == "failed" for step in check["steps"])
    unchecked = sum(step["result"] == "not checked" for step in check["steps"])
    verdict = paint(f"{failed} failed", "red") if failed else paint("nothing failed", "green")
    yield f"{subject}: {verdict}" + (f", {unchecked} not checked" if unchecked else "")
