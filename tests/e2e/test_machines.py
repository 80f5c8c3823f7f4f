"""Lab hosts with a root of their own: SSH and TLS between them, for real."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.live import at_work, wait_for, why_no_lab
from vmtune import lab
from vmtune.errors import LabError
from vmtune.lab.host import plan_hosts
from vmtune.lab.machines import PROGRAMS
from vmtune.lab.namespaces import (
    LINK,
    MIGRATION_LINK,
    namespace_exists,
    namespace_inode,
    processes_in,
)
from vmtune.lab.programs import require_programs
from vmtune.model.workload import Workload

STEP_S = 60


def _why_none() -> str | None:
    try:
        require_programs(*PROGRAMS)
    except LabError as error:
        return f"machines: {error}"
    return why_no_lab()


NONE = _why_none()
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE or "never")


def on(host: lab.HostStatus, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command on a machine; it ends by itself."""
    return subprocess.run(
        [*lab.inside(host), *command],
        capture_output=True,
        text=True,
        timeout=STEP_S,
        stdin=subprocess.DEVNULL,
        check=False,
        env={**os.environ, "HOME": "/root", "LC_ALL": "C"},
    )


def said(host: lab.HostStatus, *command: str) -> str:
    done = on(host, *command)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def refused(host: lab.HostStatus, *command: str) -> str:
    done = on(host, *command)
    assert done.returncode != 0, done.stdout
    return done.stderr


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
    tag = secrets.token_hex(3)
    net = f"{secrets.randbelow(50) + 180}.{secrets.randbelow(256)}"
    parent = Path(tempfile.mkdtemp(prefix="vmtune-test-", dir="/run"))
    made = lab.LabSettings(
        name_a=f"vt-{tag}-a",
        name_b=f"vt-{tag}-b",
        address_a=f"10.{net}.1/24",
        address_b=f"10.{net}.2/24",
        migration_address_a=f"172.16.{net.split('.')[1]}.1/24",
        migration_address_b=f"172.16.{net.split('.')[1]}.2/24",
        folder=parent / "lab",
        machines=True,
    )
    try:
        yield made
    finally:
        try:
            lab.down(made)
        finally:
            shutil.rmtree(parent, ignore_errors=True)


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


@pytest.mark.parametrize("transport", ["ssh", "tls"])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "native-tls"])
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
    inodes = [namespace_inode(host.namespace) for host in hosts]
    shared = plan_hosts(settings)[0].folder
    assert shared.exists()
    lab.down(settings)
    assert not any(namespace_exists(host.namespace) for host in hosts)
    assert [pid for inode in inodes for pid in processes_in(inode)] == []
    assert not settings.folder.exists()
    assert str(settings.folder) not in Path("/proc/self/mountinfo").read_text()
