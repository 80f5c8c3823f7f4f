"""libvirt's errors in vmtune's words. The numbers are libvirt's ABI (virterror.h)."""

from __future__ import annotations

import os
import pwd
import re
from urllib.parse import urlsplit

from vmtune.errors import CommandRefused, HostUnreachable, NotFound, OutcomeUnknown, VmtuneError
from vmtune.hypervisor.libvirt.certificates import look_at
from vmtune.hypervisor.libvirt.reach import Remote, explain, said
from vmtune.hypervisor.protocol import VM_BUSY
from vmtune.model.migration.record import MIGRATION_CANCELLED

NO_DOMAIN = 42
OPERATION_INVALID = 55
OPERATION_TIMEOUT = 68
OPERATION_ABORTED = 78
OPERATION_UNSUPPORTED = 84
_ACCESS_DENIED = 88
_OPERATION_DENIED = 29
_PEER_REFUSED = "Failed to verify peer's certificate"
_AUTH = (45, 60, 79)  # failed, cancelled, unavailable
_NOT_LET_IN = re.compile(
    "no polkit agent|no agent is available|access denied by policy|"
    "libvirt-sock.*Permission denied|Permission denied.*libvirt-sock"
)
"""As :data:`~vmtune.hypervisor.libvirt.reach.CAUSES` has it of another machine."""


_OF_THE_WAY = re.compile(
    "Cannot (recv|read|write|send) data|End of file while (reading|writing) data|"
    "client socket is closed|received hangup"
)


def is_of_the_way(message: str) -> bool:
    """Whether libvirt's *message* is of a connection that broke: the one that a call was made
    on, one behind virtproxyd, or that of the daemon to another host."""
    return _OF_THE_WAY.search(message) is not None


class LibvirtRefused(CommandRefused):
    """libvirt, not QEMU, refused.

    :param number: libvirt's error code.
    """

    def __init__(self, message: str, number: int = 0, code: str = "", remedy: str = "") -> None:
        super().__init__(message, code=code, remedy=remedy)
        self.number = number


def translate(number: int, message: str, alive: bool, uri: str) -> VmtuneError:
    """The error that a call on an open connection ended with.

    :param number: libvirt's error code.
    :param alive: whether the connection still is. The code does not show it: errors between a
        daemon and another host have the same code.
    """
    if not alive:
        return OutcomeUnknown(
            f"the connection to {uri} was lost: {message}", remedy="look again, then settle"
        )
    if number == NO_DOMAIN:
        return NotFound(message, field="vm")
    if number == OPERATION_TIMEOUT:
        return LibvirtRefused(
            message, number, VM_BUSY, "another operation holds this VM: wait until it has ended"
        )
    if number in (_ACCESS_DENIED, _OPERATION_DENIED):
        return LibvirtRefused(
            message, number, "access_denied", f"give vmtune's user read-write access to {uri}"
        )
    if number == OPERATION_ABORTED:
        return LibvirtRefused(message, number, MIGRATION_CANCELLED)
    return LibvirtRefused(message, number)


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _let_in() -> str:
    return (
        f"run `usermod --append --groups libvirt {_user()}` and restart the service, or add a "
        "polkit rule for org.libvirt.unix.manage"
    )


def unreachable(uri: str, number: int, message: str) -> HostUnreachable:
    """The error that opening *uri* ended with. May ask the server for its certificate."""
    known = explain(uri, message)
    if known is not None:
        cause, remedy = known
        remote = Remote.of(uri)
        if remote is not None and _PEER_REFUSED in message:
            shown = look_at(remote)
            if shown is not None and shown.reason:
                cause = f"the certificate of {remote.server} {shown.reason}"
        return HostUnreachable(
            f"no connection to {uri}: {cause} ({said(message)})", field="uri", remedy=remedy
        )
    if not urlsplit(uri).hostname and _NOT_LET_IN.search(message):
        cause = f"the user {_user()} may not use libvirt on this machine ({said(message)})"
        return HostUnreachable(f"no connection to {uri}: {cause}", field="uri", remedy=_let_in())
    if number in _AUTH:
        remedy = "give vmtune's user the credentials, or another way in; it cannot be asked for any"
    elif "+ssh" in uri or "+libssh" in uri:
        remedy = f"check that `virsh -c '{uri}' list` works without a question for vmtune's user"
    elif "://" in uri and not uri.split("://", 1)[1].startswith("/"):
        remedy = "check the name, that libvirtd listens there, and the way to it"
    else:
        remedy = "start libvirtd or virtqemud on this machine, and let vmtune's user use its socket"
    return HostUnreachable(f"no connection to {uri}: {said(message)}", field="uri", remedy=remedy)
