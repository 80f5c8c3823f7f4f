"""The noise floor of a host: what difference identical arms show by chance.

An A/A calibration runs one arm twice in each block under two names. If the arms are alike, the
sign of each block's difference is chance, so all ways to give the signs show which Hodges-Lehmann
estimates chance makes of these runs. The floor is the size that 95 % of them stay below, times
Student's quantile by the normal one, since the noise is known from these few runs only; or what
the calibration itself showed, if that is larger (a place in the block that is always slower, say).
Unpaired, the runs are dealt to the two arms anew instead. Up to 12 blocks all ways are counted,
beyond that 2,000 drawn with a fixed seed. Of later comparisons of identical arms 5 to 7 % exceed
it (``tests/perf/verdicts/stats_sim.py``).

For another number of blocks the floor is scaled by the root of the numbers' ratio, as the noise
of a mean is. Below its floor an effect may be a property of the host and the hour, whatever its
interval says: intervals do not know what changes between campaigns. It is marked, not dropped.

Without blocks the floor has a part between sessions besides. Runs of one session have something in
common that more of them do not average out. Where the arms ran in several sessions, an analysis
of variance (one-way, random effects, groups of unequal size) shows how far sessions lie apart. The
floor takes as much of it as the arms have different shares of their runs in the same sessions;
nothing cancels out if they share none, and all of it if they share all alike.

Searle, S. R. (1971). Topics in variance component estimation. Biometrics 27.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from vmtune.errors import InvalidInput
from vmtune.stats.arms import Arms, match, scale_of, shifted
from vmtune.stats.model import Comparison, Criterion, Design, NoiseFloor, Sample, Scale
from vmtune.stats.ranks import Floats
from vmtune.stats.shift import Spans, shift
from vmtune.stats.verdict import LEAST_PAIRED, LEAST_UNPAIRED

SHARE_BELOW = 0.95
SESSION_GAP_S = 3600.0
"""Without a run for so long, another session begins."""
_ALL_UP_TO = 12  # blocks: 4,096 ways to give signs
_DRAWN = 2000
_SEED = 1


def calibrate(
    a: Sample, b: Sample, criterion: Criterion, environment: str, design: Design | None = None
) -> NoiseFloor:
    """The floor from two samples of one and the same arm.

    :param environment: the fingerprint of where they ran.
    :raise InvalidInput: too few runs, runs without a value or without an end, or shares.
    """
    arms = match(a, b, design)
    least = LEAST_PAIRED if arms.design is Design.PAIRED else LEAST_UNPAIRED
    lost = any(o.value is None or o.censored or o.failed for s in (a, b) for o in s.observations)
    if criterion.share or lost or arms.size < least:
        raise InvalidInput(
            f"{arms.size} runs of each arm are no calibration of {criterion.metric}"
            if arms.size < least
            else f"the calibration of {criterion.metric} has runs that failed or did not converge"
            if lost
            else f"{criterion.metric} is a share, and has no noise floor",
            field="calibration",
            code="no_calibration",
            remedy=f"run at least {least} of each arm, all to their end"
            if not criterion.share
            else "calibrate metrics that are measured",
        )
    scale, _ = scale_of(arms)
    found, _ = shifted(arms, scale, (0.0, 0.0), SHARE_BELOW)
    observed = abs(float(found.estimate))
    by_chance = float(np.quantile(np.abs(_by_chance(arms, scale)), SHARE_BELOW))
    floor = max(observed, by_chance * _caution(arms))
    back = math.exp if scale is Scale.RATIO else float
    return NoiseFloor(
        criterion.metric, environment, scale, arms.design, arms.size, back(floor), back(observed)
    )


def _caution(arms: Arms) -> float:
    """By how much a quantile grows when the noise is known from these runs only."""
    from scipy.stats import norm, t  # noqa: PLC0415 - takes a second

    freedom = arms.size - 1 if arms.design is Design.PAIRED else len(arms.a) + len(arms.b) - 2
    tail = (1 + SHARE_BELOW) / 2
    return float(t.ppf(tail, freedom) / norm.ppf(tail))


def _by_chance(arms: Arms, scale: Scale) -> Floats:
    """The estimates that chance makes of the runs."""
    a, b = (np.log(v) if scale is Scale.RATIO else v for v in (arms.a, arms.b))
    random = np.random.default_rng(_SEED)
    size = arms.size
    if arms.design is Design.PAIRED:
        if size <= _ALL_UP_TO:
            signs = 1.0 - 2.0 * (np.arange(1 << size)[:, None] >> np.arange(size) & 1)
        else:
            signs = random.choice([-1.0, 1.0], (_DRAWN, size))
        flipped = signs * (b - a)
        nothing = np.zeros_like(flipped)
        return _estimates(nothing, flipped, paired=True)
    dealt = random.permuted(np.tile(np.concatenate([a, b]), (_DRAWN, 1)), axis=1)
    return _estimates(dealt[:, : len(a)], dealt[:, len(a) :], paired=False)


def _estimates(a: Floats, b: Floats, *, paired: bool) -> Floats:
    """Hodges-Lehmann estimates of many experiments, some at a time."""
    each = [
        shift(Spans.known(x), Spans.known(y), paired=paired, confidence=SHARE_BELOW).estimate
        for x, y in zip(np.array_split(a, 20), np.array_split(b, 20), strict=True)
        if len(x)
    ]
    return np.concatenate(each)


def floor_of(floor: NoiseFloor, size: int, design: Design = Design.PAIRED) -> float:
    """The floor for so many blocks, on its scale.

    Without blocks it does not shrink below what was calibrated: what differs between sessions is
    the same for all runs of one, however many there are.
    """
    factor = math.sqrt(floor.size / size)
    if design is Design.UNPAIRED:
        factor = max(1.0, factor)
    if floor.scale is Scale.RATIO:
        return math.exp(math.log(floor.effect) * factor)
    return floor.effect * factor


def between_sessions(a: Sample, b: Sample, scale: Scale) -> float:
    """What difference between identical arms 95 % of comparisons stay below for the sessions that
    they ran in, on the scale (a logarithm for ratios).

    0 where it is not known: without times, or where no arm has values of several sessions, or
    their differences are no larger than those within.
    """
    known = [
        (arm, o)
        for arm, sample in enumerate((a, b))
        for o in sample.observations
        if o.value is not None and not o.censored
    ]
    runs = sorted((o.at_s, arm, o.value) for arm, o in known
                  if o.at_s is not None and o.value is not None)  # fmt: skip
    if not runs or len(runs) < len(known):
        return 0.0
    at = np.array([each for each, _, _ in runs])
    session = np.cumsum(np.diff(at, prepend=at[:1]) > SESSION_GAP_S)
    arm = np.array([each for _, each, _ in runs])
    values = np.array([each for _, _, each in runs])
    if scale is Scale.RATIO:
        values = np.log(values)
    counts = np.array([np.bincount(session[arm == each], minlength=session[-1] + 1)
                       for each in (0, 1)])  # fmt: skip
    freedom = int((counts > 0).sum()) - 2
    within_freedom = len(runs) - int((counts > 0).sum())
    if not counts.sum(axis=1).all() or freedom < 1 or within_freedom < 1:
        return 0.0
    between = within = 0.0
    for each in (0, 1):
        about = values[arm == each].mean()
        for place in np.flatnonzero(counts[each]):
            group = values[(arm == each) & (session == place)]
            between += len(group) * float(group.mean() - about) ** 2
            within += float(((group - group.mean()) ** 2).sum())
    of_each = counts.sum(axis=1)
    size = float((of_each - (counts**2).sum(axis=1) / of_each).sum()) / freedom
    variance = (between / freedom - within / within_freedom) / size
    apart = float((np.diff(counts / of_each[:, None], axis=0) ** 2).sum())
    if variance <= 0 or not apart:
        return 0.0
    from scipy.stats import t  # noqa: PLC0415 - takes a second

    return float(t.ppf((1 + SHARE_BELOW) / 2, freedom)) * math.sqrt(variance * apart)


def floor_for(
    comparison: Comparison, floor: NoiseFloor | None, arms: tuple[Sample, Sample] | None = None
) -> Comparison:
    """The comparison, marked if its estimate is below the floor.

    :param arms: what was compared; for the part between sessions, if it was not in blocks.
    :raise InvalidInput: the floor is of another metric.
    """
    if floor is not None and floor.metric != comparison.metric:
        raise InvalidInput(
            f"the noise floor is of {floor.metric}, not of {comparison.metric}",
            field="noise_floor",
            code="other_metric",
            remedy=f"give the noise floor of {comparison.metric}",
        )
    effect = comparison.effect
    if effect is None:
        return comparison
    unpaired = comparison.design is Design.UNPAIRED
    ratio = effect.scale is Scale.RATIO
    sessions = 0.0
    if arms and unpaired and effect.scale is not Scale.SHARE:
        sessions = between_sessions(*arms, effect.scale)
    level = sessions
    if (
        floor is not None
        and floor.scale is effect.scale
        and (unpaired or floor.design is Design.PAIRED)
    ):
        known = floor_of(floor, comparison.size, comparison.design)
        level = math.hypot(math.log(known) if ratio else known, sessions)
    elif not sessions:
        return comparison
    size = abs(math.log(effect.estimate) if ratio else effect.estimate)
    return replace(
        comparison,
        noise_floor=math.exp(level) if ratio else level,
        below_noise_floor=size < level,
    )
