"""How VMs stand, noted by what ends and by what is verified."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from tests.contract.store.conftest import Clock
from vmtune.model.plan.outcome import Application, ApplicationState, Outcome, Status
from vmtune.model.plan.tuning_state import Tuning, TuningState
from vmtune.storage import Store

VM = UUID("00000000-0000-4000-8000-00000000000a")
GOOD = (Outcome("downtime_limit_ms", Status.EFFECTIVE, 700, 700),)
BAD = (Outcome("downtime_limit_ms", Status.OVERWRITTEN, 700, 5),)
_S = ApplicationState


def apply(
    store: Store, profile: str = "tuned", state: _S = _S.APPLIED, outcomes: Sequence[Outcome] = GOOD
) -> Application:
    begun = store.applications.begin(VM, "a", profile, 3, {"downtime_limit_ms": 700}, True, [])
    return store.applications.finish(begun.id, state, outcomes)


def state(store: Store) -> TuningState | None:
    found = store.tunings.get(VM)
    return found.state if found else None


def test_what_was_applied_stands_as_it_was_read_back(store: Store) -> None:
    assert store.tunings.get(VM) is None
    done = apply(store, outcomes=BAD)
    assert done.ended_at is not None
    expected = Tuning(
        VM, TuningState.DRIFTED, "tuned", 3, done.id, ("downtime_limit_ms",), done.ended_at,
        since=done.ended_at,
    )  # fmt: skip
    assert store.tunings.get(VM) == expected
    assert store.tunings.all() == {VM: expected}
    assert store.tunings.of([VM, *(UUID(int=n) for n in range(1200))]) == {VM: expected}
    assert store.tunings.of([]) == {}


def test_a_verification_is_noted_with_its_time(store: Store, clock: Clock) -> None:
    done = apply(store)
    clock()
    assert store.tunings.note(VM, "tuned", 3, done.id, BAD)
    noted = store.tunings.get(VM)
    assert noted is not None
    assert done.ended_at is not None
    assert (noted.state, noted.differing) == (TuningState.DRIFTED, ("downtime_limit_ms",))
    assert noted.as_of > done.ended_at
    assert not store.tunings.note(VM, "tuned", 3, done.id, BAD), "it stands as before"
    again = store.tunings.get(VM)
    assert again is not None
    assert again.as_of > noted.as_of
    assert again.since == noted.since == noted.as_of, "since when it stands so"


def test_a_verification_of_what_stands_no_more_is_left_out(store: Store) -> None:
    old, new = apply(store), apply(store)
    assert not store.tunings.note(VM, "tuned", 3, old.id, BAD)
    assert not store.tunings.note(VM, "tuned", 3, None, BAD)
    found = store.tunings.get(VM)
    assert found is not None
    assert (found.application, found.state) == (new.id, TuningState.TUNED)


@pytest.mark.parametrize("end", [_S.FAILED, _S.REVERTED])
def test_what_was_put_back_leaves_what_stood_before(store: Store, end: _S) -> None:
    first = apply(store)
    if end is _S.FAILED:
        apply(store, "other", _S.FAILED, BAD)
    else:
        second = apply(store, "other", outcomes=BAD)
        assert state(store) is TuningState.DRIFTED
        store.applications.begin_revert(second.id)
        store.applications.finish(second.id, _S.REVERTED, BAD)
    found = store.tunings.get(VM)
    assert found is not None
    assert (found.application, found.state) == (first.id, TuningState.TUNED)


def test_nothing_is_left_once_all_was_reverted(store: Store) -> None:
    only = apply(store)
    store.applications.begin_revert(only.id)
    assert state(store) is TuningState.TUNED
    store.applications.finish(only.id, _S.REVERTED, BAD)
    assert store.tunings.all() == {}


def test_a_revert_that_was_refused_changes_nothing(store: Store) -> None:
    only = apply(store)
    store.tunings.note(VM, "tuned", 3, only.id, BAD)
    store.applications.begin_revert(only.id)
    store.applications.finish(only.id, _S.APPLIED, GOOD)
    assert state(store) is TuningState.DRIFTED


def test_what_ended_as_unknown_is_unknown_until_it_is_settled(store: Store) -> None:
    lost = apply(store, state=_S.UNKNOWN)
    assert state(store) is TuningState.UNKNOWN
    store.applications.finish(lost.id, _S.APPLIED, GOOD)
    assert state(store) is TuningState.TUNED


def test_an_assigned_profile_alone_can_be_forgotten(store: Store) -> None:
    assert not store.tunings.forget(VM)
    assert store.tunings.note(VM, "assigned", 1, None, BAD)
    assert state(store) is TuningState.UNTUNED
    assert store.tunings.forget(VM)
    apply(store)
    assert not store.tunings.forget(VM), "something stands on it"
    assert state(store) is TuningState.TUNED
