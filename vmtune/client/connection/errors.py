"""The errors of the connection, for those who know them by this name: see vmtune.remote.errors."""

from vmtune.remote.errors import (
    ClientError,
    ConnectionLost,
    Refused,
    ServiceUnreachable,
    may_have_begun,
    problem_document,
)

__all__ = [
    "ClientError",
    "ConnectionLost",
    "Refused",
    "ServiceUnreachable",
    "may_have_begun",
    "problem_document",
]
