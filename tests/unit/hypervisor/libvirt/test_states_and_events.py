"""What libvirt says of a VM, in vmtune's words: states, events, totals, IOThreads."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.hypervisor.libvirt.connections import VM, Host, LibvirtError
from vmtune.hypervisor.libvirt import errors as libvirt_errors
from vmtune.hypervisor.libvirt.calls.domain import Domain
from vmtune.hypervisor.libvirt.events import read_event
from vmtune.hypervisor.libvirt.iothreads import iothread_number
from vmtune.hypervisor.libvirt.vm import read_totals
from vmtune.hypervisor.protocol import DriverEvent, EventKind
from vmtune.model.host.facts import VmState


def job(id: str, status: str = "running") -> tuple[Any, ...]:
    """As libvirt passes on what QEMU says of a job."""
    return ("JOB_STATUS_CHANGE", 1, 2, json.dumps({"id": id, "status": status}))


@pytest.mark.parametrize(
    ("name", "details", "kind", "detail"),
    [
        ("VIR_DOMAIN_EVENT_ID_LIFECYCLE", (2, 0), EventKind.VM_STATE, VmState.RUNNING.value),
        ("VIR_DOMAIN_EVENT_ID_LIFECYCLE", (2, 1), EventKind.VM_STATE, VmState.INCOMING.value),
        ("VIR_DOMAIN_EVENT_ID_LIFECYCLE", (3, 1), EventKind.VM_STATE, VmState.PAUSED.value),
        ("VIR_DOMAIN_EVENT_ID_LIFECYCLE", (5, 1), EventKind.VM_STATE, VmState.SHUT_OFF.value),
        ("VIR_DOMAIN_EVENT_ID_LIFECYCLE", (5, 3), EventKind.VM_STATE, VmState.MIGRATED.value),
        ("VIR_DOMAIN_EVENT_ID_MIGRATION_ITERATION", (4,), EventKind.MIGRATION_ITERATION, "4"),
        ("VIR_DOMAIN_EVENT_ID_JOB_COMPLETED", ({},), EventKind.MIGRATION_STATUS, "job ended"),
        (
            "MIGRATION",
            ("MIGRATION", 1, 2, json.dumps({"status": "active"})),
            EventKind.MIGRATION_STATUS,
            "active",
        ),
        ("JOB_STATUS_CHANGE", job("drive-ide0-0-0"), EventKind.DISK_COPY, "drive-ide0-0-0"),
    ],
)
def test_events(name: str, details: tuple[Any, ...], kind: EventKind, detail: str) -> None:
    assert read_event(name, VM, details) == DriverEvent(kind, VM, detail)


@pytest.mark.parametrize(
    "details", [job("copy-vda-libvirt-3-format"), job("vmtune-copy-disk0"), job("drive-x", "ready")]
)
def test_other_jobs_and_what_a_copy_does_later_are_no_events(details: tuple[Any, ...]) -> None:
    assert read_event("JOB_STATUS_CHANGE", VM, details) is None


def test_a_definition_is_no_event() -> None:
    assert read_event("VIR_DOMAIN_EVENT_ID_LIFECYCLE", VM, (0, 0)) is None


def test_totals_are_those_of_a_migration_only() -> None:
    job = {
        "operation": 4,
        "time_elapsed": 1200,
        "downtime": 80,
        "setup_time": 3,
        "memory_processed": 5000,
        "memory_iteration": 4,
        "memory_normal_bytes": 7000,
    }
    totals = read_totals(job)
    assert totals is not None
    assert (totals.total_time_ms, totals.downtime_ms, totals.setup_time_ms) == (1200, 80, 3)
    assert (totals.transferred_bytes, totals.iterations) == (5000, 4)
    assert totals.normal_bytes == 7000
    assert read_totals({**job, "operation": 2}) is None
    assert read_totals({}) is None


@pytest.mark.parametrize(
    ("owner", "number"),
    [("iothread1", 1), ("iothread12", 12), ("io1", 0), ("7", 0), ("iothread", 0)],
)
def test_iothreads_by_libvirts_number(owner: str, number: int) -> None:
    assert iothread_number(owner) == number


class TestState:
    """virDomainState and its reason, as a state of vmtune's."""

    @staticmethod
    def status(state: tuple[int, int], statistics: int = 0) -> tuple[VmState, bool]:
        def job_info() -> list[int]:
            if statistics:
                raise LibvirtError(statistics, "only available on the source host")
            return [0]

        raw = SimpleNamespace(
            state=lambda _: list(state),
            UUIDString=lambda: str(VM),
            name=lambda: "guest",
            jobInfo=job_info,
        )
        status = Domain(Host().open("x"), raw).status()
        return status.state, status.arriving

    @pytest.mark.parametrize(
        ("state", "expected"),
        [
            ((1, 1), VmState.RUNNING),
            ((3, 1), VmState.PAUSED),
            ((3, 2), VmState.PAUSED),
            ((5, 1), VmState.SHUT_OFF),
            ((5, 4), VmState.MIGRATED),
            ((6, 1), VmState.OTHER),
        ],
    )
    def test_a_vm_that_does_not_arrive(self, state: tuple[int, int], expected: VmState) -> None:
        assert self.status(state) == (expected, False)

    @pytest.mark.parametrize("state", [(3, 2), (3, 11)])
    def test_a_vm_that_arrives(self, state: tuple[int, int]) -> None:
        refused = libvirt_errors.OPERATION_UNSUPPORTED
        assert self.status(state, refused) == (VmState.INCOMING, True)

    def test_a_vm_that_runs_in_postcopy_still_arrives(self) -> None:
        refused = libvirt_errors.OPERATION_UNSUPPORTED
        assert self.status((1, 10), refused) == (VmState.RUNNING, True)
