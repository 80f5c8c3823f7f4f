"""Something wrong on the way to a host, made on a lab machine, and how vmtune tells it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.support.hosts.live import Live
from tests.support.hosts.machines import said
from vmtune.client.connection.errors import Refused

SSH, TLS = "qemu+ssh://root@{b}/system", "qemu+tls://{b}/system"
PKI = "/etc/pki/libvirt"
RELOAD = "virt-admin -c libvirtd:///system server-update-tls libvirtd"
ANSWERS_WITHIN_S = 30
KEYS = "/etc/vmtune/keys"
"""The only folder that a URI's files may be in."""
_KNOWN = f"?known_hosts={KEYS}/known_hosts"
TRANSPORTS = {
    "ssh": ("root@", ""), "tls": ("", ""), "tcp": ("", ""),
    "libssh": ("root@", _KNOWN), "libssh2": ("root@", _KNOWN),
}  # fmt: skip
"""Each that vmtune offers: what :func:`hosts` takes for user and query. Both libssh need
:func:`share_known_hosts`."""


@dataclass(frozen=True)
class Broken:
    """Something wrong on the way to host b.

    :param of: which host it is wrong on.
    :param uri: with ``{b}`` for the name of host b.
    :param breaks: shell commands that break it, and ``mends`` those that put it right.
    """

    uri: str
    of: str
    breaks: str
    mends: str
    cause: str
    remedy: str


@contextmanager
def hosts(live: Live, transport: str, user: str = "", query: str = "") -> Iterator[None]:
    """Both machines, as the service knows them by one transport; each is reached in the same way
    by the other."""
    for name, host in zip("ab", live.status.hosts, strict=False):
        uri = f"qemu+{transport}://{user}{host.name}/system{query}"
        live.client.post("/hosts", {"name": name, "uri": uri, "peer_uri": uri})
    try:
        yield
    finally:
        for name in "ab":
            live.client.delete(f"/hosts/{name}")


def share_known_hosts(live: Live) -> None:
    """Have each machine's known host keys where a URI may name them."""
    for host in live.status.hosts:
        said(host, "sh", "-ec", f"mkdir -p {KEYS}; cp /root/.ssh/known_hosts {KEYS}")


def refused_as(live: Live, broken: Broken) -> None:
    """Break it, and see that adding host b says so, in one line and in time, and adds nothing."""
    b = live.host("b").name
    where = live.host(broken.of)
    body = {"name": "b", "uri": broken.uri.format(b=b)}
    said(where, "sh", "-ec", broken.breaks.replace("{b}", b))
    try:
        begun = time.monotonic()
        with pytest.raises(Refused) as refusal:
            live.client.post("/hosts", body)
        assert time.monotonic() - begun < ANSWERS_WITHIN_S
    finally:
        said(where, "sh", "-ec", broken.mends.replace("{b}", b))
    (problem,) = refusal.value.problems
    assert problem.code == "host_unreachable"
    assert broken.cause.format(b=b) in problem.message, problem
    assert broken.remedy.format(b=b) in problem.remedy, problem
    assert "\n" not in problem.message
    assert live.client.get("/hosts")["items"] == []
