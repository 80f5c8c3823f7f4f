"""Connects to a libvirt daemon."""

from __future__ import annotations

import contextlib

from vmtune.hypervisor.libvirt.calls.base import describe
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.errors import unreachable
from vmtune.hypervisor.libvirt.library import Library, load_library

# A dead peer is noticed after 15 to 20 s. Daemons answer this from their first thread,
# also when they are busy.
_KEEPALIVE_S, _KEEPALIVE_COUNT = 5, 3


def open_connection(uri: str) -> Connection:
    """Connect, without asking anybody for a password.

    :raise HostUnreachable: with libvirt's reason.
    :raise SetupError: libvirt-python is not installed.
    """
    library = load_library()
    try:
        raw = library.libvirt.openAuth(without_questions(uri), _from_file(library), 0)
    except library.error as error:
        raise unreachable(uri, *describe(error)) from error
    connection = Connection(library, uri, raw)
    # A driver that runs in this process (test:///) has no keepalive.
    with contextlib.suppress(library.error):
        raw.setKeepAlive(_KEEPALIVE_S, _KEEPALIVE_COUNT)
    return connection


def _from_file(library: Library) -> list[object]:
    """What lets libvirt fill in a name and a password of its auth.conf; nobody is asked for more.

    Without any credentials offered, it does not look into that file.
    """
    kinds = ("VIR_CRED_AUTHNAME", "VIR_CRED_PASSPHRASE", "VIR_CRED_REALM")
    return [[library.constant(kind) for kind in kinds], lambda *_: -1, None]


def without_questions(uri: str) -> str:
    """*uri*, so that ssh fails where it would ask on the terminal."""
    if not uri.startswith("qemu+ssh://") or "no_tty=" in uri:
        return uri
    return f"{uri}{'&' if '?' in uri else '?'}no_tty=1"
