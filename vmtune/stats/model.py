"""What is compared, and what a comparison says.

Frozen, and made of what JSON has: what is unbounded is None, never infinite. Nothing here needs
numpy, so that a client, a schema or a table of metrics may import it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from vmtune.errors import InvalidInput

DEFAULT_MARGIN = 0.05
"""Differences within 5 % do not matter by default."""

MAX_RUNS = 2000
"""Of one arm in one comparison; far beyond what campaigns have."""


class Direction(StrEnum):
    """Which way is better."""

    LOWER = "lower"
    HIGHER = "higher"
    NONE = "none"
    """Neither: it explains other metrics, and gets no verdict."""


class Scale(StrEnum):
    """How B is compared with A."""

    RATIO = "ratio"
    """B / A."""
    DIFFERENCE = "difference"
    """B - A, in the metric's unit: where a value of 0 or less makes ratios meaningless."""
    SHARE = "share"
    """B - A of the shares of runs that are 1, for a metric that is 0 or 1."""


class Design(StrEnum):
    """How the runs were scheduled."""

    PAIRED = "paired"
    """In blocks in which every arm ran once: A and B are compared within each block."""
    UNPAIRED = "unpaired"


class Bound(StrEnum):
    """How an estimate is to be read where some values are known only as "more than"."""

    EXACT = "exact"
    AT_LEAST = "at least"
    AT_MOST = "at most"
    UNKNOWN = "unknown"


class Verdict(StrEnum):
    """The verdict of a comparison. It is always about B, compared with A."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    INSUFFICIENT_DATA = "insufficient data"
    CONFOUNDED = "confounded with time"
    """The arms ran one after the other: what the machine did meanwhile may be all of it."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one run gave for one metric. Samples within a run are reduced before.

    :param value: None when the run failed or the metric could not be had.
    :param censored: the true value is more than *value*: a run that did not converge by its
        limit, with the limit as value.
    :param block: the block of the campaign that it ran in; None outside of blocks.
    :param run: the run's id, for reference.
    :param failure: why there is no value.
    :param failed: the run did not succeed: it failed, or was given up at its limit. Without a
        value it counts as worse than all that were measured.
    :param below: the true value is less than *value*.
    :param at_s: when the run began, in seconds since any moment; None where that is not known.
    """

    value: float | None
    censored: bool = False
    block: int | None = None
    run: str = ""
    failure: str = ""
    failed: bool = False
    below: bool = False
    at_s: float | None = None

    def __post_init__(self) -> None:
        """
        :raise InvalidInput: not a finite number, or censored without a limit.
        """
        if self.value is None:
            if self.censored:
                raise InvalidInput(
                    f"run {self.run or '?'} is censored, but its limit is not given",
                    field="value",
                    code="no_limit",
                    remedy="give the limit that it ran into as its value",
                )
        elif not math.isfinite(self.value):
            raise InvalidInput(
                f"{self.value} of run {self.run or '?'} is not a finite number",
                field="value",
                code="not_finite",
                remedy="a run without a value has None, one that did not end has its limit and "
                "is censored",
            )


@dataclass(frozen=True, slots=True)
class Sample:
    """All runs of one arm, for one metric: failed ones too, cancelled and warm-up ones not."""

    arm: str
    observations: tuple[Observation, ...]

    def __post_init__(self) -> None:
        """
        :raise InvalidInput: too many runs, or two of one block.
        """
        if len(self.observations) > MAX_RUNS:
            raise InvalidInput(
                f"{self.arm} has {len(self.observations):,} values; a comparison takes "
                f"{MAX_RUNS:,}",
                field="observations",
                code="too_many",
                remedy="reduce each run to one value, or compare fewer runs",
            )
        blocks = Counter(o.block for o in self.observations if o.block is not None)
        twice = sorted(block for block, runs in blocks.items() if runs > 1)
        if twice:
            raise InvalidInput(
                f"{self.arm} has more than one run in block {twice[0]}",
                field="block",
                code="block_twice",
                remedy="each block runs every arm once; give runs outside of blocks no block",
            )

    @classmethod
    def of(cls, arm: str, values: Sequence[float], *, blocks: bool = False) -> Sample:
        """Plain values; with *blocks*, one of each block in this order."""
        return cls(
            arm,
            tuple(
                Observation(float(value), block=number if blocks else None)
                for number, value in enumerate(values, 1)
            ),
        )


@dataclass(frozen=True, slots=True)
class Criterion:
    """What a metric is judged by. Fixed before the runs.

    :param unit: of its values, as texts show it.
    :param margin: the smallest difference that matters, as a share: 0.05 is 5 %. In a
        comparison of shares it is 5 percentage points, and where ratios cannot be had, of the
        larger of the arms' medians.
    :param resolution: the step of the clock or counter that the values were read from, where
        it rounds: a value v stands for anything from v - resolution/2 to v + resolution/2.
        0 for exact counts and fine clocks.
    :param least_difference: the smallest difference that matters in the metric's own unit: within
        it none does, however large a share it is. None: any can.
    :param share: its values are 0 and 1 (no and yes), and their share is compared.
    :param primary: the one metric that a campaign was made for.
    :param success: it is the share of runs that succeeded, which is judged before all others.
    :param needs_success: a rate over the whole run: of a run that was given up it is the rate of
        something else, so there is no verdict unless both arms succeed equally often.
    """

    metric: str
    direction: Direction = Direction.LOWER
    unit: str = ""
    margin: float = DEFAULT_MARGIN
    resolution: float = 0.0
    least_difference: float | None = None
    share: bool = False
    primary: bool = False
    success: bool = False
    needs_success: bool = False

    def __post_init__(self) -> None:
        """
        :raise InvalidInput: a margin or resolution that is none.
        """
        for name, value, below in (
            ("margin", self.margin, 1.0),
            ("resolution", self.resolution, math.inf),
            ("least_difference", self.least_difference or 0.0, math.inf),
        ):
            if not 0 <= value < below:
                most = f" and less than {below:g}" if below < math.inf else ""
                raise InvalidInput(
                    f"{value} is no {name.replace('_', ' ')}: it is at least 0{most}",
                    field=name,
                    code="out_of_range",
                    remedy="write 0.05 for 5 %" if name == "margin" else "",
                )


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that may be known only as "more than".

    :param above: the true figure is more than *value*.
    """

    value: float
    above: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """One arm's values.

    :param runs: all of them: *measured* + *censored* + *missing*.
    :param measured: runs with a value.
    :param censored: runs of which only a lower limit is known.
    :param missing: runs without a value: failed, or without this metric.
    :param failed: those of *missing* that did not succeed, and count as the worst.
    :param minimum: with the other figures None when there is no value.
    :param lower_quartile: quartiles are interpolated linearly (Hyndman & Fan's type 7).
    :param multimodal: Hartigan's dip rejects one mode at 5 %; None when there are too few.
    """

    arm: str
    runs: int
    measured: int
    censored: int
    missing: int
    minimum: Figure | None
    lower_quartile: Figure | None
    median: Figure | None
    upper_quartile: Figure | None
    maximum: Figure | None
    multimodal: bool | None
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Effect:
    """How B compares with A.

    :param estimate: the Hodges-Lehmann estimate on *scale*: 0.8 as a ratio is 20 % less.
    :param bound: how the estimate is to be read when there are censored values.
    :param low: the interval's lower end; None where it has none, or without enough data.
    :param high: its upper end, likewise.
    :param level: how often such an interval holds the true effect, at least.
    :param sure_low: the estimate lies from here ...
    :param sure_high: ... to here, whatever values that are rounded or known only as limits were;
        None where that has no end, or is the estimate itself.
    :param rank: *low* is the rank-th smallest of the differences that *estimate* is the median
        of (all ``(d_i + d_j) / 2`` paired, all ``b - a`` unpaired; of logarithms for a ratio),
        *high* the rank-th largest; 0 where there is no interval, or it is made in another way.
    :param differences: how many these are.
    :param margin_low: effects from here ...
    :param margin_high: ... to here do not matter.
    """

    scale: Scale
    estimate: float
    bound: Bound
    low: float | None
    high: float | None
    level: float
    margin_low: float
    margin_high: float
    rank: int = 0
    differences: int = 0
    sure_low: float | None = None
    sure_high: float | None = None


@dataclass(frozen=True, slots=True)
class Medians:
    """B's median compared with A's, on the effect's scale, with its interval.

    The effect is the typical ratio of a run of B to one of A; this is the ratio of the typical
    runs. They differ where the arms have different shapes.
    """

    estimate: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Test:
    """A test of "no difference".

    :param name: which; in words.
    :param p: two-sided; how likely data so far apart or farther are without a difference.
    :param exact: from the exact distribution, not from a normal approximation.
    """

    __test__ = False  # for pytest: this is not a class of tests

    name: str
    p: float
    exact: bool


@dataclass(frozen=True, slots=True)
class Survival:
    """The logrank test of whether runs ended equally soon.

    :param p: two-sided, from the normal approximation.
    :param b_sooner: B's runs ended sooner than expected if both arms were alike; None where
        they ended just so.
    :param limits_highest: no value that was measured is above a limit, so a run that did not
        converge is known to be above all that did.
    """

    p: float
    b_sooner: bool | None
    limits_highest: bool


@dataclass(frozen=True, slots=True)
class Rates:
    """Two shares of runs, such as the share that converged.

    :param what: of which runs it is the share.
    :param difference: B's share minus A's, with its interval by Newcombe.
    :param p: two-sided, by Boschloo's exact test.
    """

    what: str
    a_count: int
    a_runs: int
    b_count: int
    b_runs: int
    difference: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """The effect that identical arms show by chance on one host, from an A/A calibration.

    :param environment: the fingerprint of where it was calibrated.
    :param effect: on *scale*, as the larger side: a ratio of 1.03, or a difference. 95 % of
        comparisons of identical arms with *size* blocks (runs of each arm, unpaired) show less.
    :param observed: the effect that the calibration itself showed, likewise.
    """

    metric: str
    environment: str
    scale: Scale
    design: Design
    size: int
    effect: float
    observed: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """B compared with A for one metric.

    :param size: blocks in which both arms have a value; unpaired, the values of the arm that
        has fewer.
    :param effect: None when there is nothing to compare.
    :param scale_reason: why it is no ratio; empty where it is.
    :param cliffs_delta: the share of all pairs of runs in which B's value is the larger, minus
        the share in which it is the smaller: -1 to 1.
    :param better_share: the share of pairs (blocks when paired, otherwise every run of A with
        every run of B) in which B is better; None without a direction.
    :param equal_share: likewise, the share in which neither is, or it is not known.
    :param test: of "no difference".
    :param medians: the ratio of the medians (their difference, where there is no ratio).
    :param claim_p: the p of "beyond the margin", which is what better and worse claim.
    :param adjusted_p: *claim_p* among the many (Benjamini and Hochberg); None where it is the
        only one of its kind.
    :param in_turns: the arms' runs alternate in time; None where that was not asked, or runs
        are compared in blocks.
    :param shares: the shares compared, for a metric of shares.
    :param survival: None where no value is censored.
    :param converged: shares of the values that are not censored; None likewise.
    :param measured: shares of runs that have a value; None where all have.
    :param succeeded: shares of runs that succeeded; None where all did.
    :param verdict: None for a metric of which neither direction is better, and where it is
        withheld.
    :param reason: why that verdict, in a sentence.
    :param blocks_needed: about how many blocks (runs of each arm, unpaired) a new campaign needs
        to settle an inconclusive one in 80 % of cases; None where it is settled or cannot be.
    :param noise_floor: the effect below which this host shows differences by chance with so
        many blocks, as the larger side of the effect's scale; None without a calibration, and
        without blocks unless the runs show how far sessions lie apart.
    :param below_noise_floor: the estimate is smaller than that; None likewise.
    :param notes: what qualifies the verdict, in sentences.
    """

    criterion: Criterion
    a: Summary
    b: Summary
    design: Design
    size: int
    effect: Effect | None = None
    scale_reason: str = ""
    cliffs_delta: float | None = None
    better_share: float | None = None
    equal_share: float | None = None
    test: Test | None = None
    medians: Medians | None = None
    claim_p: float | None = None
    adjusted_p: float | None = None
    in_turns: bool | None = None
    shares: Rates | None = None
    survival: Survival | None = None
    converged: Rates | None = None
    measured: Rates | None = None
    succeeded: Rates | None = None
    verdict: Verdict | None = None
    reason: str = ""
    blocks_needed: int | None = None
    noise_floor: float | None = None
    below_noise_floor: bool | None = None
    notes: tuple[str, ...] = ()

    @property
    def metric(self) -> str:
        """Whose metric's."""
        return self.criterion.metric
