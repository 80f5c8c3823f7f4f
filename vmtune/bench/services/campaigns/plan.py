"""A campaign's runs in their order, and what is to be expected of them before the first."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID, uuid5

from vmtune.bench.model.campaign.campaign import Arm, Campaign, Cell
from vmtune.bench.model.campaign.record import CampaignRun, Forecast, PlannedRun, scenario_name
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.runs.run import Run, RunState, Slot
from vmtune.bench.model.scenario.any_kind import AnyScenario, to_json
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.boot import BootScenario
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.bench.model.scenario.srcu import SrcuScenario
from vmtune.bench.services.comparisons.arms import runs_of
from vmtune.bench.services.runs.runs import RunRequest
from vmtune.model.profile import Revision
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.stats.planning import DEFAULT_NOISE, detectable, noise_of
from vmtune.stats.schedule import schedule
from vmtune.storage import Store
from vmtune.storage.repositories.bench.run_rows import RunFilter

START_S = 5.0
"""Assumed for starting QEMUs and a guest, and ending them, where nothing is known."""
BOOT_S = 15.0
"""Assumed for a boot where nothing is known."""
_ASSUMED = {
    ScenarioKind.MIGRATION: f"{START_S:g} s to start and end, warm-up, cool-down, and the guest's "
    "working set sent once",
    ScenarioKind.BLOCK: f"{START_S:g} s to start and end, and the load with its ramp",
    ScenarioKind.BOOT: f"{BOOT_S:g} s for each boot",
    ScenarioKind.SRCU: f"{START_S:g} s for each run",
}
assert set(_ASSUMED) == set(ScenarioKind)
_WORDS = ("title", "why")
_NEWEST = 50
_LEAST_FOR_NOISE = 3
_BANDWIDTH = "max_bandwidth_bytes_per_s"
_UNLIMITED_BYTES_PER_S = 1 << 30


def planned_runs(campaign: Campaign) -> tuple[PlannedRun, ...]:
    """All runs in their order: the warm-up, then each block in an order of its own, in which
    every arm of every cell runs once, the arms of a cell one after the other."""
    cells = {cell.name: cell for cell in campaign.all_cells}
    arms = {arm.name: arm for arm in campaign.arms}
    assert campaign.seed is not None, "a campaign that was ordered has its seed"
    slots = schedule(
        list(arms), campaign.blocks, campaign.seed, campaign.warmup_runs, conditions=list(cells)
    )
    made: list[PlannedRun] = []
    position: dict[int, int] = {}
    for slot in slots:
        block = slot.block or 0
        position[block] = position.get(block, 0) + 1
        cell, arm = cells[slot.condition], arms[slot.arm]
        made.append(PlannedRun(slot.number, block, position[block], cell, arm))
    return tuple(made)


def request_of(
    campaign: Campaign,
    cell: Cell,
    arm: Arm,
    revision: Revision | None,
    slot: Slot | None = None,
    id: UUID | None = None,
) -> RunRequest:
    """The request to the run service.

    :raise InvalidInput: the parts of the campaign contradict each other.
    """
    scenario = campaign.scenario_of(cell, arm, revision)
    return RunRequest(
        scenario=to_json(scenario),
        profile=arm.profile or None,
        revision=arm.revision,
        values=dict(scenario.values),
        testbed=arm.testbed,
        qemu=arm.qemu,
        kvm=campaign.kvm,
        overrides=tuple(sorted(campaign.overrides)),
        host_load=cell.host_load,
        slot=slot,
        id=id,
    )


def run_id(campaign: UUID, planned: PlannedRun, attempt: int) -> UUID:
    """The same for the same attempt, so that no run is requested twice."""
    return uuid5(campaign, f"{planned.number}/{attempt}")


class Course:
    """Which of a campaign's runs were made.

    In a block each arm of a cell runs once, wherever in it: a campaign that an earlier version
    began in another order is continued, not begun anew.
    """

    def __init__(self, campaign: Campaign, runs: Sequence[CampaignRun]) -> None:
        self._campaign = campaign
        self._runs: dict[tuple[str, str, int, int], list[CampaignRun]] = {}
        for run in runs:
            key = (run.scenario, run.arm, run.block, 0 if run.block else run.position)
            self._runs.setdefault(key, []).append(run)

    def attempts(self, planned: PlannedRun) -> Sequence[CampaignRun]:
        """The runs that were made for *planned*, the last one last."""
        scenario = scenario_name(self._campaign, planned.cell)
        place = 0 if planned.block else planned.position
        key = (scenario, planned.arm.name, planned.block, place)
        return self._runs.get(key, ())

    def is_done(self, planned: PlannedRun) -> bool:
        """There is a result for it."""
        return any(run.state.counts for run in self.attempts(planned))

    def typical_s(self, otherwise: float) -> float:
        """How long a run of it takes, by those that ran to their end."""
        found = [
            (run.ended_at - run.started_at).total_seconds()
            for runs in self._runs.values()
            for run in runs
            if run.state.counts and run.started_at and run.ended_at
        ]
        return statistics.mean(found) if found else otherwise


def forecast(
    store: Store, campaign: Campaign, scenarios: dict[tuple[str, str], AnyScenario], host: str
) -> Forecast:
    """What the campaign can find, and how long it takes. Blocks for up to a second.

    :param scenarios: what is run, by the names of cell and arm.
    """
    noises: list[tuple[float, str]] = []
    seconds: list[float] = []
    known = 0
    for cell in campaign.all_cells:
        for arm in campaign.arms:
            scenario = scenarios[cell.name, arm.name]
            earlier = list(_earlier(store, scenario, arm, host))
            metric = campaign.primary_metric
            values = [run.metrics[metric] for run in earlier if metric in run.metrics]
            noise = noise_of(values) if len(values) >= _LEAST_FOR_NOISE else None
            if noise is not None:
                noises.append((noise, f"{len(values)} earlier runs of {arm.name} here"))
            took = _durations(earlier)
            known += bool(took)
            seconds.append(statistics.median(took) if took else _assumed_s(scenario))
    noise, where = max(noises, default=(DEFAULT_NOISE, ""))
    pairs = len(seconds)
    duration_reason = f"from earlier runs of {known} of {pairs} arms and cells on this machine"
    if known < pairs:
        duration_reason += f"; otherwise assumed: {_ASSUMED[campaign.kind]}"
    return Forecast(
        runs=campaign.run_count,
        detectable=detectable(campaign.blocks, noise, campaign.margin_percent / 100),
        noise=noise,
        noise_reason=f"the spread of {where}, the noisiest arm"
        if where
        else f"assumed: no arm has {_LEAST_FOR_NOISE} earlier runs on this machine",
        duration_s=statistics.mean(seconds) * campaign.run_count,
        duration_reason=duration_reason if known else duration_reason.partition("otherwise ")[2],
    )


def _earlier(store: Store, scenario: AnyScenario, arm: Arm, host: str) -> Iterator[Run]:
    """The newest runs of the same setup on the same machine."""
    succeeded = tuple(state for state in RunState if state.succeeded)
    wanted = RunFilter(scenario.name, host=host, states=succeeded)
    like = [
        run
        for run in runs_of(store, wanted)
        if run.values == scenario.values
        and run.testbed is arm.testbed
        and _measured_alike(run.setup, scenario)
    ]
    yield from like[-_NEWEST:]


def _measured_alike(setup: Mapping[str, object], scenario: AnyScenario) -> bool:
    """Whether a run with *setup* did what a run of *scenario* does. A migration's duration hardly
    depends on more than its guest's work."""
    wanted = to_json(scenario)
    if isinstance(scenario, Scenario):
        return bool(setup.get("workload") == wanted["workload"])
    return all(setup.get(name) == part for name, part in wanted.items() if name not in _WORDS)


def _durations(runs: Sequence[Run]) -> list[float]:
    return [
        (run.ended_at - run.started_at).total_seconds()
        for run in runs
        if run.started_at and run.ended_at
    ]


def _assumed_s(scenario: AnyScenario) -> float:
    if isinstance(scenario, BootScenario):
        return min(BOOT_S, float(scenario.longest_s))
    if isinstance(scenario, BlockScenario):
        return START_S + scenario.longest_s
    if isinstance(scenario, SrcuScenario):
        return min(START_S, float(scenario.longest_s))
    limit = scenario.values.get(_BANDWIDTH, BUILT_IN[_BANDWIDTH].default)
    bandwidth = limit if isinstance(limit, int) and limit > 0 else _UNLIMITED_BYTES_PER_S
    sending = min(scenario.workload.region_bytes / bandwidth, float(scenario.max_seconds))
    return START_S + scenario.warmup_s + scenario.cooldown_s + sending
