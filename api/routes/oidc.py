"""Signing in by an identity provider."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from vmtune.api.auth.authentication import address_of
from vmtune.api.auth.cookies import OIDC, clear_oidc, set_cookies, set_oidc
from vmtune.api.auth.security import PUBLIC
from vmtune.api.responses import LOCATION, problems, with_headers
from vmtune.api.routes.common import Services
from vmtune.api.routes.router import Router
from vmtune.errors import NotFound
from vmtune.services.access.oidc import OidcService

router = Router(prefix="/session/oidc", tags=["session"])
_BACK = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>vmtune</title>"
    '<meta http-equiv=refresh content="0;url=/"><p>Signed in. <a href="/">Continue</a></p>'
)
"""A browser that the provider redirects sends no SameSite=Strict cookie; after this page of ours it
does."""


def _configured(on: Services) -> OidcService:
    if on.access.oidc is None:
        raise NotFound(
            "no identity provider is configured",
            remedy="sign in with a token, or add the table [oidc] to the settings",
        )
    return on.access.oidc


@router.get(
    "",
    status_code=302,
    responses=problems(404) | with_headers(302, LOCATION),
    response_class=RedirectResponse,
    dependencies=[PUBLIC],
)
async def begin_oidc(on: Services, request: Request) -> Response:
    """Redirect a browser to the identity provider."""
    begun = await _configured(on).begin()
    response = RedirectResponse(begun.url, 302)
    set_oidc(response, request.url.scheme, begun.binding)
    return response


@router.get(
    "/callback", responses=problems(404), response_class=HTMLResponse, dependencies=[PUBLIC]
)
async def finish_oidc(
    on: Services,
    request: Request,
    state: Annotated[str, Query(max_length=200)] = "",
    code: Annotated[str, Query(max_length=4000)] = "",
    error: Annotated[str, Query(max_length=200, description="Value of the provider.")] = "",
    error_description: Annotated[str, Query(max_length=2000)] = "",
    iss: Annotated[str, Query(max_length=2000)] = "",
    session_state: Annotated[str, Query(max_length=2000)] = "",
    scope: Annotated[str, Query(max_length=2000)] = "",
) -> Response:
    """Callback of the identity provider: signs the browser in."""
    binding = request.cookies.get(OIDC, "")
    identity = await _configured(on).finish(binding, state, code)
    browser = await on.access.browsers.admit(identity, address_of(request.scope))
    response = HTMLResponse(_BACK)
    set_cookies(response, request.url.scheme, browser)
    clear_oidc(response, request.url.scheme)
    return response
