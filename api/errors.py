"""Every error as one problem document (RFC 9457), from one table of statuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from vmtune.api.responses import PROBLEM_JSON
from vmtune.api.validation import malformed_json, problems_of_validation
from vmtune.errors import (
    CommandRefused,
    Conflict,
    Forbidden,
    HostUnreachable,
    InvalidInput,
    MonitorBusy,
    NotFound,
    OutcomeUnknown,
    Problem,
    SetupError,
    StaleRevision,
    TakenOver,
    TooManyAttempts,
    Unauthenticated,
    VmtuneError,
    and_more,
)
from vmtune.services.access.guard import OutOfReach

log = structlog.get_logger(__name__)


class PreconditionRequired(VmtuneError):
    """The request has to say which revision it changes, and does not."""

    code = "precondition_required"


class NotJson(VmtuneError):
    """The body is no JSON."""

    code = "not_json"


class WrongMediaType(VmtuneError):
    """The body is sent as something else than JSON."""

    code = "wrong_media_type"


class BodyTooLarge(VmtuneError):
    """The body is larger than the service takes."""

    code = "body_too_large"


class ForeignHost(VmtuneError):
    """The Host header names another machine: a web page may have been tricked into sending the
    request."""

    code = "foreign_host"


class ForeignOrigin(VmtuneError):
    """A web page of another origin requests a change."""

    code = "foreign_origin"


class UnknownRoute(VmtuneError):
    """There is nothing at that path."""

    code = "unknown_route"


class MethodNotAllowed(VmtuneError):
    """The path does not support this method."""

    code = "method_not_allowed"


STATUS_OF: Mapping[type[VmtuneError], int] = {
    NotJson: 400,
    Unauthenticated: 401,
    ForeignOrigin: 403,
    Forbidden: 403,
    NotFound: 404,
    UnknownRoute: 404,
    MethodNotAllowed: 405,
    Conflict: 409,
    MonitorBusy: 409,
    CommandRefused: 409,
    StaleRevision: 412,
    BodyTooLarge: 413,
    WrongMediaType: 415,
    ForeignHost: 421,
    InvalidInput: 422,
    HostUnreachable: 424,
    OutcomeUnknown: 424,
    PreconditionRequired: 428,
    TooManyAttempts: 429,
    SetupError: 503,
    TakenOver: 503,
}
"""Subclasses have their parent's status. Any other error is a fault of vmtune: 500."""


def status_of(error: VmtuneError) -> int:
    """The HTTP status of *error*."""
    for kind in type(error).__mro__:
        if kind in STATUS_OF:
            return STATUS_OF[kind]
    return 500


def problem_response(
    error: VmtuneError, request_id: str, headers: Mapping[str, str] | None = None
) -> Response:
    """*error* as a problem document."""
    status = status_of(error)
    named = dict(headers or {})
    if isinstance(error, Unauthenticated):
        named["WWW-Authenticate"] = 'Bearer realm="vmtune"'
    if isinstance(error, TooManyAttempts):
        named["Retry-After"] = str(error.wait_s)
    return _document(status, type(error).code, error.message, error.problems, request_id, named)


def internal_error(request_id: str) -> Response:
    """The answer to an internal error: where to find it in the log, and nothing else."""
    problem = Problem(
        "",
        "internal",
        "internal error",
        f"look for {request_id} in the service's log and report it",
    )
    detail = f"internal error; the service's log has the details under {request_id}"
    return _document(500, "internal", detail, [problem], request_id)


def _document(
    status: int,
    code: str,
    detail: str,
    problems: Sequence[Problem],
    request_id: str,
    headers: Mapping[str, str] | None = None,
) -> Response:
    document = {
        "type": f"urn:vmtune:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": shortened(detail),
        "code": code,
        "instance": f"urn:vmtune:request:{request_id}",
        "errors": _listed(problems),
    }
    # ASCII: input may come back in it, and need not be valid Unicode.
    body = json.dumps(document, ensure_ascii=True)
    return Response(body, status, dict(headers or {}), PROBLEM_JSON)


_MAX_LISTED_BYTES = 48 << 10
_LONGEST_TEXT, _LONGEST_FOREIGN_TEXT = 2000, 300  # of what is not ASCII each is up to 12 bytes


def _listed(problems: Sequence[Problem]) -> list[dict[str, str]]:
    """*problems* as JSON, those that fit into an answer: at most 64 KiB, however long the names
    are that were sent."""
    listed: list[dict[str, str]] = []
    room = _MAX_LISTED_BYTES
    for index, each in enumerate(problems):
        row = {name: shortened(getattr(each, name)) for name in _PARTS}
        room -= len(json.dumps(row))
        if room < 0 and listed:
            rest = and_more(len(problems) - index)
            return [*listed, {name: getattr(rest, name) for name in _PARTS}]
        listed.append(row)
    return listed


_PARTS = ("field", "code", "message", "remedy")


def shortened(text: str) -> str:
    """*text*, of at most 2,000 characters."""
    most = _LONGEST_TEXT if text.isascii() else _LONGEST_FOREIGN_TEXT
    return text if len(text) <= most else text[: most - 3] + "..."


Methods = Callable[[str], Sequence[str]]


def add_handlers(app: FastAPI, methods_at: Methods) -> None:
    """Have every error of *app* answered with a problem document.

    :param methods_at: the methods that a path takes, for 405.
    """

    async def vmtune_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, VmtuneError)
        request_id = request.state.request_id
        request.state.out_of_reach = isinstance(error, OutOfReach)  # for the audit log alone
        if status_of(error) == 500:
            log.error("an error without a status", error=str(error), kind=type(error).__name__)
            return internal_error(request_id)
        return problem_response(error, request_id)

    async def validation_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        bad_json = malformed_json(error)
        if bad_json:
            return problem_response(_not_json(bad_json), request.state.request_id)
        problems = problems_of_validation(request, error)
        refused = InvalidInput("the request is invalid", problems=problems)
        return problem_response(refused, request.state.request_id)

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers: dict[str, str] = {}
        mapped = _from_http(error, request, methods_at, headers)
        return problem_response(mapped, request.state.request_id, headers)

    app.add_exception_handler(VmtuneError, vmtune_error)
    app.add_exception_handler(RequestValidationError, validation_error)
    app.add_exception_handler(HTTPException, http_error)


def method_not_allowed(
    path: str, method: str, methods: Sequence[str]
) -> tuple[MethodNotAllowed, dict[str, str]]:
    """The error, and the header that goes with it.

    :param methods: those that *path* takes.
    """
    allowed = ", ".join(methods)
    error = MethodNotAllowed(
        f"{path[:200]} does not support {method[:20]}", remedy=f"use {allowed}"
    )
    return error, {"Allow": allowed}


def _not_json(why: str) -> NotJson:
    return NotJson(f"the body is not JSON: {why}", field="body", remedy="send one JSON object")


def _from_http(
    error: HTTPException, request: Request, methods_at: Methods, headers: dict[str, str]
) -> VmtuneError:
    """The framework's own errors: of routing, and of reading the body."""
    path = request.url.path[:200]
    if isinstance(error.__cause__, VmtuneError):
        return error.__cause__
    if error.status_code == 404:
        return UnknownRoute(f"{path} does not exist", remedy="see GET /api/v1/openapi.json")
    if error.status_code == 405:
        refused, more = method_not_allowed(path, request.method, methods_at(request.url.path))
        headers.update(more)
        return refused
    return _not_json("it cannot be read")
