"""Hosts and VMs as vmtune remembers them, apart from what is probed of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from urllib.parse import urlsplit
from uuid import UUID

from vmtune.errors import InvalidInput
from vmtune.model.host.facts import Connection

_URI = re.compile(
    r"(?P<scheme>qemu(?:\+(?:unix|tcp|ssh|tls|libssh|libssh2))?|qmp\+unix)://"
    r"(?:(?P<user>[A-Za-z0-9._][A-Za-z0-9._-]*)@)?"
    r"(?P<server>(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?)?"
    r"(?P<path>/[A-Za-z0-9._/-]*)(?:\?(?P<query>[A-Za-z0-9=&_./,:%+-]*))?"
)
# libvirt takes more: of those, `command` and `netcat` run what they name.
_QUERY = frozenset(
    (
        "socket", "mode", "keyfile", "known_hosts", "known_hosts_verify", "sshauth", "no_tty",
        "no_verify", "no_sanity", "pkipath", "proxy", "tls_priority",
    )
)  # fmt: skip
_ADDRESS = re.compile(r"[A-Za-z0-9\[][A-Za-z0-9._:\[\]-]{0,252}")


@dataclass(frozen=True, slots=True)
class Host:
    """A libvirt connection, or a folder of QMP sockets.

    :param uri: a libvirt URI (``qemu:///system``, ``qemu+ssh://root@a/system``), or
        ``qmp+unix:///FOLDER``: each socket in it is one QEMU's monitor.
    :param peer_uri: how other hosts reach its libvirt; empty to derive it from *uri*.
    :param migration_address: where its QEMUs listen for a migration in direct mode.
    :param owner: the service that drives it; empty where nobody does yet, or one service drives
        all.
    :param machine: the machine that *uri* means, where it names none; empty where it names one,
        or one service drives all.
    """

    name: str
    uri: str
    peer_uri: str
    migration_address: str
    created_at: datetime
    owner: str = ""
    machine: str = ""

    @property
    def connection(self) -> Connection:
        """How its QEMUs are reached, which the URI's scheme says."""
        return Connection.QMP if self.uri.startswith("qmp+") else Connection.LIBVIRT

    @property
    def names_no_machine(self) -> bool:
        """Whether its address means another host on another machine (``qemu:///system``)."""
        return not urlsplit(self.uri).hostname


@dataclass(frozen=True, slots=True)
class Vm:
    """A VM that was seen on a host, with the operator's labels."""

    uuid: UUID
    name: str
    host: str
    labels: Mapping[str, str] = field(default_factory=dict)
    seen_at: datetime | None = None


def check_uri(uri: str, what: str = "uri") -> str:
    """*uri* if vmtune can drive what it names.

    :raise InvalidInput: otherwise.
    """
    match = _URI.fullmatch(uri)
    remote = match is not None and "+" in match["scheme"] and match["scheme"][-4:] != "unix"
    parts = match["path"].split("/") if match else []
    if match is None or (remote and not match["server"]) or ".." in parts:
        raise InvalidInput(
            f"{uri[:100]!r} is no host that vmtune can drive",
            field=what,
            remedy="write a libvirt URI such as qemu:///system or qemu+ssh://root@NAME/system, "
            "or qmp+unix:///FOLDER for a folder of QMP sockets; a password cannot be part of it",
        )
    named = [part.partition("=")[0] for part in (match["query"] or "").split("&") if part]
    unknown = [name for name in named if name not in _QUERY]
    if unknown:
        raise InvalidInput(
            f"{uri[:100]!r} has the parameter {unknown[0]}, which vmtune does not pass on",
            field=what,
            remedy=f"leave it out; there are {', '.join(sorted(_QUERY))}",
        )
    return uri


def check_address(address: str, what: str = "migration_address") -> str:
    """*address* if it can be a host name or an IP address; empty is allowed.

    :raise InvalidInput: otherwise.
    """
    if address and not _ADDRESS.fullmatch(address):
        raise InvalidInput(
            f"{address[:100]!r} is no host name or IP address",
            field=what,
            remedy="write a name or an address, without port",
        )
    return address


class EventTopic(StrEnum):
    """What an event is about."""

    HOST = "host"
    VM = "vm"
    PROFILE = "profile"
    ASSIGNMENT = "assignment"
    APPLICATION = "application"
    MIGRATION = "migration"
    ARRIVAL = "arrival"
    RUN = "run"
    CAMPAIGN = "campaign"
    EVACUATION = "evacuation"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that changed, told to those who follow the event stream.

    :param id: grows by one or more from event to event; a stream resumes after it.
    :param subject: the UUID or name of what changed.
    :param data: what changed, ready for JSON.
    """

    id: int
    at: datetime
    topic: EventTopic
    subject: str
    data: Mapping[str, object]
