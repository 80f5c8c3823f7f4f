"""Where a person signs in: one page without anything from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from functools import cache

from starlette.responses import HTMLResponse, Response

from vmtune.rendering import render


def sign_in_page(by_provider: bool) -> Response:
    """The sign-in page, served in place of the requested one.

    :param by_provider: sign-in with an identity provider is offered, too.
    """
    page, policy = _page(by_provider)
    headers = {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "WWW-Authenticate": 'Bearer realm="vmtune"',
    }
    return HTMLResponse(page, 401, headers=headers)


@cache
def _page(by_provider: bool) -> tuple[str, str]:
    """The page, and the policy by which a browser runs only its own style and script."""
    style, script = render("sign_in.css"), render("sign_in.js")
    policy = (
        "default-src 'none'; connect-src 'self'; form-action 'none'; base-uri 'none'; "
        f"frame-ancestors 'none'; style-src {source_of(style)}; script-src {source_of(script)}"
    )
    return render("sign_in.html", style=style, script=script, by_provider=by_provider), policy


def source_of(text: str) -> str:
    """The Content-Security-Policy's name for an inline *text* that may be used."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
