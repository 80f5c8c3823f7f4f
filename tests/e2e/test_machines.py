"""Lab hosts with a root of their own: SSH and TLS between them, for real."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.hosts.live import at_work, wait_for
from tests.support.hosts.machines import machine_settings, refused, said, why_no_machines
from vmtune import lab
from vmtune.lab.host import plan_hosts
from vmtune.lab.namespaces import (
    LINK,
    MIGRATION_LINK,
    namespace_exists,
    namespace_inode,
    processes_in,
)
from vmtune.model.workload import Workload

NONE = why_no_machines()
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE or "never")


def received(host: lab.HostStatus) -> dict[str, int]:
    """Bytes that arrived by each of the host's two networks."""
    table = json.loads(said(host, "ip", "-s", "-j", "link"))
    return {
        link["ifname"]: link["stats64"]["rx"]["bytes"]
        for link in table
        if link["ifname"] in (LINK, MIGRATION_LINK)
    }


@pytest.fixture(scope="module")
def settings() -> Iterator[lab.LabSettings]:
    with machine_settings() as made:
        yield made


@pytest.fixture
def hosts(settings: lab.LabSettings) -> tuple[lab.HostStatus, ...]:
    """Both machines; brought up by the first test that needs them."""
    status = lab.up(settings)
    assert status.running
    assert lab.status(replace(settings, machines=False)) == status
    return status.hosts


def test_each_has_a_file_system_of_its_own(hosts: tuple[lab.HostStatus, ...]) -> None:
    a, b = hosts
    said(a, "sh", "-c", "echo seen > /etc/vmtune-machine; echo seen > /var/vmtune-machine")
    for name in ("/etc/vmtune-machine", "/var/vmtune-machine"):
        assert said(a, "cat", name) == "seen"
        assert "No such file" in refused(b, "cat", name)
        assert not Path(name).exists()
    assert said(a, "hostname") == a.name
    # Nothing of this machine's own keys.
    assert said(a, "sh", "-c", "ls /etc/ssh/*_key") == "/etc/ssh/ssh_host_ed25519_key"
    assert set(said(a, "ls", "/root/.ssh").split()) == {
        *("authorized_keys", "id_ed25519", "id_ed25519.pub", "known_hosts")
    }


@pytest.mark.parametrize("transport", ["ssh", "tls"])
def test_libvirt_of_the_other_answers(transport: str, hosts: tuple[lab.HostStatus, ...]) -> None:
    a, b = hosts
    for here, there in ((a, b), (b, a)):
        uri = f"qemu+{transport}://{there.name}/system"
        assert said(here, "virsh", "-c", uri, "hostname") == there.name


def test_an_unknown_host_and_a_foreign_key_are_refused(
    hosts: tuple[lab.HostStatus, ...],
) -> None:
    a, b = hosts
    said(a, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/root/other")
    said(a, "sh", "-c", "echo > /root/nobody")
    ssh = ("ssh", "-o", "BatchMode=yes")
    unknown = refused(a, *ssh, "-o", "UserKnownHostsFile=/root/nobody", b.name, "true")
    assert "Host key verification failed" in unknown
    foreign = refused(a, *ssh, "-o", "IdentitiesOnly=yes", "-i", "/root/other", b.name, "true")
    assert "Permission denied" in foreign


def test_a_client_without_certificate_is_refused(hosts: tuple[lab.HostStatus, ...]) -> None:
    a, b = hosts
    said(a, "mkdir", "-p", "/root/empty")
    uri = f"qemu+tls://{b.name}/system?pkipath=/root/empty"
    assert "cacert.pem" in refused(a, "virsh", "-c", uri, "hostname")


@pytest.mark.parametrize(
    ("transport", "tls"),
    [
        pytest.param("ssh", False, id="plain-ssh"),
        pytest.param("tls", True, id="native-tls-tls"),
        # Each way and each kind of stream is above; these pair them otherwise.
        pytest.param("ssh", True, id="native-tls-ssh", marks=pytest.mark.long),
        pytest.param("tls", False, id="plain-tls", marks=pytest.mark.long),
    ],
)
def test_a_vm_migrates_there_and_back(
    transport: str, tls: bool, settings: lab.LabSettings, hosts: tuple[lab.HostStatus, ...]
) -> None:
    a, b = hosts
    # Calm enough for what TLS sends on a slow machine.
    calm = Workload(region_bytes=32 << 20, dirty_mb_per_s=5)
    name = f"vm-{transport}-{'tls' if tls else 'plain'}"
    vm = lab.define_vm(settings, lab.VmSettings(name=name, workload=calm))
    wait_for(lambda: at_work(vm), "the guest to write")
    flags = ["--live", "--p2p", "--persistent", "--undefinesource", *(["--tls"] if tls else [])]
    for here, there in ((a, b), (b, a)):
        before = received(there)
        uri = f"qemu+{transport}://{there.name}/system"
        said(here, "virsh", "-c", "qemu:///system", "migrate", *flags, vm.name, uri)
        arrived = {link: bytes_ - before[link] for link, bytes_ in received(there).items()}
        # Memory goes by the migration network, and not by the other.
        assert arrived[MIGRATION_LINK] > calm.region_bytes // 100
        assert arrived[LINK] < arrived[MIGRATION_LINK]
        assert said(there, "virsh", "-c", "qemu:///system", "domstate", vm.name) == "running"
    said(a, "virsh", "-c", "qemu:///system", "destroy", vm.name)


def test_what_a_crash_leaves_is_taken_down(
    settings: lab.LabSettings, hosts: tuple[lab.HostStatus, ...]
) -> None:
    inodes = [namespace_inode(host.namespace) for host in hosts]
    for inode in inodes:
        for pid in processes_in(inode):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert lab.status(settings).state == "broken"
    lab.down(settings)
    assert not settings.folder.exists()


def test_nothing_is_left(settings: lab.LabSettings, hosts: tuple[lab.HostStatus, ...]) -> None:
    # By their ids, too: the number of a namespace that is gone is given to the next one, anybody's.
    inodes = [namespace_inode(host.namespace) for host in hosts]
    began = {(inode, pid) for inode in inodes for pid in processes_in(inode)}
    assert began
    shared = plan_hosts(settings)[0].folder
    assert shared.exists()
    lab.down(settings)
    assert not any(namespace_exists(host.namespace) for host in hosts)
    assert not began & {(inode, pid) for inode in inodes for pid in processes_in(inode)}
    assert not settings.folder.exists()
    assert str(settings.folder) not in Path("/proc/self/mountinfo").read_text()
