"""Campaigns in both databases."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from tests.contract.store.conftest import Clock
from tests.support.benchmarks.campaigns import FORECAST, a_campaign
from vmtune.bench.model.campaign.record import NEXT, CampaignState
from vmtune.bench.model.runs.run import RunState, Slot
from vmtune.errors import Conflict, NotFound
from vmtune.stats.model import Design, NoiseFloor, Scale
from vmtune.storage import Store
from vmtune.storage.repositories.bench.campaigns import StoredFloor

S = CampaignState


def test_a_campaign_is_kept_as_it_was_ordered(store: Store) -> None:
    made = store.campaigns.begin(
        a_campaign(published={"reference": "qatzip-compression", "scale": {"region_bytes": 8}}),
        FORECAST,
        "here",
    )
    assert (made.state, made.host, made.forecast) == (S.RUNNING, "here", FORECAST)
    assert made.campaign.seed == 7
    assert store.campaigns.get(made.id) == made
    assert store.campaigns.named("mine") == made
    assert store.campaigns.named(str(made.id)) == made
    again = store.campaigns.begin(a_campaign(), FORECAST, "here")
    assert store.campaigns.named("mine") == again
    for unknown in ("other", str(uuid4())):
        with pytest.raises(NotFound, match="no campaign"):
            store.campaigns.named(unknown)


@pytest.mark.parametrize("first", S)
@pytest.mark.parametrize("then", S)
def test_a_state_follows_only_where_it_may(store: Store, first: S, then: S) -> None:
    made = store.campaigns.begin(a_campaign(), FORECAST, "here")
    if first is not S.RUNNING:
        store.campaigns.enter(made.id, first, "why\0")
    if then in NEXT[first]:
        after = store.campaigns.enter(made.id, then)
        assert (after.state, after.reason) == (then, "")
        assert (after.ended_at is not None) == then.ended
    else:
        with pytest.raises(Conflict, match="cannot become"):
            store.campaigns.enter(made.id, then)
        assert store.campaigns.get(made.id).state is first


def test_lists_are_paged_and_filtered(store: Store) -> None:
    made = [store.campaigns.begin(a_campaign(name=n), FORECAST, "h") for n in ("a", "b", "a")]
    store.campaigns.enter(made[0].id, S.COMPLETED)
    first = store.campaigns.list(limit=2)
    rest = store.campaigns.list(after=first.next, limit=2)
    assert [c.id for c in (*first.items, *rest.items)] == [c.id for c in reversed(made)]
    assert rest.next is None
    assert [c.id for c in store.campaigns.list("a").items] == [made[2].id, made[0].id]
    assert [c.id for c in store.campaigns.list(states=[S.COMPLETED]).items] == [made[0].id]
    assert store.campaigns.list(search="A").items == store.campaigns.list("a").items
    assert [c.id for c in store.campaigns.list(search=str(made[1].id)[:13]).items] == [made[1].id]
    assert store.campaigns.list(search="%").items == ()
    assert [c.id for c in store.campaigns.unfinished()] == [made[1].id, made[2].id]


def test_the_runs_of_a_campaign_are_its_own(store: Store) -> None:
    ours, other = UUID(int=1), UUID(int=2)
    for campaign, arm, block in ((ours, "A", 0), (other, "A", 1), (ours, "B", 1)):
        run = store.runs.begin(
            scenario="q/b", setup={}, values={}, slot=Slot(campaign, arm, block, 2)
        )
    store.runs.finish(run.id, RunState.INTERRUPTED)
    runs = store.campaigns.runs(ours)
    assert [(r.scenario, r.arm, r.block, r.position) for r in runs] == [
        ("q/b", "A", 0, 2),
        ("q/b", "B", 1, 2),
    ]
    assert [r.state for r in runs] == [RunState.QUEUED, RunState.INTERRUPTED]
    assert (runs[1].id, runs[0].ended_at) == (run.id, None)
    assert runs[1].ended_at is not None


def test_a_newer_calibration_takes_the_place_of_an_older(store: Store, clock: Clock) -> None:
    for place in ("x", "y"):
        run = store.runs.begin(scenario="q/b", setup={}, values={})
        store.runs.start(run.id, {"place": place}, place, {})
    for effect, scenario in ((1.5, "q/b"), (1.1, "q/b"), (1.2, "q/c")):
        floor = NoiseFloor("total_time_ms", "x", Scale.RATIO, Design.PAIRED, 6, effect, 1.0)
        store.campaigns.keep_floors(UUID(int=1), [StoredFloor(scenario, floor)])
    found = store.campaigns.floors(["x", "y"])
    assert [(f.scenario, f.floor.effect) for f in found] == [("q/c", 1.2), ("q/b", 1.1)]
    assert store.campaigns.floors(["y"]) == ()
