"""What the destination cannot be asked about is not written to, nor taken for the VM's own, unless
somebody says that they have looked."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.support.hosts.live import Live
from tests.support.hosts.machines import live_machines, on, said, why_no_machines
from vmtune import lab
from vmtune.client.connection.errors import Refused
from vmtune.model.workload import Workload

NONE = why_no_machines()
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE or "never")
CALM = Workload(region_bytes=32 << 20, dirty_mb_per_s=5)
FOLDER = "/var/lib/libvirt/images"
VIRSH = ("virsh", "-c", "qemu:///system")
ON_TOP = {"copy_storage_incremental": "on"}
COPIED = {"copy_storage": "on"}


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with live_machines() as made:
        for name, host in zip("ab", made.status.hosts, strict=True):
            said(host, "mkdir", "-p", FOLDER)
            made.client.post("/hosts", {"name": name, "uri": f"qemu+tls://{host.name}/system"})
        yield made


def codes(live: Live, vm: lab.LabVm, **values: object) -> set[str]:
    plan = live.client.post(f"/vms/{vm.uuid}/plan", {"destination": "b", "values": values})
    return {finding["code"] for finding in plan["findings"]}


def attach(host: lab.HostStatus, vm: lab.LabVm, path: str, target: str, *more: str) -> None:
    options = ("--live", "--config", "--driver", "qemu", "--cache", "none", *more)
    said(host, *VIRSH, "attach-disk", vm.name, path, target, *options)


@contextmanager
def layered(live: Live) -> Iterator[str]:
    """An image on top of another, which both hosts have; what the one on a holds itself the one on
    b lacks. Gone afterwards."""
    base, top = (f"{FOLDER}/{secrets.token_hex(4)}.qcow2" for _ in range(2))
    for host in live.status.hosts:
        said(host, "qemu-img", "create", "-q", "-f", "qcow2", base, "64M")
        said(host, "qemu-io", "-c", "write -P 7 0 32M", base)
        said(host, "qemu-img", "create", "-q", "-f", "qcow2", "-b", base, "-F", "qcow2", top)
    said(live.status.hosts[0], "qemu-io", "-c", "write -P 9 40M 4M", top)
    try:
        yield top
    finally:
        for host in live.status.hosts:
            on(host, "rm", "-f", base, top)


def test_an_incremental_copy_is_made_once_somebody_has_looked(live: Live) -> None:
    a, b = live.status.hosts
    with layered(live) as top, live.vm(workload=CALM) as vm:
        attach(a, vm, top, "vda", "--subdriver", "qcow2")
        order = {"vm": vm.uuid, "destination": "b", "values": ON_TOP}
        with pytest.raises(Refused) as refused:
            live.client.post("/migrations", order)
        assert [p.code for p in refused.value.problems] == ["copy_may_overwrite"]
        looked = {**order, "overrides": ["copy_may_overwrite"]}
        record = live.ended(live.client.post("/migrations", looked))
        assert record["state"] == "completed", record["failure"]
        (disk,) = record["disks"]
        assert (disk["path"], disk["created"]) == (top, False)
        assert live.states(vm) == {"b": "running"}
        said(b, *VIRSH, "destroy", vm.name)
        read = ("-c", "read -P 7 0 32M", "-c", "read -P 9 40M 4M")
        assert "Pattern verification failed" not in said(b, "qemu-io", "-r", *read, top)


def test_a_device_is_refused_copied_or_not(live: Live) -> None:
    a, _ = live.status.hosts
    file = f"{FOLDER}/{secrets.token_hex(4)}.raw"
    said(a, "truncate", "--size", "16M", file)
    device = said(a, "losetup", "--find", "--show", file).strip()
    try:
        with live.vm(workload=CALM) as vm:
            attach(a, vm, device, "vda", "--sourcetype", "block")
            assert "disk_may_differ" in codes(live, vm)
            assert "copy_may_overwrite" in codes(live, vm, **COPIED)
            assert "copy_may_overwrite" in codes(live, vm, **COPIED, copy_disks="vda")
            for values in ({}, COPIED):
                order = {"vm": vm.uuid, "destination": "b", "values": values}
                with pytest.raises(Refused):
                    live.client.post("/migrations", order)
            assert live.states(vm) == {"a": "running"}
    finally:
        on(a, "losetup", "--detach", device)
        on(a, "rm", "-f", file)


def test_a_volume_is_looked_for_in_the_destinations_own_pool(live: Live) -> None:
    a, b = live.status.hosts
    xml = (
        "<disk type='volume' device='disk'><driver name='qemu' type='raw' cache='none'/>"
        "<source pool='local' volume='web.raw'/><target dev='vda' bus='virtio'/></disk>"
    )
    with ExitStack() as stack:
        for host, folder in ((a, f"{FOLDER}/of-a"), (b, f"{FOLDER}/of-b")):
            said(host, "mkdir", "-p", folder)
            said(host, *VIRSH, "pool-create-as", "local", "dir", "--target", folder)
            stack.callback(on, host, "rm", "-rf", folder)
            stack.callback(said, host, *VIRSH, "pool-destroy", "local")
        create = (*VIRSH, "vol-create-as", "local", "web.raw", "16M", "--format", "raw")
        said(a, *create)
        vm = stack.enter_context(live.vm(workload=CALM))
        said(a, "sh", "-c", f'echo "{xml}" > /run/web.xml')
        said(a, *VIRSH, "attach-device", vm.name, "/run/web.xml", "--live", "--config")
        assert "disk_missing" in codes(live, vm)
        assert "volume_not_copied" in codes(live, vm, **COPIED)
        with pytest.raises(Refused, match=r"of-a/web\.raw"):
            live.client.post("/migrations", {"vm": vm.uuid, "destination": "b"})
        said(b, *create)
        found = live.client.post(f"/vms/{vm.uuid}/plan", {"destination": "b"})["findings"]
        (seen,) = (each for each in found if each["code"] == "disks_not_seen")
        assert seen["evidence"] == {"paths": f"{FOLDER}/of-b/web.raw"}
        assert live.states(vm) == {"a": "running"}
