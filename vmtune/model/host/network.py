"""The migration network: the addresses of a host, of a profile, and of one migration."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass

from vmtune.errors import InvalidInput, Problem
from vmtune.model.host.facts import Connection
from vmtune.model.host.inventory import Host
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.texts import expand, is_address, split_uri
from vmtune.model.tunables.tunable import Value


def check_network(addresses: Mapping[str, str], connection: Connection) -> Mapping[str, str]:
    """The addresses of a host, if they can be; an empty one is none.

    :param addresses: by the tunables' names.
    :raise InvalidInput: with a problem for each that cannot.
    """
    problems: list[Problem] = []
    for name, text in addresses.items():
        row = BUILT_IN[name]
        try:
            if text:
                row.accept(text)
        except ValueError as error:
            message = f"{text[:100]!r}: {error}"
            problems.append(Problem(name, "invalid_value", message, f"allowed: {row.allowed()}"))
    if addresses.get("disks_uri") and connection is Connection.QMP:
        message = "only libvirt copies disks"
        problems.append(Problem("disks_uri", "needs_libvirt", message, "leave it out"))
    if problems:
        raise InvalidInput("the host's addresses cannot be accepted", problems=problems)
    return addresses


def with_network(
    values: Mapping[str, Value], destination: Host, hostname: str
) -> Mapping[str, Value]:
    """*values* for a migration to a host: with that host's addresses where they name none, and
    with what placeholders stand for.

    :param hostname: what the destination calls itself.
    """
    own = {
        "migrate_uri": destination.migrate_uri,
        "listen_address": destination.listen_address,
        "disks_uri": destination.disks_uri,
    }
    wanted = {name: values.get(name, text) for name, text in own.items()}
    known = {n: expand(str(text), destination.name, hostname) for n, text in wanted.items() if text}
    return {**values, **known}


@dataclass(frozen=True, slots=True)
class DirectAddress:
    """Where two QEMUs without libvirt meet.

    :param listen: what the destination listens on; empty for a socket next to its monitor.
    :param connect: what the source connects to; empty where nothing says so.
    :param port: None for one that QEMU chooses.
    """

    listen: str = ""
    connect: str = ""
    port: int | None = None

    @property
    def disks(self) -> str:
        """What the destination listens on for disks: what the source connects to, where it takes
        the migration on all of its addresses. Who reaches it there can write to them.

        >>> DirectAddress("0.0.0.0", "10.0.0.2").disks
        '10.0.0.2'
        """
        return (self.connect if _is_wildcard(self.listen) else self.listen).strip("[]")


def direct_address(values: Mapping[str, Value], migration_address: str) -> DirectAddress:
    """Where to meet, by a migration's *values* and else by the host's *migration_address*.

    >>> direct_address({"migrate_uri": "tcp://10.0.0.2:49300", "listen_address": "0.0.0.0"}, "")
    DirectAddress(listen='0.0.0.0', connect='10.0.0.2', port=49300)
    """
    connect, port = split_uri(str(values.get("migrate_uri", ""))) or ("", None)
    listen = str(values.get("listen_address", "")) or connect or migration_address
    connect = connect or ("" if _is_wildcard(listen) else listen)
    if not connect and not _is_wildcard(migration_address):
        connect = migration_address
    return DirectAddress(listen, connect, port)


def _is_wildcard(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.strip("[]")).is_unspecified
    except ValueError:
        return False


_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")


def is_one_address(text: str) -> bool:
    """Whether *text* is an IP address or a host name that stands for one of a host's addresses, and
    not for all of them.

    >>> [is_one_address(text) for text in ("10.0.0.2", "b.example", "0.0.0.0", "::", "0x0", "")]
    [True, True, False, False, False, False]
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        # getaddrinfo(3) takes "0x0" for 0.0.0.0.
        named = is_address(text) and "{" not in text
        return named and not _NUMBER.fullmatch(text.rstrip(".").rpartition(".")[2])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    meant = mapped or address
    return not (meant.is_unspecified or meant.is_multicast)
