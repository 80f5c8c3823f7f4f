"""How an end is concluded from two hosts that are asked one after the other, while the VM moves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import pytest

from tests.support.examples.migrations import make_migration
from tests.support.simulated.fakes import VM
from vmtune.engine import end_state
from vmtune.engine.end_state import Evidence, HostView, ask_both, conclude, find_end
from vmtune.errors import CommandRefused, NotFound, OutcomeUnknown
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import VmState, VmSummary
from vmtune.model.migration.record import (
    MIGRATION_CANCELLED,
    AbortState,
    MigrationState,
    QemuStatus,
    Snapshot,
    Trigger,
)

Said = tuple[VmState | None, QemuStatus]
"""The VM's state as a host says, None where it does not have it, and QEMU's last migration."""

LEFT: Said = (None, QemuStatus.NONE)
RUNS: Said = (VmState.RUNNING, QemuStatus.NONE)
ARRIVING: Said = (VmState.INCOMING, QemuStatus.NONE)
DONE: Said = (VmState.PAUSED, QemuStatus.COMPLETED)
FAILED: Said = (VmState.RUNNING, QemuStatus.FAILED)


class Host:
    """Says one thing at each look, and the last thing ever after. A real host cannot be made to
    answer just while the VM changes over."""

    def __init__(self, *says: Said) -> None:
        self._says = list(says)
        self._now = says[0]
        self.looks = 0

    async def list_vms(self) -> Sequence[VmSummary]:
        self._now = self._says.pop(0) if len(self._says) > 1 else self._says[0]
        self.looks += 1
        state, _ = self._now
        return [] if state is None else [VmSummary(VM, "vm", state)]

    async def migration(self, vm: UUID) -> Snapshot:
        if self._now[0] is None:
            raise NotFound("it is gone")
        return Snapshot(self._now[1])

    async def managed_by(self, vm: UUID) -> str:
        return ""

    async def outgoing(self) -> Sequence[UUID]:
        return []  # libvirt has ended the job by then


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_state, "RETRY_S", 0.001)
    monkeypatch.setattr(end_state, "AGREES_WITHIN_S", 0.05)


async def concluded(source: Host, destination: Host | None) -> end_state.End:
    record = make_migration(trigger=Trigger.OBSERVED)
    asked = cast(Driver, source), cast(Driver | None, destination)
    return await ask_both(record, MigrationState.FAILED, Evidence(), *asked)


@pytest.mark.parametrize("there", [LEFT, ARRIVING])
async def test_one_that_is_just_changing_over_has_not_failed(there: Said) -> None:
    """The destination was asked before the guest ran there, the source after libvirt was done."""
    end = await concluded(Host(DONE, LEFT), Host(there, RUNS))
    assert end.state is MigrationState.COMPLETED


async def test_one_that_is_on_neither_host_for_a_moment_has_not_failed() -> None:
    end = await concluded(Host(LEFT), Host(ARRIVING, RUNS))
    assert end.state is MigrationState.COMPLETED


async def test_one_whose_copy_its_source_keeps_has_migrated() -> None:
    """The source's libvirt was ended, and waits for nothing any more."""
    source = Host(DONE)
    end = await concluded(source, Host(RUNS))
    assert (end.state, source.looks) == (MigrationState.COMPLETED, 1)


async def test_one_that_is_leaving_for_nobody_knows_where_has_not_failed() -> None:
    end = await concluded(Host(DONE, LEFT), None)
    assert (end.state, end.why[:20]) == (MigrationState.UNKNOWN, "the VM left its host")


async def test_that_it_failed_is_believed_at_the_second_look() -> None:
    source = Host(FAILED)
    end = await concluded(source, Host(LEFT))
    assert (end.state, source.looks) == (MigrationState.FAILED, 2)
    assert "the VM is on the source" in end.why


BACK: Said = (VmState.RUNNING, QemuStatus.COMPLETED)
"""Without figures of its RAM: it arrived."""


@pytest.mark.parametrize("known", [
    {"trigger": Trigger.OBSERVED, "state": MigrationState.STARTING},
    {"state": MigrationState.ACTIVE},
    {"state": MigrationState.POSTCOPY_PAUSED},
    {"state": MigrationState.UNKNOWN, "active_at": datetime.now(UTC)},
])  # fmt: skip
async def test_one_whose_guest_has_come_back_since_has_not_failed(known: dict[str, Any]) -> None:
    record = make_migration(**known)
    source, destination = cast(Driver, Host(BACK)), cast(Driver, Host(LEFT))
    end = await ask_both(record, MigrationState.FAILED, Evidence(), source, destination)
    assert (end.state, end.came_back) == (MigrationState.COMPLETED, True)


@pytest.mark.parametrize("state", [MigrationState.STARTING, MigrationState.UNKNOWN])
async def test_one_that_never_began_has_not_left_though_its_guest_once_arrived(
    state: MigrationState,
) -> None:
    record = make_migration(state=state)
    source, destination = cast(Driver, Host(BACK)), cast(Driver, Host(LEFT))
    end = await ask_both(record, MigrationState.FAILED, Evidence(), source, destination)
    assert (end.state, end.came_back) == (MigrationState.FAILED, False)


async def test_one_that_is_on_neither_host_for_good_has_failed() -> None:
    end = await concluded(Host(LEFT), Host(LEFT))
    assert (end.state, end.why) == (MigrationState.FAILED, "the VM runs on neither host")


async def test_what_never_says_the_same_twice_is_unknown() -> None:
    turns = [FAILED, LEFT] * 500
    end = await concluded(Host(*turns), Host(LEFT))
    assert end.state is MigrationState.UNKNOWN


STATES = (None, *VmState)
OPEN = (MigrationState.UNKNOWN, MigrationState.POSTCOPY_PAUSED)
ENDED = (MigrationState.COMPLETED, MigrationState.FAILED, MigrationState.CANCELLED)


def views() -> list[end_state.HostView]:
    """Everything that a host can say, or not say."""
    answers = [
        end_state.HostView(state, "", status, leaving=leaving, left=left)
        for state in STATES
        for status in (None, *QemuStatus)
        for leaving in (False, True)
        for left in (False, True)
    ]
    return [*answers, end_state.HostView(silent="no route"), end_state.HostView(nowhere=True)]


def test_no_pair_of_answers_ends_a_migration_whose_memory_is_on_two_hosts() -> None:
    """Or one whose source may still have the only whole guest and says nothing."""
    for here in views():
        for there in views():
            for stopped in (MigrationState.FAILED, MigrationState.CANCELLED):
                end = end_state.conclude(here, there, stopped)
                lost = here.broken and not (there.present or there.silent or there.nowhere)
                lost = lost and there.state is not VmState.INCOMING
                sent = here.left_behind and there.status is QemuStatus.COMPLETED
                split = (here.split or there.split) and not sent and not lost
                if split or (here.silent and there.state is not VmState.RUNNING):
                    assert end.state in OPEN, (here, there)
                    assert end.why
                assert not lost or end.why.startswith("guest lost"), (here, there)
                if end.state is MigrationState.COMPLETED and not there.nowhere:
                    assert there.present, (here, there)


@pytest.mark.parametrize(
    "here",
    [
        end_state.HostView(),
        end_state.HostView(silent="no route"),
        end_state.HostView(VmState.PAUSED, "", QemuStatus.COMPLETED),
        end_state.HostView(VmState.PAUSED, "", QemuStatus.POSTCOPY_PAUSED),
    ],
)
@pytest.mark.parametrize("status", [status for status in QemuStatus if status.in_postcopy], ids=str)
def test_a_broken_postcopy_has_not_completed(here: end_state.HostView, status: QemuStatus) -> None:
    there = end_state.HostView(VmState.RUNNING, "", status)
    end = end_state.conclude(here, there, MigrationState.FAILED)
    paused = status is QemuStatus.POSTCOPY_PAUSED or (not here.present and not here.silent)
    assert (end.state is MigrationState.POSTCOPY_PAUSED) == (
        paused or bool(here.silent) or here.split
    )
    assert end.state in OPEN
    assert "shut down neither host" in end.why


HERE_RUNNING = HostView(VmState.RUNNING, status=QemuStatus.FAILED)
HERE_GONE = HostView()
THERE_RUNNING = HostView(VmState.RUNNING, status=QemuStatus.NONE)
THERE_ARRIVED = HostView(VmState.RUNNING, status=QemuStatus.COMPLETED)
SILENT = HostView(silent="no route to host")


@pytest.mark.parametrize(
    ("here", "there", "state"),
    [
        (HERE_GONE, THERE_RUNNING, MigrationState.COMPLETED),
        (HERE_GONE, HostView(), MigrationState.FAILED),
        (HERE_RUNNING, HostView(), MigrationState.CANCELLED),
        (HERE_RUNNING, THERE_RUNNING, MigrationState.UNKNOWN),
        (HERE_GONE, SILENT, MigrationState.UNKNOWN),
        (SILENT, HostView(), MigrationState.UNKNOWN),
        (SILENT, HostView(VmState.PAUSED), MigrationState.UNKNOWN),
        (SILENT, THERE_RUNNING, MigrationState.UNKNOWN),
        (SILENT, THERE_ARRIVED, MigrationState.COMPLETED),
        (HostView(VmState.RUNNING, status=QemuStatus.ACTIVE), HERE_GONE, MigrationState.UNKNOWN),
        (HostView(left=True), HostView(nowhere=True), MigrationState.COMPLETED),
        (HostView(), HostView(nowhere=True), MigrationState.UNKNOWN),
    ],
)
def test_the_end_follows_from_what_both_hosts_say(
    here: HostView, there: HostView, state: MigrationState
) -> None:
    """*stopped* is what a VM that stays on its source comes to: here, an abort was requested."""
    assert conclude(here, there, MigrationState.CANCELLED).state is state


class HeldUp(Host):
    """Its QEMU takes no command: it sends the last part over a link that is down."""

    def __init__(self) -> None:
        super().__init__((VmState.OTHER, QemuStatus.NONE))

    async def migration(self, vm: UUID) -> Snapshot:
        raise OutcomeUnknown("QEMU did not answer query-migrate within 30 s")


async def test_a_source_that_takes_no_command_still_has_the_guest() -> None:
    end = await concluded(HeldUp(), Host(ARRIVING))
    assert end.state is MigrationState.UNKNOWN
    assert "QEMU did not answer" in end.why


class Refused:
    """A handle of libvirt's, whose call has failed because its connection broke."""

    done, begun = True, True

    async def wait(self) -> None:
        raise CommandRefused("client socket is closed", code="migration_failed")


@pytest.mark.parametrize(
    ("source", "destination", "state"),
    [
        (Host((VmState.PAUSED, QemuStatus.COMPLETED)), Host(RUNS), MigrationState.COMPLETED),
        (Host((VmState.PAUSED, QemuStatus.POSTCOPY_ACTIVE)), Host(RUNS), MigrationState.UNKNOWN),
        (
            Host((VmState.PAUSED, QemuStatus.POSTCOPY_PAUSED)),
            Host((VmState.RUNNING, QemuStatus.POSTCOPY_PAUSED)),
            MigrationState.POSTCOPY_PAUSED,
        ),
        (Host(FAILED), Host(LEFT), MigrationState.FAILED),
    ],
)
async def test_a_refusal_is_not_believed_without_a_look(
    source: Host, destination: Host, state: MigrationState
) -> None:
    """libvirt says failed when it loses the other libvirt, while QEMU goes on in post-copy."""
    record = make_migration()
    asked = cast(Driver, source), cast(Driver, destination)
    end = await find_end(record, Evidence(handle=Refused()), *asked)
    assert end.state is state
    if state is not MigrationState.COMPLETED:
        assert "client socket is closed" in end.why


@pytest.mark.parametrize("evidence", [Evidence(Refused(), switched=True), Evidence(switched=True)])
async def test_a_guest_that_qemu_has_rolled_back_is_told(evidence: Evidence) -> None:
    """Its destination ended when all was sent: the source's QEMU runs what it had at the switch."""
    asked = cast(Driver, Host(FAILED)), cast(Driver, Host(LEFT))
    end = await find_end(make_migration(), evidence, *asked)
    assert end == end_state.End(MigrationState.FAILED, end_state.ROLLED_BACK)


async def test_a_guest_that_runs_twice_is_not_said_to_wait_for_its_memory() -> None:
    """Looked at again, when nobody remembers the switch: the remedy stays the same."""
    asked = (
        cast(Driver, Host(FAILED)),
        cast(Driver, Host((VmState.RUNNING, QemuStatus.POSTCOPY_PAUSED))),
    )
    end = await find_end(make_migration(), Evidence(), *asked)
    assert end == end_state.End(MigrationState.UNKNOWN, end_state.ON_BOTH_IN_PART)


def test_what_was_reported_is_told_with_what_is_seen_later() -> None:
    asked = "the source cannot be asked: no route; it was reported as failed: end of file"
    again = end_state.with_report(asked, end_state.ON_BOTH_IN_PART)
    assert again == f"{end_state.ON_BOTH_IN_PART}; it was reported as failed: end of file"
    assert end_state.with_report("no route", "they both run") == "they both run"


async def test_a_lost_guest_is_told_in_the_words_by_which_nothing_is_restored() -> None:
    source = Host((VmState.PAUSED, QemuStatus.POSTCOPY_PAUSED))
    asked = cast(Driver, source), cast(Driver, Host(LEFT))
    end = await find_end(make_migration(), Evidence(handle=Refused()), *asked)
    assert end == end_state.End(MigrationState.FAILED, end_state.GUEST_LOST)


async def test_one_that_libvirt_refused_to_begin_has_failed_whatever_another_migrates() -> None:
    """Neither host is asked: what they say is of the other's."""

    class Refused:
        done, begun = True, False

        async def wait(self) -> None:
            raise CommandRefused("another migration job is already running")

    record = make_migration(state=MigrationState.STARTING)
    source, destination = Host((VmState.RUNNING, QemuStatus.ACTIVE)), Host(ARRIVING)
    asked = cast(Driver, source), cast(Driver, destination)
    end = await find_end(record, Evidence(Refused()), *asked)
    assert end == end_state.End(MigrationState.FAILED, "another migration job is already running")
    assert source.looks == 0


async def test_a_source_that_was_busy_for_a_moment_is_no_refused_start() -> None:
    """Only the answer to the call that starts it says that nothing began."""
    busy = CommandRefused("cannot acquire state change lock", code="busy")
    active = (VmState.RUNNING, QemuStatus.ACTIVE)
    asked = cast(Driver, Host(active)), cast(Driver, Host(ARRIVING))
    end = await find_end(make_migration(), Evidence(error=busy), *asked)
    assert (end.state, end.why) == (MigrationState.UNKNOWN, "QEMU says that it is active")
    refused = await find_end(make_migration(), Evidence(error=busy, refused=busy), *asked)
    assert (refused.state, refused.why) == (MigrationState.FAILED, str(busy))


@pytest.mark.parametrize("begun", [True, False])
async def test_what_corrects_a_refusal_is_told_with_it(begun: bool) -> None:
    class Refused:
        done = True

        def __init__(self) -> None:
            self.begun = begun

        async def wait(self) -> None:
            raise CommandRefused("b is not reached", remedy="open its port")

    asked = cast(Driver, Host(FAILED)), cast(Driver, Host(LEFT))
    end = await find_end(make_migration(), Evidence(Refused()), *asked)
    assert end == end_state.End(MigrationState.FAILED, "b is not reached: open its port")


CANCELLED: Said = (VmState.RUNNING, QemuStatus.CANCELLED)


class Aborted:
    """Ended by another client's abort."""

    done, begun = True, True

    async def wait(self) -> None:
        raise CommandRefused("canceled by client", code=MIGRATION_CANCELLED)


class Reported:
    """Reported as failed, by a libvirt that has lost the other one and cancels QEMU's migration."""

    done, begun = True, True

    async def wait(self) -> None:
        raise CommandRefused("Lost connection to destination host")


@pytest.mark.parametrize(
    ("evidence", "state", "why"),
    [
        (Evidence(Aborted()), MigrationState.CANCELLED, "canceled by client"),
        (Evidence(Reported()), MigrationState.FAILED, "Lost connection"),
        (Evidence(), MigrationState.CANCELLED, ""),
        (Evidence(interrupted=True), MigrationState.FAILED, "started again"),
    ],
)
async def test_what_cancelled_means(evidence: Evidence, state: MigrationState, why: str) -> None:
    """QEMU says cancelled of an operator's abort, and of libvirt's own: after a failure, or when it
    is started again."""
    record = make_migration()
    asked = cast(Driver, Host(CANCELLED)), cast(Driver, Host(LEFT))
    end = await find_end(record, evidence, *asked)
    assert end.state is state
    assert why in end.why


@pytest.mark.parametrize("abort", [AbortState.NONE, AbortState.REQUESTED])
async def test_a_guest_that_is_on_no_host_is_told_whatever_its_starter_says(
    abort: AbortState,
) -> None:
    """Its libvirt is killed at the switch to post-copy, and ends it when it is started again."""
    record = make_migration(abort=abort, state=MigrationState.ACTIVE)
    asked = cast(Driver, Host(LEFT)), cast(Driver, Host(LEFT))
    end = await find_end(record, Evidence(handle=Refused()), *asked)
    assert end.state is MigrationState.FAILED
    assert end.why.startswith("the VM runs on neither host; it was reported as failed: ")


def test_a_guest_on_both_hosts_is_said_to_be() -> None:
    """QEMU does that when another client cancels at the switchover, without libvirt."""
    here = HostView(VmState.RUNNING, status=QemuStatus.CANCELLED)
    there = HostView(VmState.RUNNING, status=QemuStatus.NONE)
    end = conclude(here, there, MigrationState.CANCELLED)
    assert end == end_state.End(MigrationState.UNKNOWN, end_state.RUNS_TWICE)
    moving = HostView(VmState.RUNNING, status=QemuStatus.ACTIVE)
    assert conclude(moving, there, MigrationState.FAILED).why != end_state.RUNS_TWICE
