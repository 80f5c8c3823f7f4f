"""Authenticates each request before it reaches a route.

On the unix socket the caller is the user whose process connected. Over TCP it is the holder of the
token in ``Authorization``, or of the browser session; without either, only the paths in
:data:`OPEN` and the web UI's static files are served.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vmtune.api.auth.cookies import CSRF_HEADER, CSRF_PARAMETER, clear_cookies, session_cookie
from vmtune.api.auth.security import OPEN, unknown
from vmtune.api.http.bodies import headers_of, refuse
from vmtune.api.http.middleware import READS
from vmtune.api.pages.sign_in import sign_in_page
from vmtune.api.wiring.deps import Container
from vmtune.errors import Forbidden, SetupError, Unauthenticated, VmtuneError
from vmtune.model.access.scopes import NOBODY, Identity
from vmtune.services.access.access import Access
from vmtune.services.access.web_sessions import WebLogin, key_of

API = "/api/"
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
            if scope["state"].get("connection") is not None:
                scope["state"]["connection"].caller = None
            if isinstance(error, Unauthenticated) and _wants_a_page(scope):
                await sign_in_page(_has_provider(scope))(scope, receive, send)
            else:
                await refuse(error, scope, receive, _forgetting(scope, send))
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
        shown = is_open or _is_file(scope) or (_is_page(scope) and cookie_of(scope) is not None)
        if identity is NOBODY and not shown:
            raise unknown()
        connection = state.get("connection")
        if connection is not None and identity is not NOBODY:
            connection.caller = (identity.kind, identity.id)
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
        return await container.access.users.identify(peer)
    if (scope["method"], scope["path"]) in OPEN or _is_file(scope):
        return NOBODY
    cookie = cookie_of(scope)
    if cookie is None:
        return NOBODY
    word = _word(scope)
    if _is_page(scope) and not word:
        return NOBODY  # the page is the same for all; it has the word
    browser = await container.access.browsers.identify(key_of(cookie, word))
    scope["state"]["browser"] = browser
    return browser.identity


def _forgetting(scope: Scope, send: Send) -> Send:
    """*send*, that has a page's browser forget a session that is over: it is then shown where to
    sign in."""
    if cookie_of(scope) is None or CSRF_HEADER not in headers_of(scope):
        return send

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 401:
            cleared = Response()
            clear_cookies(cleared, scope["scheme"])
            named = [each for each in cleared.raw_headers if each[0] == b"set-cookie"]
            message = {**message, "headers": [*message["headers"], *named]}
        await send(message)

    return sent


async def still_lets_in(scope: Scope, access: Access) -> bool:
    """Whether what let a request in would let it in again. A local user stays one for as
    long as the connection lasts."""
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    browser: WebLogin | None = scope["state"].get("browser")
    try:
        if sent:
            await access.tokens.identify(_bearer(sent), address_of(scope))
        elif browser is not None:
            await access.browsers.identify(browser.key, asks=False)
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


def _word(scope: Scope) -> str:
    """The word that the service's own pages send: in a header, or where a read can have none, as a
    parameter, which is taken out of the query.

    :raise Forbidden: a change without it, or from a page that is not the service's.
    """
    headers = headers_of(scope)
    word = headers.get(CSRF_HEADER, "")
    if scope["method"] in READS:
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == CSRF_PARAMETER]
        if given:
            rest = [(name, value) for name, value in query if name != CSRF_PARAMETER]
            scope["query_string"] = urlencode(rest).encode()
        return word or (given[0] if given else "")
    site = headers.get("sec-fetch-site", "same-origin")
    if not word or site not in ("same-origin", "none"):
        raise Forbidden(
            "the request has no valid CSRF token",
            field=CSRF_HEADER,
            code="csrf",
            remedy=f"send `csrf` of POST /api/v1/session as {CSRF_HEADER}; programs use a token",
        )
    return word


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


def _is_page(scope: Scope) -> bool:
    """Whether it is an address of the web UI's one page, which has nothing of the service."""
    return scope["method"] in READS and not scope["path"].startswith(API)


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
