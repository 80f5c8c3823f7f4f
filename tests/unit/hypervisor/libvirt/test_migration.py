"""The migrate route as libvirt's flags and typed parameters."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from vmtune.errors import CommandRefused, HostUnreachable, OutcomeUnknown
from vmtune.hypervisor.libvirt.migrating.migration import (
    UNLIMITED_MIB_PER_S,
    LibvirtMigration,
    MigrationArguments,
    migration_arguments,
    migration_flags,
)
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Kind, LibvirtKind, Route, Value

MIB = 1 << 20
COMPRESSED = ("VIR_MIGRATE_COMPRESSED",)

# Name: the value, libvirt's flags, libvirt's parameters.
EXPECTED: dict[str, tuple[Value, tuple[str, ...], dict[str, object]]] = {
    "multifd": (True, ("VIR_MIGRATE_PARALLEL",), {}),
    "multifd_channels": (8, (), {"parallel.connections": 8}),
    "multifd_compression": ("zstd", COMPRESSED, {"compression": ["zstd"]}),
    "multifd_zlib_level": (9, (), {"compression.zlib.level": 9}),
    "multifd_zstd_level": (3, (), {"compression.zstd.level": 3}),
    "zero_copy_send": (True, ("VIR_MIGRATE_ZEROCOPY",), {}),
    "xbzrle": (True, COMPRESSED, {"compression": ["xbzrle"]}),
    "xbzrle_cache_size_bytes": (128 * MIB, (), {"compression.xbzrle.cache": 128 * MIB}),
    "compress": (True, COMPRESSED, {"compression": ["mt"]}),
    "compress_threads": (4, (), {"compression.mt.threads": 4}),
    "auto_converge": (True, ("VIR_MIGRATE_AUTO_CONVERGE",), {}),
    "cpu_throttle_initial_percent": (30, (), {"auto_converge.initial": 30}),
    "cpu_throttle_increment_percent": (5, (), {"auto_converge.increment": 5}),
    "max_bandwidth_bytes_per_s": (100 * MIB, (), {"bandwidth": 100}),
    "avail_switchover_bandwidth_bytes_per_s": (
        1000 * MIB,
        (),
        {"bandwidth.avail.switchover": 1000},
    ),
    "postcopy": (True, ("VIR_MIGRATE_POSTCOPY",), {}),
    "postcopy_preempt": (True, (), {}),
    "max_postcopy_bandwidth_bytes_per_s": (50 * MIB, (), {"bandwidth.postcopy": 50}),
    "tls": (True, ("VIR_MIGRATE_TLS",), {}),
    "tls_creds": ("tls0", (), {}),
    "tls_hostname": ("b.example", (), {"tls.destination": "b.example"}),
    "migrate_uri": ("tcp://10.0.0.2", (), {"migrate_uri": "tcp://10.0.0.2"}),
    "listen_address": ("10.0.0.2", (), {"listen_address": "10.0.0.2"}),
    "disks_uri": ("tcp://10.0.0.2:49153", (), {"disks_uri": "tcp://10.0.0.2:49153"}),
    "copy_storage": (True, ("VIR_MIGRATE_NON_SHARED_DISK",), {}),
    "copy_storage_incremental": (True, ("VIR_MIGRATE_NON_SHARED_INC",), {}),
    "copy_disks": ("vda,vdb", (), {"migrate_disks": ["vda", "vdb"]}),
    "copy_synchronous_writes": (True, ("VIR_MIGRATE_NON_SHARED_SYNCHRONOUS_WRITES",), {}),
    "copy_detect_zeroes_disks": ("vda", (), {"migrate_disks_detect_zeroes": ["vda"]}),
    "copy_target_zero_disks": ("vda,vdb", (), {"migrate_disks_target_zero": ["vda", "vdb"]}),
    "disks_port": (49300, (), {"disks_port": 49300}),
}


@pytest.mark.parametrize("name", [n for n, t in BUILT_IN.items() if t.route is Route.MIGRATE])
def test_every_tunable_of_a_migration_has_its_arguments(name: str) -> None:
    assert name in EXPECTED, f"{name} is new: say here what libvirt is to be told"
    value, flags, parameters = EXPECTED[name]
    arguments = migration_arguments({name: BUILT_IN[name].accept(value)})
    assert arguments.flags == flags
    assert dict(arguments.parameters) == parameters


@pytest.mark.parametrize("name", EXPECTED)
def test_off_needs_no_argument(name: str) -> None:
    off: Value = "none" if BUILT_IN[name].kind is Kind.CHOICE else False
    if BUILT_IN[name].kind not in (Kind.BOOLEAN, Kind.CHOICE):
        return
    arguments = migration_arguments({name: off})
    assert arguments.flags == ()
    assert arguments.parameters == {}


def test_two_compressions_are_asked_for_at_once() -> None:
    arguments = migration_arguments({"compress": True, "xbzrle": True})
    assert arguments.flags == COMPRESSED
    assert arguments.parameters == {"compression": ["mt", "xbzrle"]}


def test_together_they_make_one_call() -> None:
    names = ("multifd", "multifd_channels", "multifd_compression", "multifd_zstd_level")
    arguments = migration_arguments({name: EXPECTED[name][0] for name in names})
    assert arguments.flags == ("VIR_MIGRATE_PARALLEL", "VIR_MIGRATE_COMPRESSED")
    assert arguments.parameters == {
        "parallel.connections": 8,
        "compression": ["zstd"],
        "compression.zstd.level": 3,
    }


def test_no_limit_is_the_greatest_one() -> None:
    """0 is what was set with virDomainMigrateSetMaxSpeed, whoever did that."""
    arguments = migration_arguments({"max_bandwidth_bytes_per_s": 0})
    assert arguments.parameters == {"bandwidth": UNLIMITED_MIB_PER_S}
    assert UNLIMITED_MIB_PER_S * MIB < 1 << 63
    greatest = migration_arguments({"max_bandwidth_bytes_per_s": 1 << 62})
    assert greatest.parameters["bandwidth"] <= UNLIMITED_MIB_PER_S  # type: ignore[operator]  # int


def test_a_fraction_of_a_mib_is_refused_by_name() -> None:
    with pytest.raises(CommandRefused) as refused:
        migration_arguments({"max_bandwidth_bytes_per_s": 10 * MIB + 1})
    (problem,) = refused.value.problems
    assert (problem.field, problem.code) == ("values.max_bandwidth_bytes_per_s", "not_whole_mib")
    assert "10MiB/s or 11MiB/s" in problem.remedy


@pytest.mark.parametrize("name", [n for n, t in BUILT_IN.items() if t.route is not Route.MIGRATE])
def test_other_routes_are_refused_by_name(name: str) -> None:
    with pytest.raises(CommandRefused) as refused:
        migration_arguments({name: 1})
    assert refused.value.problems[0].field == f"values.{name}"


def test_kinds_of_argument_are_all_handled() -> None:
    kinds = {t.libvirt.kind for t in BUILT_IN.values() if t.libvirt and t.route is Route.MIGRATE}
    assert kinds <= {LibvirtKind.FLAG, LibvirtKind.PARAMETER, LibvirtKind.AUTOMATIC}


def test_a_persistent_vm_moves_with_its_configuration() -> None:
    transient, persistent = set(migration_flags(False)), set(migration_flags(True))
    assert transient == {"VIR_MIGRATE_LIVE", "VIR_MIGRATE_PEER2PEER"}
    assert persistent - transient == {"VIR_MIGRATE_PERSIST_DEST", "VIR_MIGRATE_UNDEFINE_SOURCE"}


MIGRATION = UUID(int=1), "qemu+tcp://b/system", MigrationArguments()


async def test_without_a_connection_it_does_not_begin() -> None:
    def connect() -> None:
        raise HostUnreachable("no daemon")

    migration = LibvirtMigration()
    with pytest.raises(HostUnreachable, match="no daemon"):
        await migration.begin(*MIGRATION, connect)  # type: ignore[arg-type]  # never returns
    assert not migration.done


async def test_whoever_waits_when_it_is_let_go_is_told_that_its_end_is_unknown() -> None:
    migration = LibvirtMigration()
    waiting = asyncio.create_task(migration.wait())
    await asyncio.sleep(0)
    migration.let_go()
    with pytest.raises(OutcomeUnknown):
        await waiting
    assert migration.done
