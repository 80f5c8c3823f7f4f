"""Facts for tests of pure code: a healthy VM on QEMU 10 under libvirt 11, to be varied."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from vmtune.model.host.facts import Connection, HostFacts, Reading, VmFacts, VmState
from vmtune.model.plan.situation import Destination, Permissions, Situation
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import QmpKind
from vmtune.model.versions import Version

VM_UUID = UUID("0b6c2f3e-51a5-4c6b-9a53-0d7e0a1b2c3d")
QEMU_10 = Version(10, 0, 2)
QEMU_7 = Version(7, 2, 22)


def host(name: str = "a", **changes: Any) -> HostFacts:
    """A host with nothing wrong."""
    healthy = HostFacts(
        connection=Connection.LIBVIRT,
        hostname=name,
        uuid=f"uuid-of-{name}",
        qemu=QEMU_10,
        libvirt=Version(11, 3),
        peer_uri=f"qemu+tls://{name}/system",
        kvm=True,
        cpus=16,
        memory_bytes=64 << 30,
        sysctls={"vm_max_map_count": 262144, "net_core_optmem_max_bytes": 131072},
        can_lock_beyond_limits=True,
        ring_reset_ends_early=False,
    )
    return replace(healthy, **changes)


def direct_host(name: str = "a", **changes: Any) -> HostFacts:
    """A host whose QEMUs are reached by their QMP sockets."""
    return host(name, connection=Connection.QMP, libvirt=None, peer_uri="", **changes)


def vm(version: Version = QEMU_10, **changes: Any) -> VmFacts:
    """A running VM at QEMU's defaults, with two iothreads and two virtio disks."""
    offered = [t for t in BUILT_IN.values() if t.in_release(version) and t.qmp]
    iothreads, disks = ("iothread1", "iothread2"), ("virtio-disk0", "virtio-disk1")
    readings: dict[str, Reading] = {}
    for tunable in offered:
        assert tunable.qmp is not None
        value = tunable.default if tunable.default is not None else 1
        parts = {
            QmpKind.IOTHREAD: dict.fromkeys(iothreads, value),
            QmpKind.DEVICE: dict.fromkeys(disks, value),
        }.get(tunable.qmp.kind, {})
        readings[tunable.name] = Reading(value, parts)
    healthy = VmFacts(
        uuid=VM_UUID,
        name="guest",
        state=VmState.RUNNING,
        qemu=version,
        machine="pc-i440fx-7.2",
        kvm=True,
        memory_bytes=512 << 20,
        vcpus=1,
        capabilities={t.qmp.name: False for t in offered if t.qmp.kind is QmpKind.CAPABILITY},
        parameters={
            t.qmp.name: t.default if t.default is not None else ""
            for t in offered
            if t.qmp.kind is QmpKind.PARAMETER
        },
        compression_methods=frozenset({"none", "zlib", "zstd"}),
        iothreads=iothreads,
        main_loop=True,
        virtio_disks=disks,
        readings=readings,
        boot_readings={n: r for n, r in readings.items() if BUILT_IN[n].route == "boot"},
        locked_memory_limit_bytes=64 << 10,
        may_lock_memory=False,
        pid=4711,
    )
    return replace(healthy, **changes)


def with_reading(facts: VmFacts, name: str, value: Any) -> VmFacts:
    """*facts* with one tunable read as *value* in all of its parts."""
    parts = dict.fromkeys(facts.readings[name].parts, value) if name in facts.readings else {}
    return replace(facts, readings={**facts.readings, name: Reading(value, parts)})


def situation(values: dict[str, Any] | None = None, **changes: Any) -> Situation:
    """The healthy VM on its host, without destination."""
    fields: dict[str, Any] = {"vm": vm(), "host": host(), "tunables": BUILT_IN, **changes}
    return Situation(values or {}, **fields)


def migrating(values: dict[str, Any] | None = None, **changes: Any) -> Situation:
    """The healthy VM about to move from host a to host b."""
    fields: dict[str, Any] = {"destination": Destination("b", host("b")), **changes}
    return situation(values, **fields)


ALLOWED = Permissions(destination_command_line=True)
MAY_CHANGE = Permissions(host_changes=True)
