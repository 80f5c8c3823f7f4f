"""The preflight: each finding comes up where it should, and nowhere on a healthy host."""

from dataclasses import replace

import pytest

from tests.support.examples.facts import (
    ALLOWED,
    MAY_CHANGE,
    QEMU_7,
    QEMU_10,
    host,
    migrating,
    situation,
    vm,
    with_reading,
)
from tests.unit.model.preflight.rule_examples import EXAMPLES
from tests.unit.model.preflight.situations import (
    CONSENTED,
    GIB,
    INSIDE,
    PATCHED,
    POSTCOPY,
    QEMU_11_1,
    REAPED,
    ROOMY,
    SLACKEN,
    SMALL,
    UNSAFE,
    ZERO_COPY,
    busy,
    direct,
    direct_migration,
    found,
    inside,
    packed,
    ringed,
    shared,
)
from vmtune.model.findings.doctor_rows import DOCTOR_ROWS
from vmtune.model.findings.pack_rows import PACK_ROWS
from vmtune.model.findings.table import FINDINGS, Finding, Severity
from vmtune.model.host.facts import MemoryMaps, VmFacts, VmState
from vmtune.model.host.virtio_queues import VirtioQueue
from vmtune.model.plan.situation import Destination, Situation
from vmtune.model.tunables.rules import accept_values
from vmtune.model.versions import Version


@pytest.mark.parametrize(
    ("code", "tunable", "where"),
    EXAMPLES,
    ids=[f"{c}-{t}-{i}" for i, (c, t, _) in enumerate(EXAMPLES)],
)
def test_each_finding_comes_up_with_evidence_and_remedy(
    code: str, tunable: str, where: Situation
) -> None:
    hits = [f for f in found(where) if (f.code, f.tunable) == (code, tunable)]
    assert len(hits) >= 1
    assert "{" not in hits[0].message + hits[0].remedy
    assert hits[0].message
    assert hits[0].remedy


def test_every_finding_has_an_example() -> None:
    told_elsewhere = {kind.code for kind in (*DOCTOR_ROWS, *PACK_ROWS)}
    assert {code for code, _, _ in EXAMPLES} == set(FINDINGS) - told_elsewhere


LONG = (VirtioQueue("virtio-disk0", 1024, 256),)
HEALTHY = [
    migrating(vm=vm(Version(11, 1, 3)), host=host(libvirt=Version(12, 8, 0))),
    migrating(vm=vm(virtio_queues=LONG)),
    migrating(vm=vm(virtio_queues=(VirtioQueue("virtio-disk0", 1024, 1024),)),
              destination=QEMU_11_1),
    migrating(destination=QEMU_11_1),
    migrating(vm=vm(virtio_queues=LONG), destination=Destination("b", host("b", qemu=None))),
    situation({}),
    migrating({}),
    situation(ZERO_COPY),
    migrating(ZERO_COPY),
    direct(ZERO_COPY, vm=ROOMY),
    direct(ZERO_COPY, vm=vm(may_lock_memory=True)),
    direct(ZERO_COPY, vm=shared(GIB - 1)),
    direct(ZERO_COPY, vm=shared(0, 0)),
    direct({"multifd": True}, vm=shared(GIB)),
    direct(ZERO_COPY, vm=replace(shared(GIB), may_lock_memory=True)),
    direct_migration({"multifd": True}, vm()),
    situation({"dirty_limit": True}, vm=with_reading(vm(), "dirty_ring_size_entries", 4096)),
    situation({"multifd": True, "postcopy": True}, vm=vm(QEMU_7)),
    situation({"multifd": True, "postcopy": True}, vm=vm(Version(10, 1))),
    situation({"iothread_thread_pool_min": 65, "iothread_thread_pool_max": 80}),
    situation({"vm_max_map_count": 65530}),
    situation({"vm_max_map_count": 1 << 20}, permissions=MAY_CHANGE),
    situation({"virtio_blk_queues": 16, "virtio_blk_queue_size": 256}, host=SMALL),
    situation({"virtio_blk_queues": 200, "vm_max_map_count": 1 << 20}, host=SMALL,
              permissions=MAY_CHANGE),
    situation(vm=replace(busy(), state=VmState.PAUSED, virtio_disks=()), host=SMALL),
    situation(vm=vm(maps=MemoryMaps(58977, 0)), host=SMALL),
    situation({"max_bandwidth_bytes_per_s": 64 << 20}),
    migrating({"announce_rounds": 3}, permissions=ALLOWED),
    situation({"announce_rounds": 3}),
    direct({"max_bandwidth_bytes_per_s": 1_000_000}),
    direct({"dirty_ring_size_entries": 0}),
    situation({"multifd": False, "multifd_compression": "none"}, host=host(libvirt=Version(9))),
    migrating(REAPED, vm=ringed(65536)),
    situation({**REAPED, "dirty_limit": False},
              vm=replace(ringed(65536), capabilities={"dirty-limit": True})),
    situation({"reaper_policy": "off"}, vm=vm(QEMU_7)),
    packed({"qemu_reaper_policy": "stock"}, vm=inside(entries=0), permissions=CONSENTED),
    packed(INSIDE, vm=inside(), permissions=CONSENTED),
    migrating({**REAPED, "qemu_reaper_policy": "stock"}, vm=inside("levels"), tunables=PATCHED,
              permissions=CONSENTED),
    situation({**REAPED, "dirty_ring_size_entries": 65536}),
    # Rings on a kernel that empties them in part.
    migrating(vm=ringed(0), host=UNSAFE),
    migrating(vm=replace(ringed(65536), kvm=False), host=UNSAFE),
    migrating(vm=replace(ringed(65536), aborts_on_short_reset=False), host=UNSAFE),
    migrating(vm=ringed(65536), host=host(ring_reset_ends_early=False)),
    migrating(vm=ringed(65536), host=host(ring_reset_ends_early=None)),
    migrating(REAPED, vm=ringed(65536), host=UNSAFE),
    migrating(REAPED, vm=ringed(32768), host=UNSAFE),
    situation(vm=ringed(65536), host=UNSAFE),
    situation({"dirty_ring_size_entries": 0}, vm=ringed(65536), host=UNSAFE),
    situation({**REAPED, "dirty_ring_size_entries": 65536}, vm=ringed(65536), host=UNSAFE),
    migrating(vm=ringed(65536), destination=Destination("b", UNSAFE)),
    migrating({"postcopy": True}, steps=(SLACKEN, POSTCOPY)),
]  # fmt: skip


def test_all_devices_whose_queues_are_too_long_are_named() -> None:
    """And a QEMU that waits there says best which release it is."""
    short, rng = VirtioQueue("scsi0", 256, 256), VirtioQueue("rng0", 1024, 8)
    waiting = vm(Version(11, 1, 3))
    (finding,) = found(
        direct_migration({}, waiting, vm=vm(virtio_queues=(*LONG, short, rng)))
    )  # fmt: skip
    assert finding.code == "virtio_queues_too_long"
    assert finding.evidence == {
        "qemu": "10.0.2", "entries": 1024, "devices": "virtio-disk0: 256, rng0: 8",
        "there": "11.1.3",
    }  # fmt: skip


@pytest.mark.parametrize("where", HEALTHY, ids=range(len(HEALTHY)))
def test_nothing_stands_against_what_is_right(where: Situation) -> None:
    assert [f.code for f in found(where) if f.severity is Severity.BLOCKER] == []


def test_the_largest_ring_is_large_enough() -> None:
    assert "reaper_small_ring" not in {f.code for f in found(migrating(REAPED, vm=ringed(65536)))}
    assert "reaper_small_ring" not in {f.code for f in found(migrating(REAPED, vm=ringed(16384)))}


def test_a_finding_about_a_step_names_it_by_its_place() -> None:
    where = migrating({"multifd": True, "postcopy": True}, steps=(SLACKEN, POSTCOPY))
    (finding,) = [f for f in found(where) if f.code == "step_without_switch"]
    assert finding.field == "steps.1"
    assert "step 2 will fail: postcopy" in finding.message
    (other, _) = [f for f in found(where) if f.code == "postcopy_excludes_multifd"]
    assert other.field == "values.postcopy"
    assert Finding("fresh_destination").field == "vm"


def test_examples_are_profiles_that_could_be_stored() -> None:
    for code, _, where in EXAMPLES:
        if code == "network_address_invalid":
            continue  # what a placeholder stood for
        assert accept_values(where.values, PATCHED) == where.values


BOTH = {"multifd": True, "postcopy": True}


@pytest.mark.parametrize(
    ("here", "there", "sides"),
    [
        (vm(Version(10), postcopy_with_multifd=True), None, []),  # a backport
        (vm(Version(11), postcopy_with_multifd=False), None, ["source"]),
        (vm(QEMU_7), None, []),
        (vm(QEMU_7), vm(QEMU_10), ["destination"]),
        (vm(QEMU_10), vm(QEMU_10, postcopy_with_multifd=True), ["source"]),
        (vm(QEMU_10), vm(QEMU_10), ["source", "destination"]),
    ],
)
def test_each_qemu_is_asked_whether_post_copy_excludes_multifd(
    here: VmFacts, there: VmFacts | None, sides: list[str]
) -> None:
    where = direct_migration(BOTH, there, vm=here) if there else direct(BOTH, vm=here)
    blockers = [f for f in found(where) if f.code == "postcopy_excludes_multifd"]
    assert [f.evidence["side"] for f in blockers] == sides


@pytest.mark.parametrize(
    ("version", "optmem", "code"),
    [
        (Version(10, 1), 10240, "optmem_too_low"),
        (Version(10, 2), 10240, "optmem_slows"),
        (Version(10, 2), 4096, "optmem_too_low"),
        (Version(10, 2), 131072, ""),
    ],
)
def test_a_qemu_that_waits_for_socket_memory_is_no_blocker(
    version: Version, optmem: int, code: str
) -> None:
    little = host(sysctls={"net_core_optmem_max_bytes": optmem})
    codes = [f.code for f in found(situation(ZERO_COPY, vm=vm(version), host=little))]
    assert [c for c in codes if c.startswith("optmem")] == ([code] if code else [])


@pytest.mark.parametrize("code", ["locked_memory_too_low", "locked_memory_differs"])
def test_no_advice_leads_to_a_hard_limit(code: str) -> None:
    remedy = FINDINGS[code].remedy
    assert "<locked/>" in remedy
    assert "hard_limit ends the guest itself" in remedy
