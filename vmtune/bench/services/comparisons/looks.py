"""Looks at data before all of it is there, and second looks at the same question.

Who may look after each block and stop when he likes what he sees finds a difference between equal
arms in 10 to 15 % of campaigns instead of 5 %. So runs of a campaign that goes on are shown
without anything that could be a verdict, however they are asked for; a campaign that a person
ended early has figures and no verdict; and who asks a question again is shown how often it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from uuid import UUID

from vmtune.bench.model.campaign.campaign import Campaign
from vmtune.bench.model.campaign.record import CampaignRecord, CampaignState
from vmtune.bench.model.runs.run import Run, RunState
from vmtune.errors import NotFound
from vmtune.storage import Store
from vmtune.storage.repositories.bench.run_rows import RunFilter

_PAGE = 100
_MAX_CAMPAIGNS = 1000
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Look:
    """What may be said of runs.

    :param veiled: why nothing that could be a verdict is shown; empty where it is.
    :param withheld: why there is no verdict, but figures; empty where there is.
    """

    veiled: str = ""
    withheld: str = ""


def look_at(record: CampaignRecord) -> Look:
    """What may be said of a campaign."""
    name = record.campaign.name
    if not record.state.ended:
        return Look(
            veiled=f"the campaign {name} goes on: a verdict, an interval or a p-value before its "
            "last block would be one look too many"
        )
    if record.state is CampaignState.CANCELLED:
        return Look(
            withheld=f"the campaign {name} was cancelled before its last block: who stops when the "
            "figures please finds differences that are not there. Run it anew to its end"
        )
    return Look()


def look_at_runs(store: Store, runs: Iterable[Run]) -> Look:
    """Likewise of runs that were chosen by what they are: the strictest of their campaigns'."""
    looks = []
    for id in dict.fromkeys(run.slot.campaign for run in runs if run.slot):
        record = _known(store, id)
        if record is not None:
            looks.append(look_at(record))
    veiled = next((look.veiled for look in looks if look.veiled), "")
    withheld = next((look.withheld for look in looks if look.withheld), "")
    return Look(veiled, "" if veiled else withheld)


def earlier(store: Store, record: CampaignRecord) -> Iterator[str]:
    """The campaigns before *record* that asked the same, newest first."""
    question = _question(record.campaign)
    found = [
        each
        for each in _campaigns(store)
        if each.id != record.id
        and each.created_at <= record.created_at
        and _question(each.campaign) == question
    ]
    if not found:
        return
    named = ", ".join(
        f"{each.campaign.name} ({each.created_at:%Y-%m-%d}, {each.state.value})"
        for each in found[:_NAMED]
    )
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    yield (
        f"the same was asked before, in {named}{more}: of twenty campaigns of equal arms one finds "
        "a difference, so judge them together"
    )


def repeats(store: Store, record: CampaignRecord) -> Iterator[str]:
    """How many runs of each arm were ended from outside and made anew: an arm that is so more
    often than others may be the reason."""
    wanted = RunFilter(states=(RunState.CANCELLED, RunState.INTERRUPTED), campaign=record.id)
    ended: Counter[tuple[str, RunState]] = Counter()
    after: str | None = None
    while True:
        page = store.runs.list(wanted, after, 1000)
        ended.update((r.slot.arm, r.state) for r in page.items if r.slot and r.slot.block)
        after = page.next
        if after is None:
            break
    if not ended:
        return
    told = []
    for arm in record.campaign.arms:
        cancelled, interrupted = (
            ended[arm.name, state] for state in (RunState.CANCELLED, RunState.INTERRUPTED)
        )
        told.append(f"{arm.name} {cancelled} cancelled and {interrupted} interrupted")
    yield f"runs that were ended from outside, do not count and were repeated: {', '.join(told)}"


def _known(store: Store, id: UUID) -> CampaignRecord | None:
    """None for the campaign of an imported run, which was another service's."""
    try:
        return store.campaigns.get(id)
    except NotFound:
        return None


def _campaigns(store: Store) -> Iterator[CampaignRecord]:
    """The newest, at most so many."""
    after: str | None = None
    for _ in range(_MAX_CAMPAIGNS // _PAGE):
        page = store.campaigns.list(after=after, limit=_PAGE)
        yield from page.items
        after = page.next
        if after is None:
            return


def _question(campaign: Campaign) -> Campaign:
    """The campaign without what may differ where the same is asked."""
    return replace(
        campaign,
        name="x",
        title="",
        why="",
        arms=tuple(sorted(campaign.arms, key=lambda arm: arm.name)),
        blocks=1,
        seed=None,
        primary_metric="",
        margin_percent=1,
        warmup_runs=0,
        overrides=frozenset(),
        published=None,
    )
