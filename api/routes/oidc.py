"""Signing in by an identity provider."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from vmtune.api.auth.authentication import address_of
from vmtune.api.auth.cookies import OIDC, clear_oidc, set_cookie, set_oidc
from vmtune.api.auth.security import PUBLIC
from vmtune.api.pages.sign_in import source_of
from vmtune.api.responses import LOCATION, problems, with_headers
from vmtune.api.routes.common import Services
from vmtune.api.routes.router import Router
from vmtune.api.validation import UNKNOWN_PARAMETERS_IGNORED
from vmtune.errors import NotFound, Unauthenticated
from vmtune.services.access.oidc import OidcService

router = Router(prefix="/session/oidc", tags=["session"])
_KEEP = (
    "localStorage.setItem('vmtune_csrf', document.documentElement.dataset.csrf);"
    "location.replace('/')"
)
_BACK = (
    "<!doctype html><html lang=en data-csrf={csrf}><meta charset=utf-8><title>vmtune</title>"
    f'<p>Signed in. <a href="/">Continue</a></p><script>{_KEEP}</script>'
)
"""A browser that the provider redirects sends no SameSite=Strict cookie; after this page of ours it
does. The page keeps the word that belongs to the cookie."""
_POLICY = f"default-src 'none'; script-src {source_of(_KEEP)}; base-uri 'none'"


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
    "/callback",
    responses=problems(404),
    response_class=HTMLResponse,
    dependencies=[PUBLIC, UNKNOWN_PARAMETERS_IGNORED],
)
async def finish_oidc(
    on: Services,
    request: Request,
    state: Annotated[str, Query(max_length=200)] = "",
    code: Annotated[str, Query(max_length=4000)] = "",
) -> Response:
    """Callback of the identity provider: signs the browser in. Parameters that it does not know are
    ignored (RFC 6749, 4.1.2)."""
    binding = request.cookies.get(OIDC, "")
    provider, tokens, address = _configured(on), on.access.tokens, address_of(request.scope)
    try:
        identity = await provider.finish(binding, state, code)
    except Unauthenticated:
        tokens.count_refusal(address)
        raise
    await tokens.limit_person(identity.id, identity.rights)
    provider.check_role(identity)
    browser = await on.access.browsers.admit(identity, address)
    response = HTMLResponse(
        _BACK.format(csrf=browser.csrf), headers={"Content-Security-Policy": _POLICY}
    )
    set_cookie(response, request.url.scheme, browser)
    clear_oidc(response, request.url.scheme)
    return response
