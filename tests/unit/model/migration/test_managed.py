"""Migrations of VMs that another program manages: what is left to it, and whose each value is."""

from __future__ import annotations

from vmtune.hypervisor.libvirt.domain_xml import manager_in
from vmtune.model.host.facts import Reading
from vmtune.model.host.managers import LIBVIRT, NOVA, VMTUNE
from vmtune.model.migration.observed import LEFT_TO_MANAGER, missing_flags, when_set
from vmtune.model.plan.outcome import Outcome, Status
from vmtune.model.tunables.built_in import BUILT_IN


def test_the_metadata_says_whose_it_is() -> None:
    xml = "<domain><metadata>{}</metadata></domain>"
    novas = "<n:instance xmlns:n='http://openstack.org/xmlns/libvirt/nova/1.1'/>"
    others = "<o:x xmlns:o='http://openstack.org/xmlns/libvirt/novatel'/><plain/>"
    assert manager_in(xml.format(others + novas)) == NOVA.name
    assert manager_in(xml.format(others)) == manager_in("<domain/>") == ""


def pending(**values: int | bool | str) -> list[Outcome]:
    return [Outcome(name, Status.PENDING_MIGRATION, value) for name, value in values.items()]


def test_what_is_novas_is_left_to_it_and_told() -> None:
    wanted = pending(
        downtime_limit_ms=450, multifd=True, auto_converge=True, max_cpu_throttle_percent=77,
        multifd_compression="zstd",
    )  # fmt: skip
    now = {
        "downtime_limit_ms": Reading(50),
        "multifd": Reading(False),
        "auto_converge": Reading(True),
        "max_cpu_throttle_percent": Reading(77),
        "multifd_compression": Reading("none"),
        "max_bandwidth_bytes_per_s": Reading(2 << 20),
    }
    applied = when_set(wanted, now, {}, BUILT_IN, True, NOVA)
    found = {o.tunable: o for o in applied.outcomes}
    assert {name: (o.status, o.owner, o.seen) for name, o in found.items()} == {
        "downtime_limit_ms": (Status.NOT_APPLIED, NOVA.name, 50),
        "multifd": (Status.NOT_APPLIED, NOVA.name, False),
        "auto_converge": (Status.EFFECTIVE, NOVA.name, True),
        "max_cpu_throttle_percent": (Status.EFFECTIVE, VMTUNE, 77),
        "multifd_compression": (Status.REJECTED, LIBVIRT, "none"),
        "max_bandwidth_bytes_per_s": (Status.NOT_APPLIED, NOVA.name, 2 << 20),
    }
    assert found["max_bandwidth_bytes_per_s"].wanted is None
    assert "live_migration_downtime" in found["downtime_limit_ms"].reason
    (problem,) = applied.problems
    assert problem.code == LEFT_TO_MANAGER
    assert "downtime_limit_ms, multifd itself" in problem.message
    assert "live_migration_parallel_connections" in problem.remedy
    assert missing_flags(applied.problems) == []


def test_what_could_not_be_read_is_novas_and_unknown() -> None:
    unread = {"downtime_limit_ms": Reading(None, why_unknown="it ended")}
    (outcome,) = when_set([], unread, {}, BUILT_IN, True, NOVA).outcomes
    assert (outcome.status, outcome.owner) == (Status.UNKNOWN, NOVA.name)
    assert (outcome.wanted, outcome.seen, outcome.reason) == (None, None, "it ended")


def test_without_a_manager_what_vmtune_has_set_is_its_own() -> None:
    now = {"downtime_limit_ms": Reading(450), "multifd": Reading(False)}
    applied = when_set(pending(downtime_limit_ms=450, multifd=True), now, {}, BUILT_IN, True)
    assert [(o.status, o.owner) for o in applied.outcomes] == [
        (Status.EFFECTIVE, VMTUNE),
        (Status.REJECTED, LIBVIRT),
    ]
