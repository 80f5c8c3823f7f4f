"""A client of the vmtune service: typed, synchronous (:class:`Client`) and asynchronous
(:class:`AsyncClient`).

Documents are dictionaries with the types of :mod:`vmtune_client.models`; errors are in
:mod:`vmtune_client.refusals`.
"""

from . import models
from .aio import AsyncClient
from .errors import InvalidInput, Problem, VmtuneError
from .refusals import (
    Conflicts,
    Denied,
    HostFailed,
    Invalid,
    Missing,
    NotReady,
    NotSignedIn,
    Stale,
    TooMany,
)
from .remote.errors import ClientError, ConnectionLost, Refused, ServiceUnreachable
from .remote.events import Connected, Heartbeat, ServerEvent
from .sync import Client
from .waiting import Late, Watched

__all__ = [
    "AsyncClient",
    "Client",
    "ClientError",
    "Conflicts",
    "Connected",
    "ConnectionLost",
    "Denied",
    "Heartbeat",
    "HostFailed",
    "Invalid",
    "InvalidInput",
    "Late",
    "Missing",
    "NotReady",
    "NotSignedIn",
    "Problem",
    "Refused",
    "ServerEvent",
    "ServiceUnreachable",
    "Stale",
    "TooMany",
    "VmtuneError",
    "Watched",
    "models",
]
