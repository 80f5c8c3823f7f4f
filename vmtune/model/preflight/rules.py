"""The preflight: what stands against a profile on a VM, its host and its destination.

Each check is a pure function of the :class:`~vmtune.model.plan.situation.Situation` that
yields findings. Sources of the rules: QEMU migration/options.c (migrate_caps_check,
migrate_params_check), libvirt qemu_migration_params.c, kernel msg_zerocopy.rst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vmtune.model.findings.table import Finding
from vmtune.model.host.facts import Connection, VmFacts, VmState
from vmtune.model.host.managers import MANAGERS
from vmtune.model.plan.situation import Encrypted, Situation
from vmtune.model.preflight.control import (
    check_alone,
    check_reaper,
    check_steps,
    offered_by_version,
    uses_monitor,
)
from vmtune.model.preflight.disks import check_disks
from vmtune.model.preflight.hardware import check_hardware
from vmtune.model.preflight.host import check_host
from vmtune.model.preflight.network import check_network
from vmtune.model.preflight.packs import check_pack
from vmtune.model.preflight.pools import check_pools, check_queues
from vmtune.model.preflight.releases import check_releases
from vmtune.model.preflight.rings import check_rings, check_wanted_ring
from vmtune.model.preflight.zero_copy import check_zero_copy
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.notes import whole_around
from vmtune.model.tunables.rows.reaper import OFF
from vmtune.model.tunables.tunable import LibvirtKind, QmpKind, Route, Side, Tunable, Value
from vmtune.model.versions import Version

_KNOWN_TO_LIBVIRT = ("none", "zlib", "zstd")  # qemu_migration_params.c, 9.4 to 12
# QEMU 8.0 began to refuse the pair, 10.1 lifted it; 7.2 accepts it and leaves multifd
# when post-copy begins (migration/ram.c).
_POSTCOPY_REFUSES_MULTIFD = (Version(8), Version(10, 1))


def check_tunable(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """What stands against one tunable."""
    for check in _PER_TUNABLE:
        yield from check(tunable, wanted, situation)


def check_vm(situation: Situation) -> Iterator[Finding]:
    """Findings against the VM, independent of the tunables."""
    vm = situation.vm
    if vm.state not in (VmState.RUNNING, VmState.PAUSED):
        yield Finding("vm_not_running", evidence={"state": vm.state.value})
    if vm.migrating:
        yield Finding("migration_active")
    tunables = situation.tunables
    rows = [tunables[name] for name in situation.values if name in tunables]
    monitor = any(situation.route(row) is Route.MONITOR for row in rows)
    packs = any(row.pack for row in rows)
    if situation.libvirt and (monitor or packs or uses_monitor(situation)):
        yield Finding("monitor_taints")
    if situation.destination is not None and monitor:
        yield Finding("fresh_destination")
    if situation.on("postcopy"):
        yield Finding("postcopy_can_lose_guest", "postcopy")
    yield from check_hardware(situation)
    yield from check_disks(situation)
    yield from check_steps(situation, _has)
    yield from check_pools(situation)
    yield from check_rings(situation)


def check_destination(situation: Situation) -> Iterator[Finding]:
    """What stands against the migration as such."""
    destination = situation.destination
    if destination is None:
        return
    if destination.in_maintenance:
        yield Finding("host_in_maintenance", evidence={"host": destination.name})
    if situation.vm.manager:
        manager = MANAGERS[situation.vm.manager]
        words = {"manager": manager.name, "command": manager.migrate}
        yield Finding("managed_elsewhere", evidence=words)
    for reason in situation.vm.blocked_reasons:
        yield Finding("vm_cannot_migrate", evidence={"reason": reason})
    yield from check_releases(situation)
    if destination.occupied:
        yield Finding("vm_on_destination")
    if destination.host.connection is Connection.QMP and destination.vm is None:
        yield Finding("no_incoming_qemu")
    here, there = situation.vm.machine, destination.vm.machine if destination.vm else ""
    if here and there and here != there:
        yield Finding("machine_differs", evidence={"source": here, "destination": there})
    if destination.host.connection is Connection.LIBVIRT and not destination.host.peer_uri:
        yield Finding("no_peer_uri", evidence={"host": destination.host.hostname})


def _offered(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """QEMU must have the capability or parameter, on each side that needs it."""
    if tunable.route is Route.CONTROL and wanted == OFF:
        return
    since = f"it came with QEMU {tunable.since.short}"
    if tunable.until is not None:
        since = f"QEMU {tunable.until.short} was the last that had it"
    if tunable.pack:
        since = f"the pack {tunable.pack} is for another"
    if tunable.side is not Side.DESTINATION or situation.destination is None:
        if not _has(tunable, situation.vm):
            yield Finding(
                "not_offered_by_qemu",
                tunable.name,
                {"version": str(situation.vm.qemu), "side": "source", "since": since},
            )
    destination = situation.destination
    if destination is None or tunable.side is Side.SOURCE:
        return
    if destination.vm is not None:
        missing = not _has(tunable, destination.vm)
        version = destination.vm.qemu
    else:
        version = destination.host.qemu or tunable.since
        missing = not tunable.in_release(version)
    if missing:
        yield Finding(
            "not_offered_by_qemu",
            tunable.name,
            {"version": str(version), "side": "destination", "since": since},
        )


def _has(tunable: Tunable, vm: VmFacts) -> bool:
    """Whether *vm*'s QEMU lists the capability or parameter; other kinds are no list."""
    if tunable.qmp is None:
        return offered_by_version(tunable, vm)
    match tunable.qmp.kind:
        case QmpKind.CAPABILITY:
            return tunable.qmp.name in vm.capabilities
        case QmpKind.PARAMETER:
            return tunable.qmp.name in vm.parameters
        case QmpKind.QOM | QmpKind.COMMAND:
            return tunable.name in vm.pack_offers
        case QmpKind.IOTHREAD:
            return tunable.in_release(vm.qemu)
        case _:
            return True


def _known_to_libvirt(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """libvirt must know what only libvirt can bring to both sides."""
    name = tunable.libvirt
    if not situation.libvirt or name is None or wanted is False or wanted == "none":
        return
    if name.kind is LibvirtKind.AUTOMATIC:
        yield Finding("set_by_libvirt", tunable.name, {"how": _automatic(name.name)})
        return
    if situation.route(tunable) is not Route.MIGRATE:
        return
    hosts = [situation.host]
    if situation.destination is not None:
        hosts.append(situation.destination.host)
    for host in hosts:
        if host.libvirt is not None and name.since > host.libvirt:
            yield Finding(
                "needs_newer_libvirt",
                tunable.name,
                {"version": str(host.libvirt), "since": name.since.short},
            )
            return


def _automatic(how: str) -> str:
    return f"decides it on its own ({how})"


def _whole_mib(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """libvirt takes bandwidths in MiB/s."""
    around = whole_around(tunable, wanted)
    if around is None or not situation.libvirt or situation.route(tunable) is not Route.MIGRATE:
        return
    whole = " or ".join(f"{each >> 20}MiB/s" for each in around)
    yield Finding("not_whole_mib", tunable.name, {"value": wanted, "whole": whole})


def _compression(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """The method must be compiled in, on both sides, and known to libvirt."""
    if tunable.name != "multifd_compression":
        return
    if situation.libvirt and wanted not in _KNOWN_TO_LIBVIRT:
        yield Finding("compression_unknown_to_libvirt", tunable.name, {"method": str(wanted)})
    sides = [("source", situation.vm)]
    if situation.destination is not None and situation.destination.vm is not None:
        sides.append(("destination", situation.destination.vm))
    for side, vm in sides:
        if vm.compression_methods and wanted not in vm.compression_methods:
            yield Finding(
                "compression_not_built_in",
                tunable.name,
                {
                    "side": side,
                    "method": str(wanted),
                    "methods": ", ".join(sorted(vm.compression_methods)),
                },
            )


def _postcopy(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """Each QEMU was asked, where it is there; else its release has to say."""
    if tunable.name != "postcopy" or wanted is not True or not situation.on("multifd"):
        return
    sides = [("source", situation.vm.postcopy_with_multifd, situation.vm.qemu)]
    destination = situation.destination
    if destination is not None and destination.vm is not None:
        there = destination.vm
        sides.append(("destination", there.postcopy_with_multifd, there.qemu))
    elif destination is not None and destination.host.qemu is not None:
        sides.append(("destination", None, destination.host.qemu))
    first, fixed = _POSTCOPY_REFUSES_MULTIFD
    for side, takes, version in sides:
        if not takes and (takes is False or first <= version < fixed):
            evidence: dict[str, str | int] = {"version": str(version), "side": side}
            yield Finding("postcopy_excludes_multifd", tunable.name, evidence)


def _dirty_limit(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    if tunable.name != "dirty_limit" or wanted is not True:
        return
    vm = situation.vm
    ring = vm.dirty_ring_size_entries
    if not vm.kvm or ring == 0:
        tracking = "a bitmap" if vm.kvm else "TCG"
        yield Finding("dirty_limit_needs_ring", tunable.name, {"tracking": tracking})
    if vm.capabilities.get("auto-converge") and not situation.libvirt:
        if situation.values.get("auto_converge") is None:
            yield Finding(
                "dirty_limit_not_alone",
                tunable.name,
                {"conflict": "auto_converge", "wanted": "dirty_limit"},
            )


def _auto_converge(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """dirty-limit is left alone by libvirt, so it may be on from before."""
    if tunable.name == "auto_converge" and wanted is True:
        if situation.vm.capabilities.get("dirty-limit"):
            if situation.values.get("dirty_limit") is None:
                yield Finding(
                    "dirty_limit_not_alone",
                    tunable.name,
                    {"conflict": "dirty_limit", "wanted": "auto_converge"},
                )


def _xbzrle_cache(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """QEMU allocates it as the migration begins. A page is in it once."""
    memory = situation.vm.memory_bytes
    most = 1 << max(memory - 1, 1).bit_length()
    if tunable.name == "xbzrle_cache_size_bytes" and isinstance(wanted, int) and wanted > most:
        evidence: dict[str, str | int] = {
            "cache_bytes": wanted, "memory_bytes": memory, "most_bytes": most,
        }  # fmt: skip
        yield Finding("xbzrle_cache_too_large", tunable.name, evidence)


def _throttle_order(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    first, most = "cpu_throttle_initial_percent", "max_cpu_throttle_percent"
    if tunable.name not in (first, most):
        return
    other = most if tunable.name == first else first
    if other in situation.values:
        return  # the profile's own rule has judged the pair
    low, high = situation.number(first), situation.number(most)
    if low is not None and high is not None and low > high:
        yield Finding(
            "throttle_out_of_order", tunable.name, {"first": low, "most": high, "missing": other}
        )


def _parts(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """A setting of iothreads or disks needs at least one of them."""
    kind = tunable.qmp.kind if tunable.qmp else None
    if kind is QmpKind.IOTHREAD and not situation.vm.iothreads:
        yield Finding("no_such_part", tunable.name, {"part": "an iothread"})
    if kind is QmpKind.DEVICE and not situation.vm.virtio_disks:
        yield Finding("no_such_part", tunable.name, {"part": "a virtio disk"})
    part = _DEVICE_PARTS.get(tunable.name)
    reading = situation.vm.readings.get(tunable.name)
    if part and reading is not None and not reading.parts:
        yield Finding("no_such_part", tunable.name, {"part": part})


_DEVICE_PARTS = {
    "virtio_net_queues": "a virtio network card with queues",
    "virtio_scsi_queues": "a virtio SCSI controller",
    **dict.fromkeys(("disk_cache", "disk_io", "disk_discard"), "a disk"),
}


def _thread_pools(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """Where the profile sets one limit, the present other one must fit it, in every part."""
    prefix, _, end = tunable.name.rpartition("_thread_pool_")
    if not prefix or not isinstance(wanted, int):
        return
    partner = f"{prefix}_thread_pool_{'max' if end == 'min' else 'min'}"
    if partner in situation.values:
        return
    reading = situation.reading(BUILT_IN[partner])
    present = reading.parts.values() or (reading.value,)
    for value in present:
        if value is None:
            continue
        low, high = (wanted, int(value)) if end == "min" else (int(value), wanted)
        if low > high:
            yield Finding(
                "thread_pool_out_of_order",
                tunable.name,
                {"least": low, "most": high, "missing": partner},
            )
            return


def _tls(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """Each side needs certificates: libvirt in a folder, QEMU in an object."""
    there = situation.destination
    if tunable.name == "tls" and wanted is True and not situation.libvirt:
        if "tls_creds" not in situation.values:
            yield Finding("tls_creds_missing", tunable.name)
    elif tunable.name == "tls" and wanted is True:
        hosts = [("source", situation.host), *([("destination", there.host)] if there else [])]
        for side, host in hosts:
            if host.no_certificates_in:
                evidence: dict[str, str | int] = {"side": side, "folder": host.no_certificates_in}
                yield Finding("tls_certificates_missing", tunable.name, evidence)
    if tunable.name == "tls" and wanted is True and there is not None and there.encrypted:
        yield from _slower_than_guest(tunable, there.encrypted, situation)
    if tunable.name == "tls_creds":
        vms = [("source", situation.vm), *([("destination", there.vm)] if there else [])]
        for side, vm in vms:
            if vm is not None and vm.objects is not None and wanted not in vm.objects:
                evidence = {"side": side, "name": str(wanted)}
                yield Finding("tls_creds_unknown", tunable.name, evidence)


def _slower_than_guest(
    tunable: Tunable, path: Encrypted, situation: Situation
) -> Iterator[Finding]:
    if path.dirties_bytes_per_s > path.sends_bytes_per_s:
        evidence: dict[str, str | int] = {
            "sends_bytes": path.sends_bytes_per_s,
            "dirties_bytes": path.dirties_bytes_per_s,
            "records": path.records,
            "channels": (situation.number("multifd_channels") or 2)
            if situation.on("multifd")
            else 1,
        }
        yield Finding("tls_slower_than_guest", tunable.name, evidence)


def _destination_only(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """libvirt's destination answers no monitor command until the migration has ended."""
    if tunable.side is not Side.DESTINATION or not situation.libvirt:
        return
    if situation.destination is None or situation.permissions.destination_command_line:
        return
    yield Finding("destination_needs_command_line", tunable.name)


def _boot(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    if tunable.route is not Route.BOOT:
        return
    if situation.reading(tunable).value == wanted:
        return
    if not situation.libvirt:
        option = _BOOT_OPTIONS[tunable.name].format(value=wanted)
        yield Finding("boot_needs_owner", tunable.name, {"option": option})
    elif not situation.vm.persistent:
        yield Finding("transient_vm", tunable.name)
    else:
        yield Finding("pending_restart", tunable.name)


_BOOT_OPTIONS = {
    "dirty_ring_size_entries": "-accel kvm,dirty-ring-size={value}",
    "virtio_blk_queues": "-device virtio-blk-pci,num-queues={value},...",
    "virtio_blk_queue_size": "-device virtio-blk-pci,queue-size={value},...",
    "virtio_net_queues": "-netdev tap,queues={value},... -device virtio-net-pci,mq=on,...",
    "virtio_scsi_queues": "-device virtio-scsi-pci,num_queues={value},...",
    "disk_cache": "-blockdev ...,cache.direct=on|off,cache.no-flush=on|off",
    "disk_io": "-blockdev ...,aio={value}",
    "disk_discard": "-blockdev ...,discard={value}",
    "huge_pages": "-object memory-backend-memfd,hugetlb=on,hugetlbsize={value},...",
    "vcpu_cpus": "none of QEMU: taskset of its vCPU threads",
    "emulator_cpus": "none of QEMU: taskset --cpu-list {value}",
    "iothread_cpus": "none of QEMU: taskset of its iothreads",
    "numa_nodes": "-object memory-backend-ram,host-nodes={value},...",
    "numa_mode": "-object memory-backend-ram,policy=bind|preferred|interleave,...",
}


def _channels(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    if tunable.name != "multifd_channels" or not isinstance(wanted, int):
        return
    sides = [("source", situation.host)]
    if situation.destination is not None:
        sides.append(("destination", situation.destination.host))
    for side, host in sides:
        if host.cpus is not None and wanted > host.cpus:
            yield Finding(
                "more_channels_than_cpus",
                tunable.name,
                {"channels": wanted, "cpus": host.cpus, "side": side},
            )


_PER_TUNABLE: tuple[Callable[[Tunable, Value, Situation], Iterator[Finding]], ...] = (
    _offered,
    _known_to_libvirt,
    _whole_mib,
    _compression,
    _postcopy,
    _dirty_limit,
    _auto_converge,
    _xbzrle_cache,
    _throttle_order,
    _parts,
    _thread_pools,
    _tls,
    _destination_only,
    _boot,
    check_host,
    check_zero_copy,
    _channels,
    check_reaper,
    check_alone,
    check_wanted_ring,
    check_pack,
    check_queues,
    check_network,
)

assert set(_BOOT_OPTIONS) == {n for n, t in BUILT_IN.items() if t.route is Route.BOOT}
