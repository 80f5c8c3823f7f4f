"""The cookie of a browser that is signed in."""

from __future__ import annotations

from starlette.responses import Response

from vmtune.services.access.oidc import LASTS_S
from vmtune.services.access.web_sessions import WebLogin

CSRF_HEADER = "x-vmtune-csrf"
CSRF_PARAMETER = "csrf"
"""For what takes no header: streams of events, and files that are downloaded."""
OIDC = "vmtune_oidc"
_OIDC_PATH = "/api/v1/session/oidc"
_SESSION, _CSRF = "vmtune_session", "vmtune_csrf"
_SECURE = "__Host-"
"""Browsers accept a cookie with this prefix only over TLS and from this host."""


def session_cookie(scheme: str) -> str:
    """The name of the session's cookie."""
    return (_SECURE if scheme == "https" else "") + _SESSION


def set_cookie(response: Response, scheme: str, browser: WebLogin) -> None:
    """Set the session's cookie, which scripts cannot read. The word that belongs to it is none:
    other ports of this host would be sent it too."""
    response.set_cookie(
        session_cookie(scheme),
        browser.cookie,
        expires=browser.expires_at,
        path="/",
        secure=scheme == "https",
        httponly=True,
        samesite="strict",
    )


def set_oidc(response: Response, scheme: str, binding: str) -> None:
    """Set the cookie of a sign-in that has begun. Lax: the browser comes back from another site."""
    response.set_cookie(
        OIDC,
        binding,
        max_age=LASTS_S,
        path=_OIDC_PATH,
        secure=scheme == "https",
        httponly=True,
        samesite="lax",
    )


def clear_oidc(response: Response, scheme: str) -> None:
    """Have the browser forget that."""
    response.delete_cookie(
        OIDC, path=_OIDC_PATH, secure=scheme == "https", httponly=True, samesite="lax"
    )


def clear_cookies(response: Response, scheme: str) -> None:
    """Have the browser forget it, and the word that earlier versions set as a cookie."""
    secure = scheme == "https"
    for name, hidden in ((session_cookie(scheme), True), (_CSRF, False)):
        response.delete_cookie(name, path="/", secure=secure, httponly=hidden, samesite="strict")
