"""Who asks, and browsers that are signed in."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from vmtune.api.authentication import address_of, cookie_of
from vmtune.api.cookies import clear_cookies, set_cookies
from vmtune.api.responses import LOCATION, WITH_BODY, problems, with_headers
from vmtune.api.routes.common import PREFIX, Services
from vmtune.api.schemas.access import ActorView, RightsView, SessionView, SignIn
from vmtune.api.security import PUBLIC, READ, Who
from vmtune.domain.access import Identity
from vmtune.services.access_browsers import Browser

router = APIRouter(tags=["session"])


@router.get("/live", status_code=204, responses=problems(), dependencies=[PUBLIC])
async def is_live() -> None:
    """That the service answers, and nothing else: for load balancers. Needs no token."""


@router.get("/session", responses=problems(), dependencies=[READ])
async def get_session(request: Request, who: Who) -> SessionView:
    """Who asks, and what they may do."""
    return _shown(who, getattr(request.state, "browser", None))


@router.post(
    "/session",
    status_code=201,
    responses=problems(*WITH_BODY) | with_headers(201, LOCATION),
    dependencies=[PUBLIC],
)
async def sign_in(on: Services, request: Request, body: SignIn, response: Response) -> SessionView:
    """Sign a browser in with a token, into a cookie that no script can read. Each change then
    needs `csrf` as X-Vmtune-CSRF."""
    browser = await on.access.browsers.sign_in(body.token.strip(), address_of(request.scope))
    request.state.act.actor = browser.identity
    set_cookies(response, request.url.scheme, browser)
    response.headers["Location"] = f"{PREFIX}/session"
    return _shown(browser.identity, browser)


@router.delete("/session", status_code=204, responses=problems(), dependencies=[READ])
async def sign_out(on: Services, request: Request, response: Response) -> None:
    """Sign a browser out: its cookie lets nobody in any more."""
    cookie = cookie_of(request.scope)
    if cookie is not None:
        await on.access.browsers.sign_out(cookie)
    clear_cookies(response, request.url.scheme)


def _shown(who: Identity, browser: Browser | None) -> SessionView:
    ends = [t for t in (who.expires_at, browser and browser.expires_at) if t]
    return SessionView(
        who=ActorView.of(who),
        rights=RightsView.of(who.rights),
        signed_in=browser is not None,
        expires_at=min(ends, default=None),
        csrf=browser.csrf if browser else None,
    )
