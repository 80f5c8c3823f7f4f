"""The two cookies of a browser that is signed in."""

from __future__ import annotations

from starlette.responses import Response

from vmtune.services.access.oidc import LASTS_S
from vmtune.services.access.web_sessions import WebLogin

CSRF_HEADER = "x-vmtune-csrf"
OIDC = "vmtune_oidc"
_OIDC_PATH = "/api/v1/session/oidc"
_SESSION, _CSRF = "vmtune_session", "vmtune_csrf"
_SECURE = "__Host-"
"""Browsers accept a cookie with this prefix only over TLS and from this host."""


def session_cookie(scheme: str) -> str:
    """The name of the session's cookie."""
    return (_SECURE if scheme == "https" else "") + _SESSION


def set_cookies(response: Response, scheme: str, browser: WebLogin) -> None:
    """Set both cookies: the session's, which scripts cannot read, and the CSRF token, which the
    service's own pages read and send back."""
    secure = scheme == "https"
    for name, value, hidden in (
        (session_cookie(scheme), browser.cookie, True),
        (_CSRF, browser.csrf, False),
    ):
        response.set_cookie(
            name,
            value,
            expires=browser.expires_at,
            path="/",
            secure=secure,
            httponly=hidden,
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
    """Have the browser forget both."""
    secure = scheme == "https"
    for name, hidden in ((session_cookie(scheme), True), (_CSRF, False)):
        response.delete_cookie(name, path="/", secure=secure, httponly=hidden, samesite="strict")
