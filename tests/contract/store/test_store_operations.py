from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.contract.store.conftest import Clock
from vmtune.bench.model.runs.run import RunState
from vmtune.errors import (
    Conflict,
    DuplicateName,
    NotFound,
    OperationInProgress,
    Problem,
    TooLate,
)
from vmtune.model.host.inventory import Host
from vmtune.model.migration.open_migration import OpenMigration
from vmtune.model.migration.postcopy_figures import PostcopyFigures
from vmtune.model.migration.record import AbortState, Migration, MigrationState, Totals, Trigger
from vmtune.model.plan.changes import Change
from vmtune.model.plan.outcome import Application, ApplicationState, Outcome, Status
from vmtune.storage import Store
from vmtune.storage.repositories.applications import TRANSITIONS as APPLICATION_TRANSITIONS
from vmtune.storage.repositories.migrations import TRANSITIONS as MIGRATION_TRANSITIONS
from vmtune.storage.repositories.since import Since

VM = UUID("00000000-0000-4000-8000-00000000000a")
OTHER = UUID("00000000-0000-4000-8000-00000000000b")
JOURNAL = (Change("multifd", False), Change("iothread_poll_max_ns", 0, "iothread1"))
OUTCOMES = (
    Outcome("multifd", Status.EFFECTIVE, True, True),
    Outcome("multifd_channels", Status.OVERWRITTEN, 8, 2, "overwritten by libvirt"),
    Outcome("tls", Status.UNKNOWN, "x", None, "it cannot be read"),
)
PROBLEMS = (Problem("multifd", "command_refused", "QEMU says: \0 no", "wait"),)


def apply(store: Store, vm: UUID = VM, host: str = "a") -> Application:
    return store.applications.begin(vm, host, "tuned", 3, {"multifd": True}, True, JOURNAL)


def migrate(store: Store, vm: UUID = VM, source: str = "a") -> Migration:
    return store.migrations.begin(vm=vm, vm_name="guest", source=source, destination="z")


def test_an_application_comes_back_at_every_stage(store: Store) -> None:
    begun = apply(store)
    assert begun == store.applications.get(begun.id)
    assert begun == Application(
        begun.id, VM, "a", "tuned", 3, {"multifd": True}, ApplicationState.INTENDED, True,
        JOURNAL, (), (), begun.created_at,
    )  # fmt: skip
    ended = store.applications.finish(begun.id, ApplicationState.APPLIED, OUTCOMES, PROBLEMS)
    assert ended == store.applications.get(begun.id)
    assert ended.ended_at is not None
    assert ended == replace(
        begun,
        state=ApplicationState.APPLIED,
        outcomes=OUTCOMES,
        problems=PROBLEMS,
        ended_at=ended.ended_at,
    )


def test_finishing_twice_is_finishing_once(store: Store) -> None:
    begun = apply(store)
    ended = store.applications.finish(begun.id, ApplicationState.APPLIED, OUTCOMES)
    assert store.applications.finish(begun.id, ApplicationState.APPLIED) == ended


def test_a_revert_reopens_and_ends(store: Store) -> None:
    begun = apply(store)
    with pytest.raises(Conflict, match="is intended and cannot become reverting"):
        store.applications.begin_revert(begun.id)
    store.applications.finish(begun.id, ApplicationState.APPLIED, OUTCOMES)
    reverting = store.applications.begin_revert(begun.id)
    assert (reverting.state, reverting.ended_at) == (ApplicationState.REVERTING, None)
    assert store.applications.open() == (reverting,)
    with pytest.raises(Conflict, match="is reverting and cannot become reverting"):
        store.applications.begin_revert(begun.id)
    with pytest.raises(OperationInProgress, match=str(begun.id)):
        migrate(store)
    reverted = store.applications.finish(begun.id, ApplicationState.REVERTED)
    assert reverted.outcomes == OUTCOMES
    with pytest.raises(Conflict, match="is reverted and cannot become reverting"):
        store.applications.begin_revert(begun.id)
    migrate(store)


def test_a_revert_waits_for_the_vm(store: Store) -> None:
    begun = apply(store)
    store.applications.finish(begun.id, ApplicationState.APPLIED)
    holder = migrate(store)
    with pytest.raises(OperationInProgress, match=f"migration {holder.id}"):
        store.applications.begin_revert(begun.id)
    assert store.applications.get(begun.id).state is ApplicationState.APPLIED


def _application_in(store: Store, state: ApplicationState) -> Application:
    begun = apply(store, uuid4())
    if state is ApplicationState.INTENDED:
        return begun
    if state in (ApplicationState.REVERTING, ApplicationState.REVERTED):
        store.applications.finish(begun.id, ApplicationState.APPLIED)
        reverting = store.applications.begin_revert(begun.id)
        if state is ApplicationState.REVERTING:
            return reverting
    return store.applications.finish(begun.id, state)


def test_only_the_listed_ends_of_an_application_are_accepted(store: Store) -> None:
    for before, after in itertools.product(ApplicationState, ApplicationState):
        begun = _application_in(store, before)
        allowed = after in APPLICATION_TRANSITIONS[before] or after is before
        if allowed and not after.open:
            assert store.applications.finish(begun.id, after).state is after
        else:
            with pytest.raises(Conflict) as caught:
                store.applications.finish(begun.id, after)
            assert caught.value.problems[0].code == "illegal_transition"
            assert store.applications.get(begun.id) == begun


def test_the_standing_application_is_the_newest_applied_one(store: Store) -> None:
    assert store.applications.standing(VM) is None
    ended = []
    for state in (ApplicationState.APPLIED, ApplicationState.APPLIED, ApplicationState.FAILED):
        ended.append(store.applications.finish(apply(store).id, state))
    store.applications.finish(apply(store, OTHER).id, ApplicationState.APPLIED)
    assert store.applications.standing(VM) == ended[1]
    store.applications.begin_revert(ended[1].id)
    store.applications.finish(ended[1].id, ApplicationState.REVERTED)
    assert store.applications.standing(VM) == ended[0]


def test_applications_are_listed_newest_first_and_filtered(store: Store, clock: Clock) -> None:
    one = apply(store, VM, "a")
    clock.time = clock.time.replace(year=2020)  # the order is not the clock's
    two = apply(store, OTHER, "b")
    two = store.applications.finish(two.id, ApplicationState.FAILED)
    assert store.applications.list().items == (two, one)
    assert store.applications.list(vm=VM).items == (one,)
    assert store.applications.list(host="b").items == (two,)
    assert store.applications.list(state=ApplicationState.INTENDED).items == (one,)
    assert store.applications.open() == (one,)
    first = store.applications.list(limit=1)
    assert first.items == (two,)
    assert store.applications.list(after=first.next, limit=1).items == (one,)


def test_a_migration_comes_back_at_every_stage(store: Store, clock: Clock) -> None:
    given = uuid4()
    begun = store.migrations.begin(
        id=given, vm=VM, vm_name="guest", source="a", destination="b", trigger=Trigger.OBSERVED,
        profile="tuned", revision=3, wanted={"multifd": True}, overrides=("optmem_low",),
        state=MigrationState.STARTING, journal=JOURNAL, started_at=clock(),
    )  # fmt: skip
    assert begun == store.migrations.get(given)
    assert begun == Migration(
        given, VM, "guest", "a", "b", Trigger.OBSERVED, "tuned", 3, {"multifd": True},
        ("optmem_low",), MigrationState.STARTING, begun.created_at, journal=JOURNAL,
        started_at=begun.started_at,
    )  # fmt: skip
    assert begun.started_at is not None
    active = store.migrations.update(given, state=MigrationState.ACTIVE, active_at=clock())
    assert active == replace(begun, state=MigrationState.ACTIVE, active_at=active.active_at)
    totals = Totals(2000, 30, None, 1 << 40, 5)
    ended = store.migrations.update(
        given, state=MigrationState.COMPLETED, outcomes=OUTCOMES, totals=totals, journal=(),
        failure="none\0\ud800", problems=PROBLEMS, abort=AbortState.TOO_LATE,
    )  # fmt: skip
    assert ended == store.migrations.get(given)
    assert ended == replace(
        active, state=MigrationState.COMPLETED, outcomes=OUTCOMES, totals=totals, journal=(),
        failure="none??", problems=PROBLEMS, abort=AbortState.TOO_LATE, ended_at=ended.ended_at,
    )  # fmt: skip
    assert ended.ended_at is not None


@pytest.mark.parametrize(
    "figures",
    [
        PostcopyFigures(120, (80, 120), 95_000, (0, 0, 7, 900, 3), (90_000, 100_000)),
        PostcopyFigures(0),  # of a QEMU before 10.1, whose guest waited for nothing
    ],
)
def test_how_long_a_guest_waited_in_postcopy_comes_back(
    store: Store, figures: PostcopyFigures
) -> None:
    begun = migrate(store)
    assert begun.postcopy is None
    store.migrations.update(begun.id, state=MigrationState.PREPARING)
    store.migrations.update(begun.id, state=MigrationState.STARTING)
    ended = store.migrations.update(
        begun.id,
        state=MigrationState.COMPLETED,
        totals=Totals(2000, 30, None, 1 << 20, 2),
        postcopy=figures,
    )
    assert ended.postcopy == figures
    assert store.migrations.get(begun.id) == ended
    (listed,) = store.migrations.list(limit=1).items
    assert listed.postcopy == figures


def test_an_end_that_is_recorded_again_keeps_its_time(store: Store, clock: Clock) -> None:
    begun = migrate(store)
    at = clock()
    ended = store.migrations.update(begun.id, state=MigrationState.FAILED, ended_at=at)
    assert ended.ended_at == at
    assert store.migrations.update(begun.id, state=MigrationState.FAILED) == ended


def test_an_id_is_used_once(store: Store) -> None:
    begun = migrate(store)
    store.migrations.update(begun.id, state=MigrationState.FAILED)
    with pytest.raises(DuplicateName, match=str(begun.id)):
        store.migrations.begin(id=begun.id, vm=OTHER, vm_name="x", source="a", destination="b")


_PATH = {
    MigrationState.QUEUED: (),
    MigrationState.PREPARING: (MigrationState.PREPARING,),
    MigrationState.STARTING: (MigrationState.PREPARING, MigrationState.STARTING),
    MigrationState.ACTIVE: (
        MigrationState.PREPARING, MigrationState.STARTING, MigrationState.ACTIVE),
    MigrationState.POSTCOPY_PAUSED: (
        MigrationState.PREPARING, MigrationState.STARTING, MigrationState.POSTCOPY_PAUSED),
    MigrationState.COMPLETED: (
        MigrationState.PREPARING, MigrationState.STARTING, MigrationState.COMPLETED),
    MigrationState.FAILED: (MigrationState.FAILED,),
    MigrationState.CANCELLED: (MigrationState.CANCELLED,),
    MigrationState.UNKNOWN: (MigrationState.UNKNOWN,),
}  # fmt: skip


def test_only_the_listed_transitions_of_a_migration_are_accepted(store: Store) -> None:
    for before, after in itertools.product(MigrationState, MigrationState):
        begun = migrate(store, uuid4())
        for state in _PATH[before]:
            begun = store.migrations.update(begun.id, state=state)
        if after in MIGRATION_TRANSITIONS[before] or after is before:
            assert store.migrations.update(begun.id, state=after).state is after
        else:
            with pytest.raises(Conflict) as caught:
                store.migrations.update(begun.id, state=after, failure="not written")
            assert caught.value.problems[0].code == "illegal_transition"
            assert store.migrations.get(begun.id) == begun


def test_success_needs_a_start(store: Store) -> None:
    for state in (MigrationState.QUEUED, MigrationState.PREPARING):
        assert MigrationState.COMPLETED not in MIGRATION_TRANSITIONS[state]


def test_one_operation_has_a_vm_at_a_time(store: Store) -> None:
    first = apply(store)
    with pytest.raises(OperationInProgress, match=f"application {first.id}"):
        apply(store)
    with pytest.raises(OperationInProgress, match=f"application {first.id}"):
        migrate(store)
    apply(store, OTHER)
    store.applications.finish(first.id, ApplicationState.UNKNOWN)
    second = migrate(store)
    with pytest.raises(OperationInProgress, match=f"migration {second.id}") as caught:
        migrate(store)
    assert caught.value.problems[0].field == "vm"
    # Settling the older one does not take the VM from the newer.
    store.applications.finish(first.id, ApplicationState.APPLIED)
    with pytest.raises(OperationInProgress, match=f"migration {second.id}"):
        apply(store)
    assert len(store.applications.list().items) == 2
    assert len(store.migrations.list().items) == 1


def test_a_benchmark_has_its_vm_from_its_order_to_its_end(store: Store) -> None:
    setup = {"kind": "block", "target": {"vm": str(VM)}}
    given: dict[str, Any] = {"scenario": "block/x", "setup": setup, "values": {}}
    given["options"] = {"vm_host": "rack1"}
    first = store.runs.begin(**given)
    assert (store.runs.have(VM), store.runs.have(OTHER)) == (True, False)
    for take in (lambda: apply(store), lambda: migrate(store), lambda: store.runs.begin(**given)):
        with pytest.raises(OperationInProgress, match=f"benchmark {first.id}") as caught:
            take()
        assert "cancel it" in caught.value.problems[0].remedy
    assert [run.id for run in store.runs.list().items] == [first.id]
    store.hosts.add(Host("rack1", "qemu:///system", "", "", datetime.now(UTC)))
    with pytest.raises(Conflict, match=f"benchmark {first.id} is open"):
        store.hosts.remove("rack1")
    store.runs.finish(first.id, RunState.CANCELLED)
    assert not store.runs.have(VM)
    store.hosts.remove("rack1")
    second = apply(store)
    with pytest.raises(OperationInProgress, match=f"application {second.id}"):
        store.runs.begin(**given)


def test_who_has_a_vm_outlives_a_restart(url: str) -> None:
    with Store.open(url) as before:
        first = migrate(before)
    with Store.open(url) as after:
        with pytest.raises(OperationInProgress, match=str(first.id)):
            apply(after)
        assert [found.id for found in after.migrations.unfinished()] == [first.id]
        after.migrations.update(first.id, state=MigrationState.UNKNOWN)
        assert after.migrations.unfinished() == ()
        assert [found.id for found in after.migrations.unsettled()] == [first.id]
        apply(after)
        settled = after.migrations.update(first.id, state=MigrationState.FAILED)
        assert settled.state is MigrationState.FAILED
        with pytest.raises(OperationInProgress):
            apply(after)


def test_abort_is_requested_once_and_in_time(store: Store) -> None:
    begun = migrate(store)
    asked = store.migrations.request_abort(begun.id)
    assert asked.abort is AbortState.REQUESTED
    assert store.migrations.request_abort(begun.id) == asked
    store.migrations.update(begun.id, abort=AbortState.TOO_LATE)
    with pytest.raises(TooLate, match="has switched over"):
        store.migrations.request_abort(begun.id)
    other = migrate(store, OTHER)
    store.migrations.update(other.id, state=MigrationState.FAILED)
    with pytest.raises(TooLate, match="it is failed"):
        store.migrations.request_abort(other.id)


@pytest.mark.parametrize(
    ("end", "answer"),
    [
        (MigrationState.CANCELLED, AbortState.ABORTED),
        (MigrationState.FAILED, AbortState.TOO_LATE),
        (MigrationState.UNKNOWN, AbortState.REQUESTED),
    ],
)
def test_the_end_answers_an_abort_that_was_asked_for(
    store: Store, end: MigrationState, answer: AbortState
) -> None:
    """Also where whoever writes the end knew nothing of it."""
    begun = migrate(store)
    store.migrations.update(begun.id, state=MigrationState.PREPARING)
    store.migrations.update(begun.id, state=MigrationState.STARTING)
    store.migrations.request_abort(begun.id)
    assert store.migrations.update(begun.id, state=end).abort is answer


def test_migrations_are_listed_newest_first_and_filtered(store: Store) -> None:
    one = migrate(store, VM, "a")
    two = store.migrations.begin(
        vm=OTHER, vm_name="o", source="b", destination="a", profile="tuned", revision=1
    )
    two = store.migrations.update(two.id, state=MigrationState.PREPARING)
    assert store.migrations.list().items == (two, one)
    assert store.migrations.list(vm=VM).items == (one,)
    assert store.migrations.list(host="a").items == (two, one)
    assert store.migrations.list(host="b").items == (two,)
    assert store.migrations.list(host="z").items == (one,)
    assert store.migrations.list(profile="tuned").items == (two,)
    assert store.migrations.list(state=MigrationState.QUEUED).items == (one,)
    first = store.migrations.list(limit=1)
    assert (first.items, store.migrations.list(after=first.next).items) == ((two,), (one,))
    counts = store.migrations.counts()
    assert counts[MigrationState.QUEUED] == counts[MigrationState.PREPARING] == 1
    assert counts[MigrationState.FAILED] == 0


def test_what_is_not_there_is_not_found(store: Store) -> None:
    id = uuid4()
    calls = (
        lambda: store.applications.get(id),
        lambda: store.applications.finish(id, ApplicationState.APPLIED),
        lambda: store.applications.begin_revert(id),
        lambda: store.migrations.get(id),
        lambda: store.migrations.update(id, failure="x"),
        lambda: store.migrations.request_abort(id),
        lambda: store.migrations.add_samples(id, ()),
        lambda: store.migrations.samples(id),
        lambda: store.migrations.sample_count(id),
    )
    for call in calls:
        with pytest.raises(NotFound, match=str(id)):
            call()


def test_of_vms_the_open_migrations_and_their_states_are_found(store: Store) -> None:
    paused = store.migrations.begin(vm=VM, vm_name="web1", source="a", destination="b")
    store.migrations.update(paused.id, state=MigrationState.PREPARING)
    store.migrations.update(paused.id, state=MigrationState.STARTING)
    store.migrations.update(paused.id, state=MigrationState.POSTCOPY_PAUSED)
    store.migrations.begin(vm=OTHER, vm_name="web2", source="a", destination="b")
    expected = OpenMigration(paused.id, MigrationState.POSTCOPY_PAUSED)
    assert store.migrations.open_of([VM, uuid4()]) == {VM: expected}
    store.migrations.update(paused.id, state=MigrationState.COMPLETED)
    assert store.migrations.open_of([VM]) == {}


def test_what_has_happened_to_a_vm_since_a_migration_is_found(store: Store) -> None:
    before = apply(store)
    store.applications.finish(before.id, ApplicationState.APPLIED)
    old = migrate(store)
    assert store.migrations.since(old) == Since(True, None, frozenset())
    store.migrations.update(old.id, state=MigrationState.UNKNOWN)
    assert store.migrations.since(old) == Since(False, None, frozenset())
    for name, state in (("tls", ApplicationState.FAILED), ("xbzrle", ApplicationState.UNKNOWN)):
        begun = store.applications.begin(VM, "a", "tuned", 3, {name: True}, True, JOURNAL)
        store.applications.finish(begun.id, state)
    applied = apply(store)
    wanted = frozenset({"xbzrle"})
    assert store.migrations.since(old) == Since(True, None, wanted)
    store.applications.finish(applied.id, ApplicationState.APPLIED)
    assert store.migrations.since(old) == Since(False, None, wanted | {"multifd"})
    newer = migrate(store)
    assert store.migrations.since(old).migration == newer.id
    assert store.migrations.since(newer) == Since(True, None, frozenset())
