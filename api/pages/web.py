"""Serves the built web UI: its files, and its one page for every address that is a page's.

The files are made by ``make web`` into the package, so that a wheel has them and its users need no
Node. The page's own addresses (``/vms/...``) exist only in the browser, so
each of them answers with the same page; a path that looks like a missing file answers 404.
"""

from __future__ import annotations

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

import vmtune

BUILT = Path(vmtune.__file__).parent / "webui"

_POLICY = "; ".join(
    (
        "default-src 'self'",
        "img-src 'self' data:",
        "style-src 'self' 'unsafe-inline'",  # charts and tooltips place themselves by style
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
_ALWAYS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
_NOT_BUILT = """<!doctype html><html lang=en><meta charset=utf-8><title>vmtune</title>
<h1>vmtune</h1><p>The web UI has not been built in this checkout: run <code>make web</code>.
The <a href="/api/v1/docs">API</a> and the command line work without it.</p>"""


class WebUi:
    """The UI below ``/``.

    :param built: the folder that ``make web`` fills.
    """

    def __init__(self, built: Path = BUILT) -> None:
        self._built = built
        self._files = StaticFiles(directory=built, check_dir=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(scope)
        response.headers.update(_ALWAYS)
        await response(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(405, headers={"Allow": "GET"})
        path = scope["path"].lstrip("/")
        if path.startswith("api/"):
            raise HTTPException(404)
        page = self._built / "index.html"
        if not page.is_file():
            return HTMLResponse(_NOT_BUILT)
        if _is_page(path):
            return FileResponse(page, headers={"cache-control": "no-cache"})
        response = await self._files.get_response(path, scope)
        # Built names contain a hash of the content: such files never change.
        lasting = (
            "public, max-age=31536000, immutable" if path.startswith("assets/") else "no-cache"
        )
        response.headers["cache-control"] = lasting
        return response


def _is_page(path: str) -> bool:
    """Whether *path* is a page's address and not a file's: files are at the top or in assets,
    and what pages are about may have a dot in its name, as profiles and scenarios do."""
    first, below, _ = path.partition("/")
    return "." not in path.rpartition("/")[2] or bool(
        below and first.isalpha() and first != "assets"
    )
