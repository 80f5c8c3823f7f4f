"""What is wrong on the way from the source of a migration to its destination: the record names it,
with what corrects it, and the VM stays where it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.hosts.broken_ways import PKI
from tests.support.hosts.live import Live
from tests.support.hosts.machines import live_machines, said, why_no_machines
from vmtune import lab
from vmtune.model.workload import Workload

NONE = why_no_machines()
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE or "never")
SMALL: dict[str, Any] = {
    "memory_bytes": 64 << 20,
    "workload": Workload(region_bytes=4 << 20, idle_ms=200),
}
SSH, TLS = "qemu+ssh://root@{b}/system", "qemu+tls://{b}/system"
CLOSE = "iptables -{} INPUT -p tcp --dport 49152:49215 -j REJECT --reject-with tcp-reset"


@dataclass(frozen=True)
class Broken:
    """Something wrong between the hosts.

    :param peer_uri: of host b, with ``{b}`` for its name.
    :param cause: what the record says, and *remedy* what corrects it.
    :param of: which host it is wrong on; *breaks* and *mends* are shell commands there, with
        ``{address}`` for the one that b's migrations go to.
    :param migrate_uri: of host b.
    """

    peer_uri: str
    cause: str
    remedy: str
    of: str = "a"
    breaks: str = "true"
    mends: str = "true"
    profile: str = "plain"
    migrate_uri: str = ""


BROKEN = {
    "unknown host key": Broken(
        SSH, "SSH does not know the host key of {b}", "`ssh root@{b} true` as root on the source",
        "a", "mv /root/.ssh/known_hosts /root/kept", "mv /root/kept /root/.ssh/known_hosts",
    ),
    "refused key": Broken(
        SSH, "{b} does not accept the SSH key of root on the source host", "ssh-copy-id root@{b}",
        "b", "mv /root/.ssh/authorized_keys /root/kept",
        "mv /root/kept /root/.ssh/authorized_keys",
    ),
    "no client certificate": Broken(
        TLS, "{b} does not accept the client certificate of the source host", "clientcert.pem",
        "a", f"mv {PKI}/clientcert.pem /root", f"mv /root/clientcert.pem {PKI}",
    ),
    "unknown name": Broken(
        "qemu+tls://unknown.invalid/system",
        "the name unknown.invalid is not known on the source host", "/etc/hosts of the source host",
    ),
    "closed libvirt port": Broken(
        "qemu+tls://{b}:16515/system", "nothing takes connections at port 16515 of {b}",
        "libvirtd-tls.socket",
    ),
    "closed migration port": Broken(
        TLS, "the source host does not reach port 4915", "open ports 49152 to 49215",
        "b", CLOSE.format("I"), CLOSE.format("D"),
    ),
    "closed migration port, parallel": Broken(
        TLS, "the source host does not reach port 4915", "open ports 49152 to 49215",
        "b", CLOSE.format("I"), CLOSE.format("D"), "parallel",
    ),
    "unknown migration name": Broken(
        TLS, "the source host does not know the name unknown.invalid", "set migrate_uri",
        migrate_uri="tcp://unknown.invalid",
    ),
    "certificate of another name": Broken(
        TLS, "the certificate of the destination's QEMU is not for alias.example", "tls_hostname",
        "a", "cp /etc/hosts /root/kept; echo {address} alias.example >> /etc/hosts",
        "cat /root/kept > /etc/hosts", "encrypted", "tcp://alias.example",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    """Both hosts answer the service by their sockets, whatever is wrong between them."""
    with live_machines() as made:
        a = made.host("a")
        here = {"uri": "qemu:///system", "peer_uri": f"qemu+tls://{a.name}/system"}
        made.client.post("/hosts", {"name": "a", **here})
        made.profile("plain", downtime_limit_ms=450)
        made.profile("parallel", multifd=True, multifd_channels=2)
        made.profile("encrypted", tls=True)
        yield made


@pytest.fixture(scope="module")
def vm(live: Live) -> Iterator[lab.LabVm]:
    with live.vm(**SMALL) as made:
        yield made


@pytest.mark.parametrize("what", BROKEN)
def test_the_record_names_what_is_wrong_and_what_mends_it(
    live: Live, vm: lab.LabVm, what: str
) -> None:
    broken, b = BROKEN[what], live.host("b")
    names = {"b": b.name, "address": live.settings.migration_address_b.partition("/")[0]}
    body = {"name": "b", "uri": b.uri, "peer_uri": broken.peer_uri.format(**names)}
    if broken.migrate_uri:
        body["migrate_uri"] = broken.migrate_uri
    live.client.post("/hosts", body)
    where = live.host(broken.of)
    said(where, "sh", "-ec", broken.breaks.format(**names))
    try:
        record = live.ended(live.migrate(vm, "b", profile=broken.profile))
    finally:
        said(where, "sh", "-ec", broken.mends)
        live.client.delete("/hosts/b")
    assert record["state"] == "failed"
    told = record["failure"]
    assert broken.cause.format(**names) in told, told
    assert broken.remedy.format(**names) in told, told
    assert "\n" not in told
    assert live.states(vm) == {"a": "running"}
