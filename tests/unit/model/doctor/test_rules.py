"""Each planted fault is found, with what was seen, where, and what mends it; a healthy host
has none."""

from __future__ import annotations

import re
import string
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.model.doctor.facts import (
    Examined,
    KvmSeen,
    NicSeen,
    ProfileNeeds,
    QemuSeen,
    Seen,
    SkippedCheck,
)
from vmtune.model.doctor.kernel import FIXED_BY
from vmtune.model.doctor.rules import Diagnosis, diagnose
from vmtune.model.findings.doctor_rows import DOCTOR_ROWS
from vmtune.model.findings.table import FINDINGS, Finding, Severity
from vmtune.model.host.srcu_cost import SLOW_US, Distribution, SrcuCost
from vmtune.model.versions import Version

GIB = 1 << 30
QEMU = QemuSeen(7, 4, maps=700, memory_bytes=4 * GIB, memlock_bytes=64 << 10, may_lock=False)
RINGED = replace(QEMU, dirty_ring_entries=4096, aborts_on_short_reset=True)
UNSAFE = KvmSeen(present=True, dirty_ring_bytes=1 << 20, ring_reset_ends_early=True)
POLLS = SrcuCost(2, *[Distribution.of([SLOW_US * 1000])] * 4)
SLEEPS = SrcuCost(2, *[Distribution.of([8 * SLOW_US * 1000])] * 4)
HEALTHY = Examined(
    hostname="rack7",
    user="vmtune",
    kernel=Seen("6.12.38+deb13-amd64", "/proc/sys/kernel/osrelease"),
    srcu=dict.fromkeys(FIXED_BY, "1000"),
    srcu_cost=POLLS,
    max_map_count=Seen(65530, "/proc/sys/vm/max_map_count"),
    optmem_max_bytes=Seen(131072, "/proc/sys/net/core/optmem_max"),
    unprivileged_userfaultfd=Seen(1, "/proc/sys/vm/unprivileged_userfaultfd"),
    userfaultfd_device="of mode 0600",
    kvm=KvmSeen(present=True, dirty_ring_bytes=1 << 20),
    cpus=Seen(32, "/proc/cpuinfo"),
    qemus=(QEMU,),
    nics=(NicSeen("eth0", 25_000, True),),
    confines=Seen("AppArmor", "/sys/module/apparmor/parameters/enabled"),
    can_raise_memlock=Seen(True, "CapEff of /proc/9/status"),
    qemu_versions=(("qemu-system-x86_64 --version", Version(10, 1)),),
    libvirt=Seen("11.3.0", "libvirt"),
    programs={"nsenter": True, "ip": True, "unshare": True, "qemu-system-x86_64": True},
)
EIGHT = ProfileNeeds(8, "fast", zero_copy=True)


def seen(number: int) -> Seen[int]:
    return Seen(number, "/proc/here")


FAULTS: list[tuple[str, Examined, ProfileNeeds]] = [
    (code, replace(HEALTHY, **planted), EIGHT)  # type: ignore[arg-type]  # as named
    for code, planted in [
        ("srcu_slow_boot", {"kernel": Seen("5.19.0-rc3", "/proc/k"), "srcu": {}}),
        ("srcu_unknown", {"kernel": Seen("5.14.0-427.el9.x86_64", "/proc/k"), "srcu": {}}),
        ("srcu_updates_slow", {"srcu_cost": SLEEPS}),
        ("srcu_updates_slow_kernel",
         {"srcu_cost": SLEEPS, "srcu": {}, "kernel": Seen("5.10.0", "/proc/k")}),
        ("map_count_low", {"max_map_count": seen(65529)}),
        ("maps_nearly_used_up", {"qemus": (replace(QEMU, maps=60_000),)}),
        ("qemus_of_others", {"qemus": (replace(QEMU, maps=None),)}),
        ("qemus_unconfined", {"qemus": (QEMU, replace(QEMU, label="unconfined"))}),
        ("qemus_unconfined",
         {"qemus": (replace(QEMU, label="unconfined_u:unconfined_r:unconfined_t:s0"),)}),
        ("qemus_unconfined", {"qemus": (replace(QEMU, label="libvirt-9 (complain)"),)}),
        ("host_optmem_low", {"optmem_max_bytes": seen(20479)}),
        ("host_optmem_low", {"optmem_max_bytes": seen(8 * 5120 - 1)}),
        ("memlock_low", {"can_raise_memlock": Seen(False, "CapEff"), "libvirt": None}),
        ("memlock_low", {"can_raise_memlock": None}),
        ("daemon_cannot_raise_memlock", {"can_raise_memlock": Seen(False, "CapEff"), "qemus": ()}),
        ("userfaultfd_denied", {"unprivileged_userfaultfd": seen(0)}),
        ("userfaultfd_denied", {"unprivileged_userfaultfd": seen(0), "qemus": ()}),
        ("kvm_missing", {"kvm": KvmSeen(present=False)}),
        ("kvm_unusable", {"kvm": KvmSeen(present=True, why_not="Permission denied")}),
        ("dirty_ring_missing", {"kvm": KvmSeen(present=True, dirty_ring_bytes=0)}),
        ("dirty_ring_unsafe", {"kvm": UNSAFE}),
        ("dirty_ring_unsafe", {"kvm": replace(UNSAFE, ring_reset_ends_early=None),
                               "kernel": Seen("6.16.2-amd64", "/proc/k")}),
        ("vm_dirty_ring_unsafe", {"kvm": UNSAFE, "qemus": (RINGED,)}),
        ("vm_dirty_ring_unsafe",
         {"kvm": UNSAFE, "qemus": (replace(RINGED, aborts_on_short_reset=None),)}),
        ("too_few_spare_cpus", {"qemus": (replace(QEMU, vcpus=25),)}),
        ("too_few_spare_cpus", {"cpus": seen(4)}),
        ("nic_without_scatter_gather", {"nics": (NicSeen("eth0", 25_000, False),)}),
        ("nic_slow", {"nics": (NicSeen("eth0", 1000, True),)}),
        ("qemu_missing",
         {"programs": {"qemu-system-x86_64": False}, "qemu_versions": (), "qemus": ()}),
        ("qemu_too_old", {"qemu_versions": (("libvirt", Version(6, 2)),)}),
        ("libvirt_too_old", {"libvirt": Seen("8.9.0", "libvirt")}),
        ("libvirt_without_compression", {"libvirt": Seen("9.0.0", "libvirt")}),
        ("qemu_postcopy_alone", {"qemu_versions": (("libvirt", Version(10, 0, 2)),)}),
        ("program_missing", {"programs": {"nsenter": False}}),
    ]
]  # fmt: skip


def codes(diagnosis: Diagnosis) -> list[str]:
    return [finding.code for finding in diagnosis.findings]


@pytest.mark.parametrize("wanted", [None, EIGHT])
def test_nothing_on_a_healthy_host(wanted: ProfileNeeds | None) -> None:
    assert codes(diagnose("rack7", HEALTHY, wanted)) == []


@pytest.mark.parametrize(
    ("code", "host", "wanted"), FAULTS, ids=[f"{c}-{i}" for i, (c, _, _) in enumerate(FAULTS)]
)
def test_each_planted_fault_is_found_alone(code: str, host: Examined, wanted: ProfileNeeds) -> None:
    found = diagnose("rack7", host, wanted)
    assert codes(found) == [code]
    (finding,) = found.findings
    assert finding.evidence["where"]
    assert set(finding.evidence) > {"where"}  # the commands print a value before its source
    assert "{" not in finding.message + finding.remedy
    asks = finding.severity is not Severity.INFO
    assert bool(found.needs_action) is asks
    assert finding.remedy
    assert asks or not finding.remedy.startswith("run: ")


def test_every_row_is_planted() -> None:
    assert {code for code, _, _ in FAULTS} == {row.code for row in DOCTOR_ROWS}
    assert not [row for row in DOCTOR_ROWS if row.severity is Severity.BLOCKER]


def test_the_rows_name_only_evidence_that_their_findings_have() -> None:
    for code, host, wanted in FAULTS:
        (finding,) = diagnose("x", host, wanted).findings
        text = finding.kind.why + finding.kind.remedy
        names = {name for _, name, _, _ in string.Formatter().parse(text) if name}
        assert names <= set(finding.evidence), code


@pytest.mark.parametrize(
    "mild",
    [
        {"unprivileged_userfaultfd": seen(0), "userfaultfd_for_all": True},
        {"unprivileged_userfaultfd": seen(0), "qemus": (replace(QEMU, root=True),)},
        {"can_raise_memlock": None, "qemus": (replace(QEMU, may_lock=True),)},
        {"can_raise_memlock": None, "qemus": (replace(QEMU, memlock_bytes=4 * GIB),)},
        {"can_raise_memlock": None, "qemus": (replace(QEMU, memory_bytes=None),)},
        {"qemus": (replace(QEMU, maps=52_424),)},
        {"optmem_max_bytes": seen(8 * 5120)},
        {"qemus": (replace(QEMU, vcpus=24),)},
        {"nics": (NicSeen("eth0", None, None),)},
        {"qemus": (replace(QEMU, label="libvirt-9 (enforce)"),)},
        {"qemus": (replace(QEMU, label="system_u:system_r:svirt_t:s0:c3,c9"),)},
        {"qemus": (replace(QEMU, label="unconfined"),), "confines": None},
        {"kvm": KvmSeen(present=True, dirty_ring_bytes=None)},
        {"kvm": replace(UNSAFE, ring_reset_ends_early=False), "qemus": (RINGED,)},
        {"kvm": replace(UNSAFE, ring_reset_ends_early=None), "qemus": (RINGED,)},
        {"kvm": UNSAFE, "qemus": (replace(RINGED, aborts_on_short_reset=False),)},
        {"qemu_versions": (), "programs": {"qemu-system-x86_64": False}},
    ],
)
def test_what_is_good_enough_is_no_finding(mild: dict[str, object]) -> None:
    assert codes(diagnose("x", replace(HEALTHY, **mild), EIGHT)) == []  # type: ignore[arg-type]  # as named


def test_what_was_not_seen_is_no_finding_but_is_told() -> None:
    skipped_checks = (SkippedCheck("vm.max_map_count", "it is another machine"),)
    found = diagnose("x", Examined(skipped_checks=skipped_checks), EIGHT)
    assert codes(found) == []
    assert found.skipped_checks == skipped_checks


def test_what_asks_for_something_comes_first() -> None:
    ill = replace(
        HEALTHY,
        qemu_versions=(("libvirt", Version(10)),),
        nics=(NicSeen("a", 100, False),),
        max_map_count=seen(1),
    )
    severities = [f.severity for f in diagnose("x", ill).findings]
    assert severities == sorted(severities, key=[*Severity].index)
    assert len(set(severities)) == 2


@given(st.integers(0, 1 << 31), st.integers(0, 1 << 31), st.integers(0, 255), st.integers(1, 512))
def test_more_is_never_worse(maps: int, optmem: int, channels: int, cpus: int) -> None:
    def found(more: int) -> set[str]:
        host = replace(
            HEALTHY,
            max_map_count=seen(maps + more),
            optmem_max_bytes=seen(optmem + more),
            cpus=seen(cpus + more),
        )
        return set(codes(diagnose("x", host, ProfileNeeds(channels, "p"))))

    assert found(1 << 31) <= found(1) <= found(0)


@given(st.data())
def test_whatever_cannot_be_seen_adds_no_finding(data: st.DataObject) -> None:
    _, host, wanted = data.draw(st.sampled_from(FAULTS))
    hidden = data.draw(st.sets(st.sampled_from([f.name for f in fields(Examined)])))
    # Without a daemon it is QEMU's own limit that counts, and without QEMUs nobody is root.
    hidden -= {"can_raise_memlock", "libvirt", "qemus"}
    blank = Examined()
    left = replace(host, **{name: getattr(blank, name) for name in hidden})
    before = {f.code for f in diagnose("x", host, wanted).findings}
    after: set[str] = {f.code for f in diagnose("x", left, wanted).findings}
    # An older kernel's version alone leaves open what its parameters would have told.
    assert after - before <= {"srcu_unknown", "srcu_updates_slow_kernel"}


def test_a_finding_is_about_its_tunable() -> None:
    found: dict[str, Finding] = {
        f.code: f for _, host, wanted in FAULTS for f in diagnose("x", host, wanted).findings
    }
    assert found["map_count_low"].field == "values.vm_max_map_count"
    assert found["kvm_missing"].tunable == ""


def test_what_a_remedy_says_to_run_is_a_command_alone() -> None:
    told = [kind.remedy for kind in FINDINGS.values() if "run: " in kind.remedy]
    assert told
    for remedy in told:
        assert remedy.startswith("run: "), remedy
        assert not re.search(r"[,;]|\|\|| (or|then|and|from a|such as) ", remedy), remedy


def test_root_sees_every_qemu() -> None:
    gone = replace(HEALTHY, user="root", qemus=(replace(QEMU, maps=None),))
    assert diagnose("rack7", gone).findings == ()
