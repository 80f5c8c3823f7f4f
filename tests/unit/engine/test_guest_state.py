"""Every pair of what two hosts can say of a migrating guest."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.engine.end_state import NEITHER, ON_BOTH, ON_BOTH_IN_PART, ROLLED_BACK, conclude
from vmtune.engine.guest_state import TABLE, Guest, HostView, Part, guest_state, part_of
from vmtune.model.host.facts import Postcopy, VmState
from vmtune.model.migration.record import MigrationState, QemuStatus

answers = st.builds(
    HostView,
    state=st.none() | st.sampled_from(VmState),
    status=st.none() | st.sampled_from(QemuStatus),
    reason=st.sampled_from(Postcopy),
    leaving=st.booleans(),
    left=st.booleans(),
    switched=st.booleans(),
)
said = answers | st.just(HostView(silent="no route to host"))
destinations = said | st.just(HostView(nowhere=True))
stops = st.sampled_from([MigrationState.FAILED, MigrationState.CANCELLED])


def test_every_pair_of_parts_is_written_down() -> None:
    sources = set(Part)
    columns = set(Part) - {Part.MOVING, Part.SENT, Part.OLD}
    assert set(TABLE) == set(itertools.product(sources, columns))


@given(said, destinations, stops)
def test_no_end_is_said_while_memory_is_split(
    here: HostView, there: HostView, stopped: MigrationState
) -> None:
    end = conclude(here, there, stopped)
    ended = end.state.ended and end.state is not MigrationState.UNKNOWN
    if not ended:
        assert end.why
        return
    gone = here.broken and part_of(there, source=False) is Part.NONE
    assert gone or not here.split, "it needs the destination"
    sent = here.left_behind and there.state is VmState.RUNNING
    assert sent or not there.split, "it needs the source"
    in_qemus_word = there.status is not None and there.status.in_postcopy and there.present
    assert not in_qemus_word, "QEMU there says itself that it waits for memory"


@given(said, destinations, stops)
def test_a_silent_host_ends_nothing_that_the_other_does_not_prove(
    here: HostView, there: HostView, stopped: MigrationState
) -> None:
    end = conclude(here, there, stopped)
    if here.silent and end.state.ended and end.state is not MigrationState.UNKNOWN:
        assert end.state is MigrationState.COMPLETED
        assert (there.state, there.status) == (VmState.RUNNING, QemuStatus.COMPLETED)
    if there.silent and end.state.ended and end.state is not MigrationState.UNKNOWN:
        assert end.state is not MigrationState.COMPLETED
        assert part_of(here, source=True) is Part.WHOLE, "QEMU there is not to run beside it"


@given(said, destinations)
def test_completed_is_only_what_runs_or_stands_whole_on_the_destination(
    here: HostView, there: HostView
) -> None:
    if guest_state(here, there) is Guest.THERE:
        assert there.present
        assert not here.present or here.left_behind


@pytest.mark.parametrize(
    ("here", "there", "guest"),
    [
        # libvirt, after a link that was cut: QEMU has finished by itself
        (
            HostView(VmState.PAUSED, status=QemuStatus.COMPLETED, reason=Postcopy.FAILED),
            HostView(VmState.RUNNING, status=QemuStatus.NONE, reason=Postcopy.FAILED),
            Guest.THERE,
        ),
        # while libvirt lets nobody ask the destination's QEMU
        (
            HostView(silent="no route"),
            HostView(VmState.RUNNING, status=QemuStatus.NONE, reason=Postcopy.ACTIVE),
            Guest.BROKEN,
        ),
        (
            HostView(VmState.PAUSED, status=QemuStatus.POSTCOPY_PAUSED, reason=Postcopy.FAILED),
            HostView(VmState.SHUT_OFF),
            Guest.LOST,
        ),
        (HostView(), HostView(VmState.RUNNING, status=QemuStatus.POSTCOPY_PAUSED), Guest.BROKEN),
        # the destination's QEMU ended when all was sent, and before it had confirmed that
        (
            HostView(VmState.RUNNING, status=QemuStatus.FAILED, reason=Postcopy.ACTIVE),
            HostView(VmState.SHUT_OFF),
            Guest.ROLLED_BACK,
        ),
        # as QEMU 11 says it: the devices are on their way; it has failed, and cleans up
        (
            HostView(VmState.PAUSED, status=QemuStatus.POSTCOPY_DEVICE),
            HostView(VmState.INCOMING, status=QemuStatus.POSTCOPY_DEVICE),
            Guest.SPLIT,
        ),
        (
            HostView(VmState.PAUSED, status=QemuStatus.POSTCOPY_DEVICE, reason=Postcopy.ACTIVE),
            HostView(VmState.SHUT_OFF),
            Guest.OPEN,
        ),
        (
            HostView(VmState.RUNNING, status=QemuStatus.FAILING),
            HostView(VmState.INCOMING, status=QemuStatus.FAILING),
            Guest.OPEN,
        ),
        (
            HostView(VmState.RUNNING, status=QemuStatus.FAILING, switched=True),
            HostView(),
            Guest.OPEN,
        ),
        (  # the same without libvirt
            HostView(VmState.RUNNING, status=QemuStatus.FAILED, switched=True),
            HostView(),
            Guest.ROLLED_BACK,
        ),
    ],
)
def test_what_was_seen_of_broken_post_copy(here: HostView, there: HostView, guest: Guest) -> None:
    assert guest_state(here, there) is guest


@given(said, destinations, stops)
def test_a_guest_that_was_rolled_back_is_never_said_to_have_just_stayed(
    here: HostView, there: HostView, stopped: MigrationState
) -> None:
    end = conclude(here, there, stopped)
    if not here.rolled_back:
        return
    assert end.state is not MigrationState.CANCELLED
    if end.state is MigrationState.FAILED:
        assert end.why == ROLLED_BACK
        assert not there.present, "it would run on both"
    elif there.present:
        assert end.why == (ON_BOTH_IN_PART if there.split else ON_BOTH)


@given(destinations, stops)
def test_a_destination_that_lacks_memory_proves_the_switch_that_nobody_saw(
    there: HostView, stopped: MigrationState
) -> None:
    """The connection broke when all was sent: QEMU 10.0.2 resumes the source beside it."""
    here = HostView(VmState.RUNNING, status=QemuStatus.FAILED)
    if there.split:
        end = conclude(here, there, stopped)
        assert (end.state, end.why) == (MigrationState.UNKNOWN, ON_BOTH_IN_PART)
        assert NEITHER not in end.why, "their disks are the same"
