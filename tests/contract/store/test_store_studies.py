"""Studies in both databases."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.tune.kept import NEXT, StudyState
from vmtune.errors import Conflict, NotFound
from vmtune.model.host.inventory import EventTopic
from vmtune.storage import Store
from vmtune.storage.repositories.audit_log import AuditFilter

S = StudyState
ORDER = {"name": "mine", "space": {"multifd_channels": [1, 8]}}


def test_a_study_is_kept_as_it_was_ordered(store: Store) -> None:
    made = store.studies.begin("mine", ORDER, "here")
    assert (made.state, made.host, made.spec, made.breaches) == (S.QUEUED, "here", ORDER, ())
    assert (made.finalists, made.campaign, made.result, made.started_at) == (None,) * 4
    assert store.studies.get(made.id) == made
    assert store.studies.named("mine") == store.studies.named(str(made.id)) == made
    again = store.studies.begin("mine", ORDER, "here")
    assert store.studies.named("mine") == again
    for unknown in ("other", str(uuid4())):
        with pytest.raises(NotFound, match="no study"):
            store.studies.named(unknown)


@pytest.mark.parametrize("first", S)
@pytest.mark.parametrize("then", S)
def test_a_state_follows_only_where_it_may(store: Store, first: S, then: S) -> None:
    made = store.studies.begin("mine", ORDER, "here")
    if first is not S.QUEUED:
        store.studies.enter(made.id, first, "why\0")
    if then in NEXT[first]:
        after = store.studies.enter(made.id, then, result={"found": then.ended})
        assert (after.state, after.reason, after.result) == (then, "", {"found": then.ended})
        assert (after.ended_at is not None) == then.ended
    else:
        with pytest.raises(Conflict, match="cannot become"):
            store.studies.enter(made.id, then)
        assert store.studies.get(made.id).state is first


def test_trials_breaches_and_the_confirmation_are_kept(store: Store) -> None:
    id = store.studies.begin("mine", ORDER, "here").id
    other = store.studies.begin("other", ORDER, "here").id
    first, second = ({"limit": "cpu_percent", "value": 9.5}, {"limit": "hours", "value": 1.0})
    store.studies.keep_trial(id, 2, {"number": 2, "runs": []})
    kept = store.studies.keep_trial(id, 1, {"number": 1, "runs": ["a"]}, (first, second))
    assert kept.breaches == (first, second)
    kept = store.studies.keep_trial(id, 2, {"number": 2, "runs": ["b"]}, (first,))
    assert kept.breaches == (first, second, first)
    assert [each["runs"] for each in store.studies.trials(id)] == [["a"], ["b"]]
    assert store.studies.trials(other) == ()
    campaign = uuid4()
    after = store.studies.confirm(id, campaign, [2])
    assert (after.campaign, after.finalists) == (campaign, (2,))
    assert store.studies.get(id) == after


def test_when_the_search_began_is_kept_through_a_pause(store: Store) -> None:
    id = store.studies.begin("mine", ORDER, "here").id
    began = store.studies.enter(id, S.SEARCHING).started_at
    assert began is not None
    for state in (S.PAUSED, S.QUEUED, S.SEARCHING):
        assert store.studies.enter(id, state).started_at == began


def test_lists_are_paged_and_filtered(store: Store) -> None:
    made = [store.studies.begin(n, ORDER, "h") for n in ("a", "b", "a")]
    store.studies.enter(made[0].id, S.FAILED)
    first = store.studies.list(limit=2)
    rest = store.studies.list(after=first.next, limit=2)
    assert [c.id for c in (*first.items, *rest.items)] == [c.id for c in reversed(made)]
    assert rest.next is None
    assert [c.id for c in store.studies.list("a").items] == [made[2].id, made[0].id]
    assert [c.id for c in store.studies.list(states=[S.FAILED]).items] == [made[0].id]
    assert store.studies.list(search="A").items == store.studies.list("a").items
    assert [c.id for c in store.studies.list(search=str(made[1].id)[:13]).items] == [made[1].id]
    assert store.studies.list(search="%").items == ()
    assert [c.id for c in store.studies.unfinished()] == [made[1].id, made[2].id]


def test_the_runs_of_a_study_are_its_own_and_no_news(store: Store) -> None:
    ours, other = UUID(int=1), UUID(int=2)
    for id, study in enumerate((ours, other, ours, None), 1):
        store.runs.begin(scenario="q/b", setup={}, values={}, id=UUID(int=id), study=study)
    store.runs.finish(UUID(int=3), RunState.INTERRUPTED, metrics={"total_time_ms": 5.0})
    runs = store.studies.runs(ours)
    assert [run.id.int for run in runs] == [1, 3]
    assert [run.metrics for run in runs] == [{}, {"total_time_ms": 5.0}]
    spans = store.studies.spans(ours)
    assert [each.state for each in spans] == [RunState.QUEUED, RunState.INTERRUPTED]
    assert [each.ended_at for each in spans] == [run.ended_at for run in runs]
    assert [each.id.int for each in store.overview.activities(10)] == [4]


def test_a_study_is_an_activity_and_is_found(store: Store) -> None:
    made = store.studies.begin("better", ORDER, "here")
    (activity,) = store.overview.activities(10)
    assert (activity.kind, activity.id, activity.title) == ("study", made.id, "better")
    assert (activity.state, activity.ended) == ("queued", False)
    (found,) = store.overview.find("bett", 10)
    assert (found.kind, found.id, found.detail) == ("study", str(made.id), "queued")


def test_who_ordered_it_is_in_the_log(store: Store) -> None:
    assert EventTopic.STUDY == "study"
    made = store.studies.begin("mine", ORDER, "here")
    entries = store.audit.oldest_first(AuditFilter())
    changes = [change for entry in entries for change in entry.changes]
    assert ("study", str(made.id)) in {(c.what, c.key) for c in changes}
