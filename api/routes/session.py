"""The caller, and browser sessions."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request, Response

from vmtune.api.auth.authentication import address_of
from vmtune.api.auth.cookies import clear_cookies, set_cookie
from vmtune.api.auth.reach import EVERYWHERE
from vmtune.api.auth.security import ADMIN, PUBLIC, READ, Who
from vmtune.api.http.bodies import TINY_BODY
from vmtune.api.responses import LOCATION, WITH_BODY, problems, with_headers
from vmtune.api.routes.common import PREFIX, After, Limit, Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.access import (
    ActorView,
    BrowserPage,
    BrowserView,
    RightsView,
    SessionView,
    SignIn,
)
from vmtune.model.access.scopes import Identity
from vmtune.services.access.web_sessions import SHOWN, WebLogin

router = Router(tags=["session"])


@router.get("/live", status_code=204, responses=problems(), dependencies=[PUBLIC])
async def is_live() -> None:
    """Liveness check for load balancers. Needs no token."""


@router.get("/session", responses=problems(), dependencies=[READ])
async def get_session(request: Request, who: Who) -> SessionView:
    """Identity and permissions of the caller."""
    return _shown(who, getattr(request.state, "browser", None))


@router.post(
    "/session",
    status_code=201,
    responses=problems(*WITH_BODY) | with_headers(201, LOCATION),
    dependencies=[PUBLIC, TINY_BODY],
)
async def sign_in(on: Services, request: Request, body: SignIn, response: Response) -> SessionView:
    """Sign a browser in with a token; sets an HttpOnly cookie. Each request then needs `csrf` as
    X-Vmtune-CSRF too; reads may send it as the parameter `csrf`."""
    browser = await on.access.browsers.sign_in(body.token.strip(), address_of(request.scope))
    request.state.act.actor = browser.identity
    set_cookie(response, request.url.scheme, browser)
    response.headers["Location"] = f"{PREFIX}/session"
    return _shown(browser.identity, browser)


@router.delete("/session", status_code=204, responses=problems(), dependencies=[READ])
async def sign_out(on: Services, request: Request, response: Response) -> None:
    """Sign the browser out: its cookie becomes invalid."""
    browser: WebLogin | None = getattr(request.state, "browser", None)
    if browser is not None:
        await on.access.browsers.sign_out(browser.key)
    clear_cookies(response, request.url.scheme)


@router.get("/browsers", responses=problems(), dependencies=[ADMIN, EVERYWHERE])
async def list_browsers(
    on: Services, request: Request, limit: Limit = 50, after: After = None
) -> BrowserPage:
    """The signed-in browsers of all users, sorted by user name."""
    page = await on.access.browsers.list(after, limit)
    asking = getattr(request.state, "browser", None)
    return BrowserPage(items=[BrowserView.of(b, asking) for b in page.items], next=page.next)


@router.delete(
    "/browsers/{browser}",
    status_code=204,
    responses=problems(404),
    dependencies=[ADMIN, EVERYWHERE],
)
async def sign_browser_out(
    on: Services, browser: Annotated[str, Path(pattern=f"^[0-9a-f]{{{SHOWN}}}$")]
) -> None:
    """Sign a browser out: its cookie becomes invalid. The token that it signed in with stays
    valid; revoke it to lock the user out."""
    await on.access.browsers.end(browser)


def _shown(who: Identity, browser: WebLogin | None) -> SessionView:
    ends = [t for t in (who.expires_at, browser and browser.expires_at) if t]
    return SessionView(
        who=ActorView.from_record(who),
        rights=RightsView.of(who.rights),
        signed_in=browser is not None,
        expires_at=min(ends, default=None),
        csrf=browser.csrf if browser else None,
    )
