"""Checks a host, or two, for what a migration needs. Changes nothing."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime

from vmtune.errors import HostUnreachable, InvalidInput, Problem, VmtuneError
from vmtune.model.host.check import (
    LAST_PORT,
    HostCheck,
    Peer,
    Probed,
    arrival,
    check_host,
    check_pair,
)
from vmtune.model.host.facts import Connection, HostFacts
from vmtune.model.host.inventory import Host
from vmtune.services.hosts.doctor import DoctorService
from vmtune.services.hosts.hosts import HostService

_WITHIN_S = 30.0
_PEER_WITHIN_S = 10.0
_NAME_WITHIN_S = 5.0
_PORT_WITHIN_S = 3.0
OWN_MACHINE = "qemu:///system"
"""With a socket named it may be a daemon in a network of its own."""


def addresses_of(name: str) -> tuple[str, ...]:
    """The addresses of a name or address on this machine, by its resolver; none where it is not
    known. May block for as long as the resolver does."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(each[4][0]) for each in found))


def why_not_reached(name: str, port: int) -> str:
    """Why a port is not reached; empty where it is, and where it is refused, as by a machine on
    which nobody listens there yet. Blocks for some seconds for each address that is silent."""
    try:
        socket.create_connection((name, port), _PORT_WITHIN_S).close()
    except (ConnectionRefusedError, socket.gaierror, UnicodeError):
        return ""
    except TimeoutError:
        return f"nothing answers within {_PORT_WITHIN_S:g} s"
    except OSError as error:
        return error.strerror or str(error)
    return ""


class HostCheckService:
    """Tries what a migration needs of hosts.

    :param certificate_until: when the certificate that a URI's server presents expires; None where
        it presents none that can be seen. May block for some seconds.
    :param resolve: as :func:`addresses_of`.
    :param connects: as :func:`why_not_reached`.
    """

    def __init__(
        self,
        hosts: HostService,
        doctor: DoctorService,
        certificate_until: Callable[[str], datetime | None],
        resolve: Callable[[str], tuple[str, ...]] = addresses_of,
        connects: Callable[[str, int], str] = why_not_reached,
    ) -> None:
        self._hosts = hosts
        self._doctor = doctor
        self._certificate_until = certificate_until
        self._resolve = resolve
        self._connects = connects

    async def check(self, name: str, to: str = "") -> HostCheck:
        """Connect anew to one host, or both, and look at what each says.

        :raise NotFound: no such host. One that does not answer is a step that failed.
        :raise InvalidInput: both are the same.
        """
        if name == to:
            raise InvalidInput(
                f"{to} is the host itself", field="to", remedy="name the host to migrate to"
            )
        names = [name, to] if to else [name]
        for each in names:
            await self._hosts.get(each)
        probed = await asyncio.gather(*map(self._probe, names))
        now = datetime.now(UTC)
        steps = [step for each in probed for step in check_host(each, now)]
        if to:
            source, destination = probed
            not_reached = await self._not_reached(source, destination)
            steps += check_pair(source, destination, not_reached)
        return HostCheck(name, to, tuple(steps))

    async def _probe(self, name: str) -> Probed:
        host = await self._hosts.get(name)
        begun = time.monotonic()
        try:
            async with asyncio.timeout(_WITHIN_S):
                facts = await self._hosts.probe(name)
                seconds = time.monotonic() - begun
                findings = (await self._doctor.diagnose(name)).needs_action
        except TimeoutError:
            return Probed(host, None, problem=_silent(name))
        except VmtuneError as error:
            return Probed(host, None, problem=error.problems[0])
        until, peer, addresses = await asyncio.gather(
            asyncio.to_thread(self._certificate_until, host.uri),
            self._peer(host, facts.peer_uri),
            self._addresses(host, facts),
        )
        return Probed(host, facts, seconds, None, until, findings, peer, addresses)

    async def _not_reached(self, source: Probed, destination: Probed) -> str:
        """Why a VM would not arrive, as far as the service's machine is the source and sees it."""
        if source.host.uri != OWN_MACHINE or destination.facts is None:
            return ""
        to = arrival(destination.host, destination.facts)
        return await asyncio.to_thread(self._connects, to, LAST_PORT)

    async def _addresses(self, host: Host, facts: HostFacts) -> tuple[str, ...] | None:
        """Where migrations to a host of libvirt go, by this machine's resolver; None for others, or
        where nobody says in time."""
        if facts.connection is not Connection.LIBVIRT:
            return None
        try:
            async with asyncio.timeout(_NAME_WITHIN_S):
                return await asyncio.to_thread(self._resolve, arrival(host, facts))
        except TimeoutError:
            return None

    async def _peer(self, host: Host, uri: str) -> Peer | None:
        """Who answers by a host's peer URI; None where that was tried by the connection itself."""
        if uri in ("", host.uri):
            return None
        try:
            async with asyncio.timeout(_PEER_WITHIN_S):
                facts = await self._hosts.probe_uri(uri)
        except TimeoutError:
            message = f"it did not answer within {_PEER_WITHIN_S:g} s"
            return Peer(problem=HostUnreachable(message, field="peer_uri").problems[0])
        except VmtuneError as error:
            return Peer(problem=error.problems[0])
        return Peer(facts.uuid, facts.hostname)


def _silent(name: str) -> Problem:
    message = f"{name} did not answer within {_WITHIN_S:g} s"
    return HostUnreachable(message, remedy="look at its libvirt daemon").problems[0]
