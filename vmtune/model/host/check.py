"""What a migration needs of a host and of a pair of hosts, as steps of a check. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from urllib.parse import urlsplit

from vmtune.errors import Problem
from vmtune.model.doctor.rules import OLDEST_LIBVIRT, OLDEST_QEMU
from vmtune.model.findings.table import Finding
from vmtune.model.host.facts import Connection, HostFacts
from vmtune.model.host.inventory import Host

SOON = timedelta(days=30)
"""A certificate that expires sooner gets a warning."""


_CONFINED_BY = {"apparmor": "AppArmor", "selinux": "SELinux", "": "nothing"}


class Result(StrEnum):
    """How a step of the check went. What was not checked is no fault, and no proof either."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a migration needs.

    :param host: the host that it concerns.
    :param message: what was seen; *remedy*: what to do about it, empty if nothing.
    """

    host: str
    what: str
    result: Result
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class HostCheck:
    """A check of a host, and of the way to another one.

    :param to: the other host; empty for the host alone.
    """

    host: str
    to: str
    steps: tuple[Step, ...]

    @property
    def passed(self) -> bool:
        """Whether no step failed."""
        return all(step.result is not Result.FAILED for step in self.steps)


@dataclass(frozen=True, slots=True)
class Peer:
    """What was seen by a host's peer URI, from the service's machine.

    :param uuid: of the host that answered; empty where none did, or it has none.
    :param hostname: what that one calls itself.
    :param problem: why none answered; None where one did.
    """

    uuid: str = ""
    hostname: str = ""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Probed:
    """What was seen of one host by a new connection.

    :param facts: None where it did not answer; *problem* says why.
    :param seconds: how long connecting and asking took.
    :param certificate_until: of a host by TLS: when its certificate expires.
    :param findings: of host diagnostics, those that need action.
    :param peer: by its peer URI; None where there is none, or it is the URI of the connection.
    :param arrival_addresses: those of :func:`arrival` on the service's machine; None where that
        was not asked for.
    """

    host: Host
    facts: HostFacts | None
    seconds: float = 0.0
    problem: Problem | None = None
    certificate_until: datetime | None = None
    findings: tuple[Finding, ...] = ()
    peer: Peer | None = None
    arrival_addresses: tuple[str, ...] | None = None


def arrival(host: Host, facts: HostFacts) -> str:
    """The name or address that migrations to a host go to, unless its qemu.conf or a profile says
    otherwise."""
    return urlsplit(host.migrate_uri).hostname or facts.hostname


def check_host(seen: Probed, now: datetime) -> Iterator[Step]:
    """The steps of one host; only the first where it does not answer."""
    name, facts, problem = seen.host.name, seen.facts, seen.problem
    if facts is None:
        message = problem.message if problem else "it does not answer"
        yield Step(name, "connection", Result.FAILED, message, problem.remedy if problem else "")
        return
    message = f"a new connection by {seen.host.uri} answered after {seen.seconds:.2f} s"
    yield Step(name, "connection", Result.OK, message)
    if seen.certificate_until is not None:
        yield _certificate(name, seen.certificate_until, now)
    yield from _versions(name, facts)
    yield _kvm(name, facts)
    if facts.connection is Connection.LIBVIRT:
        yield _confinement(name, facts)
        yield _called(name, facts)
        yield _peer(seen, facts)
        yield _network(seen, facts)
        yield from _without_certificates(name, facts)
    for finding in seen.findings:
        yield Step(name, finding.code, Result.WARNING, finding.message, finding.remedy)


LAST_PORT = 49215
"""Of those that libvirt takes for VMs that arrive (migration_port_max of qemu.conf); it takes the
first that are free, so that hardly ever one is waited for here."""


def check_pair(source: Probed, destination: Probed, not_reached: str = "") -> Iterator[Step]:
    """What a migration from one to the other needs besides, and what only the hosts can show.

    :param not_reached: why :data:`LAST_PORT` of the destination is not reached from the source;
        empty where it is, or that was not tried.
    """
    a, b = source.facts, destination.facts
    if a is None or b is None:
        return
    name = destination.host.name
    if a.uuid and a.uuid == b.uuid:
        yield Step(
            name,
            "identity",
            Result.FAILED,
            f"{source.host.name} and {name} have the same UUID {a.uuid}: libvirt refuses to "
            "migrate to itself",
            "set host_uuid in /etc/libvirt/libvirtd.conf (or virtqemud.conf) of one of them to the "
            "output of `uuidgen`, and restart its daemon",
        )
    elif a.hostname and a.hostname == b.hostname:
        yield Step(
            name,
            "identity",
            Result.FAILED,
            f"both hosts call themselves {a.hostname}: libvirt refuses to migrate to itself",
            "give each a name of its own with `hostnamectl set-hostname`",
        )
    else:
        yield Step(name, "identity", Result.OK, f"{a.hostname} and {b.hostname} are two hosts")
    yield from _order(source.host.name, name, a, b)
    yield from _labels(source.host.name, name, a, b)
    if a.connection is not Connection.LIBVIRT:
        return
    here, uri = source.host.name, b.peer_uri or "its peer URI"
    not_seen = {
        f"connection from {here}": f"run `virsh -c {uri} hostname` as root on {here}",
        "migration ports": f"run `nc -l 49152` on {name}, and `nc -zv "
        f"{arrival(destination.host, b)} 49152` on {here}; libvirt takes 49152 to {LAST_PORT}",
        "TLS for migrations": "if profiles set tls: run `openssl verify -CAfile "
        "/etc/pki/qemu/ca-cert.pem /etc/pki/qemu/server-cert.pem` on both hosts",
        "clocks": "compare `date -u` of both hosts; certificates need the same time",
        "hook": f"if it is used: run `ls -l /etc/libvirt/hooks/qemu.d/vmtune` on {name}",
        "disks": "`vmtune plan VM --to` asks the destination whether it has the VM's disks",
    }
    if not_reached:
        what, to = "migration ports", arrival(destination.host, b)
        del not_seen[what]
        yield Step(
            name,
            what,
            Result.WARNING,
            f"port {LAST_PORT} of {to}, the last that libvirt takes, is not reached from {here}: "
            f"{not_reached}",
            f"open ports 49152 to {LAST_PORT} in the firewall of {name}, or as many as "
            "migration_port_min and migration_port_max of its qemu.conf allow",
        )
    for what, how in not_seen.items():
        message = "vmtune runs nothing on other machines"
        yield Step(name, what, Result.NOT_CHECKED, message, how)


def _certificate(name: str, until: datetime, now: datetime) -> Step:
    message = f"the server's certificate is valid until {until:%Y-%m-%d %H:%M} UTC"
    if until - now > SOON:
        return Step(name, "certificate", Result.OK, message)
    remedy = f"have the CA sign a new /etc/pki/libvirt/servercert.pem for {name} before"
    return Step(name, "certificate", Result.WARNING, message, remedy)


def _versions(name: str, facts: HostFacts) -> Iterator[Step]:
    for what, version, oldest in (
        ("QEMU", facts.qemu, OLDEST_QEMU),
        ("libvirt", facts.libvirt, OLDEST_LIBVIRT),
    ):
        if version is None:
            continue
        if version < oldest:
            message = f"{what} {version} is older than vmtune is tried with ({oldest})"
            yield Step(name, what, Result.WARNING, message, f"upgrade to {what} {oldest} or newer")
        else:
            yield Step(name, what, Result.OK, f"{what} {version}")


def _kvm(name: str, facts: HostFacts) -> Step:
    if facts.kvm is None:
        return Step(name, "KVM", Result.NOT_CHECKED, "whether QEMU can use KVM is not known")
    if facts.kvm:
        return Step(name, "KVM", Result.OK, "QEMU can use KVM")
    return Step(
        name,
        "KVM",
        Result.WARNING,
        "QEMU cannot use KVM: VMs are emulated, and those with KVM cannot come here",
        "load the module kvm_intel or kvm_amd; `ls -l /dev/kvm` shows the device",
    )


def _confinement(name: str, facts: HostFacts) -> Step:
    what = "confinement"
    if facts.confined_by is None:
        return Step(name, what, Result.NOT_CHECKED, "whether QEMUs are confined is not known")
    if not facts.confined_by:
        message = "libvirt uses neither AppArmor nor SELinux: QEMUs are kept apart by users alone"
        return Step(name, what, Result.OK, message)
    by = _CONFINED_BY[facts.confined_by]
    message = f"libvirt confines QEMUs by {by}; `virsh dominfo VM` shows a VM's security label"
    return Step(name, what, Result.OK, message)


def _labels(source: str, name: str, a: HostFacts, b: HostFacts) -> Iterator[Step]:
    """Whether a VM is as confined there as here."""
    if a.confined_by is None or b.confined_by is None:
        return
    what, here, there = "confinement of both", a.confined_by, b.confined_by
    if here == there:
        yield Step(name, what, Result.OK, f"{_CONFINED_BY[here]} on both")
        return
    yield Step(
        name,
        what,
        Result.WARNING,
        f"QEMUs are confined by {_CONFINED_BY[here]} on {source}, by {_CONFINED_BY[there]} on "
        f"{name}: a VM whose XML names a <seclabel> of one is refused by the other",
        "set security_driver in qemu.conf to the same on both, or leave <seclabel> out of the XML "
        "of VMs that migrate",
    )


def _called(name: str, facts: HostFacts) -> Step:
    short = facts.hostname.partition(".")[0]
    if short and short != "localhost":
        return Step(name, "host name", Result.OK, f"it calls itself {facts.hostname}")
    return Step(
        name,
        "host name",
        Result.FAILED,
        f"it calls itself {facts.hostname or 'nothing'}: libvirt refuses migrations to localhost",
        "run `hostnamectl set-hostname NAME` there, and restart its libvirt daemon",
    )


def _peer(seen: Probed, facts: HostFacts) -> Step:
    name, what, uri = seen.host.name, "peer URI", facts.peer_uri
    if not uri:
        return Step(
            name,
            what,
            Result.FAILED,
            f"{seen.host.uri} means nothing on another host, and no peer URI is set",
            f"add it again with --peer-uri, such as qemu+ssh://root@{facts.hostname}/system",
        )
    peer = seen.peer
    if peer is None:
        return Step(name, what, Result.OK, f"other hosts reach it by {uri}")
    if peer.problem is not None:
        return Step(
            name,
            what,
            Result.NOT_CHECKED,
            f"other hosts are to reach it by {uri}, which was not reached from the service's "
            f"machine: {peer.problem.message}",
            f"if only hosts have the keys for it, run `virsh -c {uri} hostname` as root on another "
            f"host; otherwise {peer.problem.remedy or 'correct what the message names'}",
        )
    if facts.uuid and peer.uuid and facts.uuid != peer.uuid:
        return Step(
            name,
            what,
            Result.FAILED,
            f"{uri} leads to another host, {peer.hostname or 'of another name'}: migrations to "
            f"{name} would arrive there",
            f"add {name} again with a --peer-uri that leads to {facts.hostname}",
        )
    return Step(name, what, Result.OK, f"other hosts reach it by {uri}, which answered here, too")


def _without_certificates(name: str, facts: HostFacts) -> Iterator[Step]:
    """Only where that can be seen: libvirt's files are those of the service's machine."""
    if facts.no_certificates_in:
        yield Step(
            name,
            "TLS certificates",
            Result.WARNING,
            f"{facts.no_certificates_in} has no certificates: migrations cannot be encrypted (tls)",
            "put ca-cert.pem, server-cert.pem and server-key.pem there, readable by QEMU's user",
        )


def _network(seen: Probed, facts: HostFacts) -> Step:
    name, what, to = seen.host.name, "migration network", arrival(seen.host, facts)
    where = f"migrations to it go to {to}"
    if not seen.host.migrate_uri:
        where += ", its name, unless migration_host of its qemu.conf says otherwise"
    if seen.arrival_addresses is None:
        return Step(name, what, Result.NOT_CHECKED, where)
    known = [each for each in seen.arrival_addresses if not _is_of_itself(each)]
    if known:
        return Step(name, what, Result.OK, f"{where}; here that is {', '.join(known)}")
    seen_as = ", ".join(seen.arrival_addresses)
    unknown = f"which is {seen_as} here" if seen_as else "which the service's machine does not know"
    return Step(
        name,
        what,
        Result.NOT_CHECKED,
        f"{where}; {unknown}",
        f"on every other host, `getent hosts {to}` has to print an address that {name} has there",
    )


def _is_of_itself(address: str) -> bool:
    """Whether only the machine itself reaches it, as 127.0.1.1."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _order(source: str, name: str, a: HostFacts, b: HostFacts) -> Iterator[Step]:
    for what, there, here in (("QEMU", b.qemu, a.qemu), ("libvirt", b.libvirt, a.libvirt)):
        if there is None or here is None:
            continue
        if there < here:
            yield Step(
                name,
                f"{what} of both",
                Result.WARNING,
                f"{what} {there} is older than {here} of {source}: VMs of newer machine types "
                "cannot go there",
                f"upgrade {name} first, or look at `vmtune plan VM --to {name}` for each VM",
            )
        else:
            yield Step(name, f"{what} of both", Result.OK, f"{here} to {there}")
