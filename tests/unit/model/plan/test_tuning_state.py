"""One word for a VM, from what became of each of its tunables."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vmtune.model.plan.outcome import Outcome, Status
from vmtune.model.plan.tuning_state import TuningState, differing, tuning_state

_S, _T = Status, TuningState
statuses = st.lists(st.sampled_from(Status), max_size=8)


def outcomes(found: list[Status]) -> list[Outcome]:
    return [Outcome(f"t{place}", status, 1) for place, status in enumerate(found)]


def test_each_status_alone() -> None:
    assert {s: tuning_state(outcomes([s]), True) for s in Status} == {
        _S.EFFECTIVE: _T.TUNED,
        _S.PENDING_MIGRATION: _T.TUNED,
        _S.PENDING_RESTART: _T.PENDING_RESTART,
        _S.OVERWRITTEN: _T.DRIFTED,
        _S.NOT_APPLIED: _T.DRIFTED,
        _S.REJECTED: _T.DRIFTED,
        _S.REVERTED: _T.DRIFTED,
        _S.UNKNOWN: _T.UNKNOWN,
    }


_WORST_FIRST = (_T.DRIFTED, _T.UNKNOWN, _T.PENDING_RESTART, _T.TUNED)


@given(statuses)
def test_the_worst_counts_and_is_named(found: list[Status]) -> None:
    alone = {tuning_state(outcomes([status]), True) for status in found}
    worst = next((state for state in _WORST_FIRST if state in alone), _T.TUNED)
    assert tuning_state(outcomes(found), True) is worst
    assert bool(differing(outcomes(found))) is (worst is not _T.TUNED)


@given(statuses)
def test_nothing_drifts_that_was_never_applied(found: list[Status]) -> None:
    applied, assigned = (tuning_state(outcomes(found), on) for on in (True, False))
    assert assigned is (_T.UNTUNED if applied is _T.DRIFTED else applied)
