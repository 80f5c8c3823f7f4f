"""Counts refused sign-ins, whatever refused them: who sends what is no token, or no JSON, is slowed
down like one who guesses."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vmtune.api.auth.authentication import address_of
from vmtune.api.auth.security import SIGN_IN
from vmtune.api.errors import problem_response
from vmtune.api.wiring.deps import Container
from vmtune.errors import TooManyAttempts

_COUNTED_ELSEWHERE = (401, 429)
"""Whether the token is right is counted where it is checked."""


class SignInThrottle:
    """Counts each refused ``POST /session`` against its address. Beyond what is free, the answer is
    429 instead of the refusal."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (scope["method"], scope["path"]) != SIGN_IN:
            await self._app(scope, receive, send)
            return
        container: Container | None = scope["app"].state.container
        replaced = False

        async def counting(message: Message) -> None:
            nonlocal replaced
            if message["type"] == "http.response.start" and container is not None:
                refusal = _count(container, address_of(scope), message["status"])
                if refusal is not None:
                    replaced = True
                    answer = problem_response(refusal, scope["state"]["request_id"])
                    await answer(scope, receive, send)
            if not replaced:
                await send(message)

        await self._app(scope, receive, counting)


def _count(container: Container, address: str, status: int) -> TooManyAttempts | None:
    if not 400 <= status < 500 or status in _COUNTED_ELSEWHERE:
        return None
    try:
        container.access.tokens.count_refusal(address)
    except TooManyAttempts as error:
        return error
    return None
