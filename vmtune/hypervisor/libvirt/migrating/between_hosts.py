"""Why a migration did not get from its source to its destination, told from libvirt's and QEMU's
words, and what corrects it.

The source's libvirt daemon connects to the destination's by the peer URI, with root's keys and
certificates; then it, or QEMU, connects to where the VM is to arrive. The texts of the first are
those of :mod:`vmtune.hypervisor.libvirt.reach`, which libvirt passes on as they are. The lab
provokes them again.
"""

from __future__ import annotations

import re

from vmtune.hypervisor.libvirt.errors import OPERATION_ABORTED, LibvirtRefused
from vmtune.hypervisor.libvirt.reach import SOURCE, Remote, explain, said

_PEER = re.compile(r"remote libvirt URI \S+: (.*)", re.DOTALL)
_OPENING = re.compile(
    r"^(internal error: )?(Cannot recv data|End of file while reading data): .|"
    "Unable to read TLS confirmation|Failed to verify (peer's|client's) certificate|"
    "Our own certificate|client certificate |Cannot read (CA|client) certificate|"
    "authentication (failed|unavailable)|libssh|SASL",
    re.DOTALL,
)
"""What fails only while a connection to a libvirt daemon is opened, if a row of reach knows it."""
_ARRIVAL = re.compile(
    # libvirt's words, and QEMU's
    r"(?:unable to connect to server at|[Ff]ailed to connect to) '(?P<to>[^']+):(?P<port>\d+)': "
    r"(?P<why>.*)",
    re.DOTALL,
)
_NO_ADDRESS = re.compile(
    r"Unable to resolve address '(?P<libvirt>[^']+)' service '(?P<port>\d+)'|"
    r"address resolution failed for (?P<qemu>\S+):\d+"
)
_OTHER_NAME = re.compile(r"[Cc]ertificate does not match the hostname (\S+)")


def with_cause(uri: str, refusal: LibvirtRefused) -> LibvirtRefused:
    """What libvirt refused of a migration to *uri*, with cause and remedy if it is the way to the
    destination that failed.

    :return: *refusal* itself where it is anything else.
    """
    known = None if refusal.number == OPERATION_ABORTED else why(uri, refusal.message)
    if known is None:
        return refusal
    message, remedy = known
    return LibvirtRefused(message, refusal.number, remedy=remedy)


def why(uri: str, message: str) -> tuple[str, str] | None:
    """What failed on the way, in one line with *message*'s own words, and the remedy.

    :param uri: the destination's peer URI.
    :param message: libvirt's, of a migration.
    :return: None for other texts.
    """
    peer = _PEER.search(message)
    words = message if peer is None else peer[1]
    known = None
    if peer is not None or _OPENING.search(message) or _names_port_of(uri, message):
        known = explain(uri, words, SOURCE)
    if known is not None:
        cause, remedy = known
        return f"the source's libvirt does not reach {uri}: {cause} ({said(words)})", remedy
    if peer is not None:
        return (
            f"the source's libvirt does not reach {uri}: {said(words)}",
            f"run `virsh -c {uri} hostname` as root on the source host; it has to work without a "
            "question",
        )
    for look in (_of_arrival, _of_name, _of_certificate):
        known = look(message)
        if known is not None:
            cause, remedy = known
            return f"{cause} ({said(message)})", remedy
    return None


def _names_port_of(uri: str, message: str) -> bool:
    """Whether it is the destination's libvirt that was to be connected to, by its port."""
    remote = Remote.of(uri)
    found = _ARRIVAL.search(message) or _NO_ADDRESS.search(message)
    return found is not None and remote is not None and found["port"] == str(remote.port)


def _of_arrival(message: str) -> tuple[str, str] | None:
    found = _ARRIVAL.search(message)
    if found is None:
        return None
    to, port = found["to"], found["port"]
    return (
        f"the source host does not reach port {port} of {to}, where the VM was to arrive",
        f"open ports 49152 to 49215 of {to} in its firewall, and see that {to} is the destination: "
        f"`getent hosts {to}` on the source host; migrate_uri of the host names another address",
    )


def _of_name(message: str) -> tuple[str, str] | None:
    found = _NO_ADDRESS.search(message)
    if found is None:
        return None
    name = found["libvirt"] or found["qemu"]
    return (
        f"the source host does not know the name {name}, where the VM was to arrive",
        f"add {name} to DNS or to /etc/hosts of the source host, or set migrate_uri of the host",
    )


def _of_certificate(message: str) -> tuple[str, str] | None:
    found = _OTHER_NAME.search(message)
    if found is None:
        return None
    name = found[1].rstrip(".")
    return (
        f"the certificate of the destination's QEMU is not for {name}, where the VM was to arrive",
        f"sign its /etc/pki/qemu/server-cert.pem for {name}, too (subjectAltName), or set "
        "tls_hostname in the profile to a name that it has",
    )
