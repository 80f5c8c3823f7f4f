"""Tokens, with which programs and remote users authenticate."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Path, Response

from vmtune.api.auth.security import ADMIN, Who
from vmtune.api.responses import LOCATION, WITH_BODY, problems, with_headers
from vmtune.api.routes.common import PREFIX, After, Limit, Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.access import TokenCreate, TokenMade, TokenPage, TokenView
from vmtune.model.access.scopes import MEANINGS

router = Router(prefix="/tokens", tags=["tokens"])
TokenId = Annotated[str, Path(max_length=60)]


@router.get("", responses=problems(), dependencies=[ADMIN])
async def list_tokens(on: Services, who: Who, limit: Limit = 50, after: After = None) -> TokenPage:
    """Tokens, sorted by name, expired and revoked ones included. A caller that is restricted to
    some hosts or VMs sees only tokens it has created."""
    page = await on.access.tokens.list(who, after, limit)
    now = datetime.now(UTC)
    return TokenPage(
        items=[TokenView.of(t, now) for t in page.items], next=page.next, scopes=dict(MEANINGS)
    )


@router.post(
    "",
    status_code=201,
    responses=problems(*WITH_BODY, 409) | with_headers(201, LOCATION),
    dependencies=[ADMIN],
)
async def create_token(on: Services, who: Who, body: TokenCreate, response: Response) -> TokenMade:
    """Create a token; only this response has its secret. It has at most the permissions of its
    creator, and becomes invalid with its creator."""
    token, secret = await on.access.tokens.create(
        who, body.name, body.scopes, body.hosts, body.selector, body.expires_at
    )
    response.headers["Location"] = f"{PREFIX}/tokens/{token.id}"
    return TokenMade.made(token, secret.text, datetime.now(UTC))


@router.get("/{token}", responses=problems(404), dependencies=[ADMIN])
async def get_token(on: Services, who: Who, token: TokenId) -> TokenView:
    """One token."""
    return TokenView.of(await on.access.tokens.get(who, token), datetime.now(UTC))


@router.delete("/{token}", status_code=204, responses=problems(404), dependencies=[ADMIN])
async def revoke_token(on: Services, who: Who, token: TokenId) -> None:
    """Revoke a token: it becomes invalid, with all tokens created with it. Browsers that signed
    in with it are signed out."""
    await on.access.tokens.revoke(who, token)
