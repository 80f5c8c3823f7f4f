"""Has each request's end noted in the audit log, where it is one to note."""

from __future__ import annotations

import json
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vmtune.api.auth.authentication import address_of, is_unix
from vmtune.api.http.bodies import headers_of, refuse
from vmtune.api.http.middleware import READS
from vmtune.api.responses import PROBLEM_JSON
from vmtune.api.wiring.deps import Container
from vmtune.errors import InvalidInput
from vmtune.model.access.audit import MAX_REASON, Act, Outcome
from vmtune.model.access.scopes import NOBODY
from vmtune.services.access.audit import AuditService

REASON_HEADER = "x-vmtune-reason"
_NOT_LET_IN = (401, 403, 421, 429)
_FAILS = (424, 500, 503)


class AuditMiddleware:
    """Begins an :class:`~vmtune.model.access.audit.Act` for each request, under which its changes
    are logged, and logs at its end what changed no stored record: refusals, failures, and other
    actions."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        container: Container | None = scope["app"].state.container
        if scope["type"] != "http" or container is None:
            await self._app(scope, receive, send)
            return
        origin = f"unix socket, {address_of(scope)}" if is_unix(scope) else address_of(scope)
        path = f"{scope['method']} {scope['path']}"[:200]
        act = Act(NOBODY, origin, path, request=scope["state"]["request_id"])
        scope["state"]["act"] = act
        end = _AuditedResponse(container.access.audit, scope, act, send)
        with container.access.audit.during(act):
            try:
                act.reason = _reason(scope)
            except InvalidInput as error:
                await refuse(error, scope, receive, end.send)
            else:
                try:
                    await self._app(scope, receive, end.send)
                except BaseException:
                    await end.note(500, b"")  # which is what it will be answered with
                    raise


class _AuditedResponse:
    """Logs how a request ends before the answer is sent: every answer is in the log."""

    def __init__(self, audit: AuditService, scope: Scope, act: Act, send: Send) -> None:
        self._audit = audit
        self._scope = scope
        self._act = act
        self._send = send
        self._noted = False
        self._start: Message | None = None
        self._problem = b""

    async def send(self, message: Message) -> None:
        """Pass an answer on; a problem as a whole, for its codes."""
        if message["type"] == "http.response.start":
            if _is_problem(message):
                self._start = message
                return
            await self.note(message["status"], b"")
        elif self._start is not None:
            self._problem += message.get("body", b"")
            if message.get("more_body", False):
                return
            start, self._start = self._start, None
            await self.note(start["status"], self._problem)
            await self._send(start)
            message = {"type": "http.response.body", "body": self._problem}
        await self._send(message)

    async def note(self, status: int, problem: bytes) -> None:
        """Note it, once, where there is something to note."""
        outcome = None if self._noted else _outcome(self._scope, self._act, status)
        self._noted = True
        if outcome is not None:
            subject = _subject(self._scope)
            await self._audit.note(self._act, outcome, subject, status, _codes(problem))


def _is_problem(start: Message) -> bool:
    return any(
        name == b"content-type" and value == PROBLEM_JSON.encode()
        for name, value in start["headers"]
    )


def _reason(scope: Scope) -> str:
    """Why, in the asker's own words: UTF-8, percent-encoded as in a URL.

    :raise InvalidInput: it is too long.
    """
    reason = unquote(headers_of(scope).get(REASON_HEADER, ""))
    if len(reason) > MAX_REASON:
        raise InvalidInput(
            f"the reason has {len(reason)} characters",
            field=REASON_HEADER,
            remedy=f"use at most {MAX_REASON}",
        )
    return reason


def _outcome(scope: Scope, act: Act, status: int) -> Outcome | None:
    """The entry to log; None if there is none."""
    changes = scope["method"] not in READS and not scope["state"].get("only_reads")
    if status in _NOT_LET_IN or scope["state"].get("out_of_reach"):
        return Outcome.REFUSED
    if not changes:
        return None
    if status in _FAILS:
        return Outcome.FAILED
    if status >= 400:
        return Outcome.REFUSED
    return Outcome.DONE if act.entries == 0 else None


def _subject(scope: Scope) -> str:
    """What the route or the path names, such as ``vm 7d1e...``."""
    if "subject" in scope["state"]:
        return str(scope["state"]["subject"])
    named = scope.get("path_params") or {}
    return ", ".join(f"{_kind(scope, what, key)} {key}" for what, key in named.items())


def _kind(scope: Scope, what: str, key: object) -> str:
    """What a part of the path names: of ``/hosts/{name}`` a host."""
    above, _, _ = unquote(scope["path"]).partition(f"/{key}")
    return above.rpartition("/")[2].removesuffix("s") if what == "name" else what


def _codes(problem: bytes) -> list[str]:
    """The codes of a problem document; none where it is no whole one."""
    try:
        return [str(item["code"]) for item in json.loads(problem)["errors"]]
    except (ValueError, KeyError, TypeError):
        return []
