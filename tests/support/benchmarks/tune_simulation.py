"""Studies over simulated scenarios: a landscape with interactions, constraints and failures, and
the noise of recorded migrations.

The noise is how far migrations of dataset/ were below their bandwidth limit, in the order in which
they were recorded: so it wanders as that machine did. To it come a slow drift, and moments of
outlying load.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyarrow import parquet

from tests.perf.forecasts.dataset_drawn import SEED, is_one_of_the_first
from tests.perf.forecasts.dataset_file import PUBLISHED
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.bench.model.tune.estimates import broken_share
from vmtune.bench.model.tune.policy import next_step
from vmtune.bench.model.tune.records import TrialOutcome, TrialRecord, TrialRun, with_run
from vmtune.bench.model.tune.space import Dimension, settle
from vmtune.bench.model.tune.spec import Budget, Settings, StudySpec, Used
from vmtune.bench.model.tune.steps import Confirm, Finish, PlannedTrial, RunBlock
from vmtune.stats.compare import compare
from vmtune.stats.model import Criterion, Observation, Sample, Verdict

LEVELS = 5
SPACE = {
    "multifd": Dimension((False, True)),
    "multifd_channels": Dimension(low=1, high=16, log=True),
    "multifd_compression": Dimension(("none", "zlib", "zstd")),
    "auto_converge": Dimension((False, True)),
    "cpu_throttle_increment_percent": Dimension(low=5, high=50),
    "downtime_limit_ms": Dimension(low=50, high=1000, log=True),
}
OBJECTIVE = "minimise total_time_ms where guest_silence_ms <= 600 and completed"
USUAL_MS = 20_000.0
LIMIT_MS = 120_000.0
MAY_BREAK = 0.1
"""The largest share of a winner's runs that may break a constraint."""
_DEFAULTS: Settings = {
    "multifd": False, "multifd_channels": 2, "multifd_compression": "none",
    "auto_converge": False, "cpu_throttle_increment_percent": 10, "downtime_limit_ms": 300,
}  # fmt: skip


@functools.cache
def recorded_noise() -> np.ndarray:
    """Logarithms: how much longer migrations took than their bandwidth limit says, about the
    median, in recorded order."""
    columns = ["number", "values", "totals", "state"]
    found = []
    for row in parquet.read_table(PUBLISHED, columns=columns).to_pylist():
        if not is_one_of_the_first(SEED, row["number"]):
            continue  # studies stay the same however many are published
        plain = not row["values"]["xbzrle"] and not row["values"]["multifd"]
        if row["state"] == "completed" and row["totals"] and plain:
            totals = row["totals"]
            sending = totals["total_time_ms"] - totals["setup_time_ms"]
            sent = totals["transferred_bytes"] * 1000 / max(sending, 1)
            found.append(-math.log(sent / row["values"]["max_bandwidth_bytes_per_s"]))
    values = np.array(found)
    return values - np.median(values)


@dataclass
class Landscape:
    """A scenario whose truth is known."""

    seed: int

    def __post_init__(self) -> None:
        random = np.random.default_rng([26, self.seed])
        self.optimum = random.uniform(0, 1, 4)
        self.depth = random.uniform(0.05, 0.5, 4) * (0.15 if self.seed % 7 == 6 else 1.0)
        self.compression = dict(
            zip(("none", "zlib", "zstd"), random.normal(0, 0.2, 3), strict=True)
        )
        self.compression["none"] = 0.0
        self.multifd = random.normal(-0.1, 0.15)
        self.converge = random.normal(-0.05, 0.1)
        self.interaction = random.normal(0, 0.35, 2)
        if self.seed % 7 == 6:  # there is next to nothing to find
            self.compression = {name: abs(v) for name, v in self.compression.items()}
            self.multifd, self.converge = abs(self.multifd), abs(self.converge)
            self.interaction = abs(self.interaction)
        self.silence = random.uniform(200, 450)
        self.failing = random.uniform(0, 0.6)
        self.drift = random.normal(0, 0.15)
        self.noise = recorded_noise() * random.uniform(0.4, 1.0)
        self.at = int(random.integers(len(self.noise)))
        self.clock = 0
        self.random = random

    def log_time(self, settings: Settings) -> float:
        """Of the total time, without noise."""
        full = {**_DEFAULTS, **settings}
        channels = math.log(int(full["multifd_channels"])) / math.log(16)
        limit = math.log(int(full["downtime_limit_ms"]) / 50) / math.log(20)
        step = (int(full["cpu_throttle_increment_percent"]) - 5) / 45
        value = self.depth[0] * (limit - self.optimum[0]) ** 2 * 2 - 0.15 * limit
        if full["multifd"]:
            word = str(full["multifd_compression"])
            value += self.multifd + self.compression[word]
            value += self.depth[1] * ((channels - self.optimum[1]) ** 2 - 0.1)
            value += self.interaction[0] * (channels - 0.5) * (word == "zstd")
        if full["auto_converge"]:
            value += self.converge + self.depth[2] * ((step - self.optimum[2]) ** 2 - 0.1)
            value += self.interaction[1] * (step - 0.5) * (limit - 0.5)
        return value

    def silence_ms(self, settings: Settings) -> float:
        """Of the guest, without noise."""
        limit = int({**_DEFAULTS, **settings}["downtime_limit_ms"])
        return 30 + self.silence * (limit / 300) ** 0.7

    def failure(self, settings: Settings) -> float:
        """How often a run does not converge."""
        full = {**_DEFAULTS, **settings}
        low = max(0.0, 1 - int(full["downtime_limit_ms"]) / 150)
        return 0.0 if full["auto_converge"] else min(0.95, self.failing * low * 2)

    def feasible(self, settings: Settings) -> bool:
        """By the truth."""
        return self.silence_ms(settings) <= 600 and self.failure(settings) <= 0.05

    def run(self, number: int, block: int, settings: Settings) -> TrialRun:
        """One run at the next moment."""
        self.clock += 1
        noise = self.noise[(self.at + self.clock) % len(self.noise)]
        noise += self.drift * math.sin(self.clock / 40)
        load = float(self.random.uniform(0, 10))
        if self.random.random() < 0.04:
            load += 60
            noise += self.random.uniform(0.2, 0.8)
        metrics = {
            "total_time_ms": USUAL_MS * math.exp(self.log_time(settings) + noise),
            "guest_silence_ms": self.silence_ms(settings) * math.exp(self.random.normal(0, 0.06)),
        }
        fails = self.random.random() < self.failure(settings)
        outcome = TrialOutcome.NOT_CONVERGED if fails else TrialOutcome.COMPLETED
        return TrialRun(
            f"{number}-{block}-{self.clock}", block, outcome, {} if fails else metrics, load
        )

    @functools.cached_property
    def grid(self) -> tuple[Settings, ...]:
        """All settings of a grid of LEVELS values of each tunable, without those of no effect."""
        names = list(SPACE)
        found: dict[tuple[object, ...], Settings] = {}
        for values in itertools.product(*(SPACE[name].points(LEVELS) for name in names)):
            settings, broken = settle(dict(zip(names, values, strict=True)), {})
            kept = {n: v for n, v in settings.items() if n != "multifd_compression" or v != "none"}
            if not broken:
                found[tuple(sorted(kept.items()))] = kept
        return tuple(found.values())

    @functools.cached_property
    def best(self) -> float:
        """The least log time of the grid among what is feasible."""
        return min(self.log_time(one) for one in self.grid if self.feasible(one))


def spec_of(seed: int, runs: int = 110, **more: Any) -> StudySpec:  # any: its fields
    """A study of the simulation, ready."""
    made = StudySpec(f"study-{seed}", Scenario("simulated/stock"), OBJECTIVE, budget=Budget(runs))
    return replace(made.ready(SPACE, (), seed), **more)


def steps_of(
    spec: StudySpec, landscape: Landscape, seconds_of_a_run: float = 0.0
) -> Iterator[tuple[tuple[TrialRecord, ...], Confirm | Finish | None]]:
    """The records after every block, with the end at last."""
    trials: tuple[TrialRecord, ...] = ()
    while True:
        runs = sum(len(one.runs) for one in trials)
        step = next_step(spec, trials, Used(runs, runs * seconds_of_a_run))
        if not isinstance(step, RunBlock):
            yield trials, step
            return
        for one in step.trials:
            record = TrialRecord(one.number, one.origin, one.settings)
            trials = with_run(trials, record, landscape.run(one.number, step.block, one.settings))
        yield trials, None


def confirmed(
    spec: StudySpec, landscape: Landscape, finalists: Sequence[PlannedTrial]
) -> tuple[PlannedTrial, float] | None:
    """The winner of a campaign of fresh runs, judged by the project's own comparison, and its gain
    as a share; None without one. Of several, that whose gain is surest."""
    arms: Mapping[str, Settings] = {"default": {}} | {str(f.number): f.settings for f in finalists}
    runs: dict[str, list[TrialRun]] = {name: [] for name in arms}
    order = list(arms)
    for block in range(1, spec.confirm_blocks + 1):
        landscape.random.shuffle(order)
        for name in order:
            runs[name].append(landscape.run(0, block, arms[name]))
    criterion = Criterion("total_time_ms", margin=spec.margin_percent / 100, primary=True)
    default = _sample("default", runs["default"])
    won = []
    for one in finalists:
        own = runs[str(one.number)]
        found = compare(default, _sample(str(one.number), own), criterion)
        if found.verdict is Verdict.BETTER and broken_share(spec.goal, own) <= MAY_BREAK:
            assert found.effect is not None
            high = math.inf if found.effect.high is None else found.effect.high
            won.append((high, one, 1 - found.effect.estimate))
    if not won:
        return None
    _, winner, gain = min(won, key=lambda each: each[0])
    return winner, gain


def _sample(arm: str, runs: Sequence[TrialRun]) -> Sample:
    return Sample(
        arm,
        tuple(
            Observation(run.metrics["total_time_ms"], block=run.block)
            if run.metrics
            else Observation(LIMIT_MS, censored=True, block=run.block, failed=True)
            for run in runs
        ),
    )
