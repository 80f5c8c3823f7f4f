"""What can go wrong between a client and the service.

::

    VmtuneError
    └── ClientError
        ├── ServiceUnreachable   nothing was sent: no service answers at the socket
        ├── ConnectionLost       sent, and no whole answer came: the outcome is unknown
        └── Refused              the service answered with a problem
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import Problem, VmtuneError


class ClientError(VmtuneError):
    """The service could not be asked, or it refused."""

    code = "client"

    def document(self) -> Mapping[str, Any]:  # any: JSON
        """The error as a problem document (RFC 9457), for ``--json``."""
        return problem_document(self)


class ServiceUnreachable(ClientError):
    """No service answers at the socket; nothing was sent."""

    code = "service_unreachable"


class ConnectionLost(ClientError):
    """The request was sent and no whole answer came: it may have taken effect."""

    code = "connection_lost"


class Refused(ClientError):
    """The service answered with a problem.

    :param status: the HTTP status.
    :param body: the problem document as it came.
    """

    code = "refused"

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:  # any: JSON
        message = str(body.get("detail") or body.get("title") or f"HTTP status {status}")
        super().__init__(message, problems=_problems(body))
        self.status = status
        self.body = body

    @property
    def problem_code(self) -> str:
        """The code of the kind of problem, such as ``not_found``."""
        return str(self.body.get("code", ""))

    def document(self) -> Mapping[str, Any]:  # any: JSON
        return self.body


_UNKNOWN = (500, 502, 504)
"""A fault in the middle of a request, or a proxy that did not get the service's whole answer."""


def may_have_begun(error: ClientError) -> bool:
    """Whether what was asked for may have taken effect in spite of *error*."""
    if isinstance(error, Refused):
        return error.status in _UNKNOWN
    return isinstance(error, ConnectionLost)


def _problems(body: Mapping[str, Any]) -> list[Problem]:  # any: JSON
    listed = body.get("errors")
    rows = listed if isinstance(listed, list) else []
    return [
        Problem(
            str(row.get("field", "")),
            str(row.get("code", "")),
            str(row.get("message", "")),
            str(row.get("remedy") or ""),
        )
        for row in rows
        if isinstance(row, dict)
    ]


def problem_document(error: VmtuneError) -> Mapping[str, Any]:  # any: JSON
    """*error* in the shape in which the service reports its own."""
    return {
        "type": f"urn:vmtune:problem:{type(error).code}",
        "title": type(error).__name__,
        "detail": error.message,
        "code": type(error).code,
        "errors": [
            {"field": p.field, "code": p.code, "message": p.message, "remedy": p.remedy}
            for p in error.problems
        ],
    }


def unreachable(socket_path: Path, error: OSError) -> ServiceUnreachable:
    """The error for a socket at which no service answers."""
    if isinstance(error, PermissionError):
        return ServiceUnreachable(
            f"this user has no permission for the service's socket {socket_path}",
            field="socket",
            remedy="run the command as root, as the service's user or as a member of its "
            "socket_group; or use its URL with a token (VMTUNE_URL, VMTUNE_TOKEN)",
        )
    return ServiceUnreachable(
        f"cannot connect to {socket_path}: {error.strerror or error}",
        field="socket",
        remedy="start the service with `vmtune serve`, or set --socket or VMTUNE_SOCKET",
    )
