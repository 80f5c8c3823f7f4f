"""Authenticates each request before it reaches a route.

On the unix socket the caller is the user whose process connected. Over TCP it is the holder of the
token in ``Authorization``, or of the browser session; without either, only the paths in
:data:`OPEN` and the web UI's static files are served.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any

from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from vmtune.api.auth.cookies import CSRF_HEADER, session_cookie
from vmtune.api.auth.security import unknown
from vmtune.api.http.middleware import READS, refuse
from vmtune.api.pages.sign_in import sign_in_page
from vmtune.api.wiring.deps import Container
from vmtune.errors import Forbidden, SetupError, Unauthenticated, VmtuneError
from vmtune.model.access.scopes import NOBODY, Identity
from vmtune.services.access.access import Access
from vmtune.services.access.web_sessions import WebLogin

API = "/api/"
OPEN = {
    ("GET", "/api/v1/live"),
    ("POST", "/api/v1/session"),
    ("GET", "/api/v1/session/oidc"),
    ("GET", "/api/v1/session/oidc/callback"),
}
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


class Authenticate:
    """Stores the caller in ``scope["state"]`` (``identity``), and for a browser its session
    (``browser``)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            identity = await self._identify(scope)
        except VmtuneError as error:
            if isinstance(error, Unauthenticated) and _wants_a_page(scope):
                await sign_in_page(_has_provider(scope))(scope, receive, send)
            else:
                await refuse(error, scope, receive, send)
            return
        scope["state"]["identity"] = identity
        await self._app(scope, receive, send)

    async def _identify(self, scope: Scope) -> Identity:
        state: dict[str, Any] = scope["state"]  # any: Starlette's
        container: Container | None = scope["app"].state.container
        if container is None:
            raise SetupError("the service is starting", code="starting", remedy="try again")
        state["identity"] = NOBODY
        identity = await _who(scope, container)
        act = state.get("act")
        if act is not None:
            act.actor = identity
        is_open = (scope["method"], scope["path"]) in OPEN
        if identity is NOBODY and not is_open and not _is_file(scope):
            raise unknown()
        return identity


async def _who(scope: Scope, container: Container) -> Identity:
    """The caller; :data:`NOBODY` without credentials.

    :raise Unauthenticated: the credentials are not valid.
    """
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    if sent:
        return await container.access.tokens.identify(_bearer(sent), address_of(scope))
    if is_unix(scope):
        peer = scope["state"].get("peer")
        names = {name.decode("latin-1") for name, _ in scope["headers"]}
        if peer is None or names & set(_FORWARDED):
            # A proxy forwards requests of others: they do not have the rights of the proxy's user.
            return NOBODY
        return container.access.users.identify(peer)
    if (scope["method"], scope["path"]) in OPEN or _is_file(scope):
        return NOBODY
    cookie = cookie_of(scope)
    if cookie is None:
        return NOBODY
    browser = await container.access.browsers.identify(cookie)
    scope["state"]["browser"] = browser
    if scope["method"] not in READS:
        _check_csrf(scope, browser)
    return browser.identity


async def still_lets_in(scope: Scope, access: Access) -> bool:
    """Whether what let a request in would let it in again. A local user stays one for as
    long as the connection lasts."""
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    browser: WebLogin | None = scope["state"].get("browser")
    try:
        if sent:
            await access.tokens.identify(_bearer(sent), address_of(scope))
        elif browser is not None:
            await access.browsers.identify(browser.cookie, asks=False)
    except Unauthenticated:
        return False
    except VmtuneError:  # a database that is busy takes no right away
        return True
    return True


def _bearer(sent: list[bytes]) -> str:
    scheme, _, token = sent[0].decode("latin-1").strip().partition(" ")
    if len(sent) > 1 or scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated(
            "the Authorization header is invalid",
            field="Authorization",
            code="authorization_malformed",
            remedy="send `Authorization: Bearer TOKEN`",
        )
    return token.strip()


def _check_csrf(scope: Scope, browser: WebLogin) -> None:
    """A change has to come from a page of the service: only its pages can read the word that
    they send. That the Origin is the service's own has been checked before."""
    headers = headers_of(scope)
    sent = headers.get(CSRF_HEADER, "")
    site = headers.get("sec-fetch-site", "same-origin")
    word_is_right = hmac.compare_digest(sent.encode("latin-1", "replace"), browser.csrf.encode())
    if not word_is_right or site not in ("same-origin", "none"):
        raise Forbidden(
            "the request has no valid CSRF token",
            field=CSRF_HEADER,
            code="csrf",
            remedy=f"send `csrf` of GET /api/v1/session as {CSRF_HEADER}; programs use a token",
        )


def headers_of(scope: Scope) -> Mapping[str, str]:
    """The request's headers; of those sent twice the last."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def cookie_of(scope: Scope) -> str | None:
    """The session's cookie, where there is one."""
    sent = headers_of(scope).get("cookie", "")
    return cookie_parser(sent).get(session_cookie(scope["scheme"])) if sent else None


def is_unix(scope: Scope) -> bool:
    """Whether the request came over a unix socket."""
    server = scope.get("server")
    return bool(server and server[1] is None)


def address_of(scope: Scope) -> str:
    """From where the request comes, in words."""
    peer = scope["state"].get("peer")
    if peer is not None:
        return f"process {peer.pid} of user {peer.uid}"
    client = scope.get("client")
    return str(client[0]) if client else "unknown"


def _is_file(scope: Scope) -> bool:
    """Whether it is no part of the API, but a file of the web UI's."""
    path = scope["path"]
    named = not path.startswith(API) and "." in path.rpartition("/")[2]
    return scope["method"] in READS and named


def _has_provider(scope: Scope) -> bool:
    container: Container | None = scope["app"].state.container
    return container is not None and container.access.oidc is not None


def _wants_a_page(scope: Scope) -> bool:
    """Whether to show a person in a browser the sign-in page."""
    accepts = headers_of(scope).get("accept", "")
    return scope["method"] in READS and "text/html" in accepts
