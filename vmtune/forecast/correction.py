"""What earlier forecasts tell of the next one: a correction, and bounds that hold.

Three corrections of a figure are tried: none but the median of all, the median of those whose pages
are sent alike, and a linear one of the logarithm by :func:`features` (ridge regression with Huber's
weights, which single wild records do not bend). The one that errs least on records that were held
out is taken, and only from :data:`FEWEST_LINEAR` records on the linear one. The bounds are those of
:mod:`vmtune.forecast.learnt`, of records that were held out of what corrects them (Barber, Candes,
Ramdas, Tibshirani, Predictive inference with the jackknife+, Annals of Statistics 49, 2021).

What a guest's pages hold no probe sees: how many are zeros, how well they are compressed. A VM that
migrated before has shown it. So what remains of its own records is added, shrunk the more the fewer
they are, where that errs less on records that were held out; then there are bounds for these VMs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vmtune.forecast.conditions import compresses, conditions_of
from vmtune.forecast.learnt import FEWEST, factors
from vmtune.forecast.limits import channels
from vmtune.forecast.path import Throughput
from vmtune.forecast.probe import DirtyProbe
from vmtune.forecast.prospect import Prospect
from vmtune.forecast.ranges import Range
from vmtune.model.tunables.tunable import Value

FEWEST_LINEAR = 60
_FLAGS = 4
"""So many of the features, the last, say how pages are sent."""
_FOLDS = 10
_FEWEST_GROUPS = 5
_RIDGE = 3.0
_HUBER = 0.25
"""Residuals of the logarithm beyond this count less: an error of 28 %."""
_ROUNDS = 10
_MOST = 5.0
"""Of the logarithm: no correction is by more than 150 times."""
_Array = NDArray[np.float64]
_Model = Callable[[Sequence[float]], float]
_Fit = Callable[[_Array, _Array], _Model]


@dataclass(frozen=True, slots=True)
class Record:
    """One figure of a forecast that was compared with what happened.

    :param computed: without any correction, above 0.
    :param group: what is held out together: the VM, or the workload.
    """

    features: tuple[float, ...]
    computed: Range
    happened: float
    group: str

    @property
    def error(self) -> float:
        """The logarithm of what happened as a share of what was computed."""
        return _log(max(0.5, self.happened) / max(0.5, self.computed.likely))


@dataclass(frozen=True, slots=True)
class Correction:
    """Of one figure.

    :param name: which of the three it is.
    :param records: how many it was learnt from.
    :param own_bounds: where a group has records of its own; None where they do not help.
    :param known: the records by their groups.
    """

    name: str
    model: _Model
    bounds: Range
    records: int
    own_bounds: Range | None = None
    known: Mapping[str, Sequence[Record]] = field(default_factory=dict)

    def apply(self, features: Sequence[float], computed: Range, group: str = "") -> Range:
        """What to expect, with the bounds between which 90 % are meant to be.

        :param group: what it belongs to, whose own records count more.
        """
        by = self.model(features)
        own = [
            record.error - self.model(record.features)
            for record in self.known.get(group, ())
            if _packed(record.features) == _packed(features)
        ]
        if self.own_bounds is None or not own:
            return _corrected(computed, by).scaled(self.bounds)
        return _corrected(computed, by + _shift(own)).scaled(self.own_bounds)


def features(
    probe: DirtyProbe, throughput: Throughput, values: dict[str, Value], computed: Prospect
) -> tuple[float, ...] | None:
    """What the errors of a forecast depend on; None where it gives no time.

    Logarithms of the time, the silence, the passes, the downtime limit, how much the guest dirties
    in 64 ms, 1 s and 8 s next to what is sent meanwhile, and how far the bounds of the time and of
    the throughput are apart; then whether pages are compressed by channels or by XBZRLE, sent by
    channels, and the guest is throttled.
    """
    total, silence, passes = computed.total_ms, computed.silence_ms, computed.passes
    if total is None or silence is None or passes is None:
        return None
    pace, curve = throughput.bytes_per_s, probe.curve()
    dirties = [
        _log(curve.dirty_bytes(ms) / (pace.likely * ms / 1000), 1e-3) for ms in (64, 1000, 8000)
    ]
    flags = (
        channels(values) > 0 and compresses(values),
        values.get("xbzrle") is True,
        channels(values) > 0,
        values.get("auto_converge") is True,
    )
    return (
        _log(total.likely),
        _log(silence.likely),
        _log(passes.likely),
        _log(conditions_of(values).downtime_limit_ms),
        *dirties,
        _log(total.high / max(1e-9, total.low)),
        _log(pace.high / max(1e-9, pace.low)),
        *map(float, flags),
    )


def learn(records: Sequence[Record]) -> Correction | None:
    """The best correction; None where there are too few records for bounds."""
    if len(records) < FEWEST:
        return None
    inputs = np.array([record.features for record in records])
    errors = np.array([record.error for record in records])
    folds = _folds([record.group for record in records])
    fits: dict[str, _Fit] = {"median": _median, "alike": _alike}
    if len(records) >= FEWEST_LINEAR:
        fits["linear"] = _linear
    held_out = {name: _held_out(fit, inputs, errors, folds) for name, fit in fits.items()}
    best = min(fits, key=lambda name: float(np.abs(errors - held_out[name]).mean()))
    bounds = factors(_cases(records, held_out[best]))
    assert bounds is not None, "there are enough"
    model = fits[best](inputs, errors)
    own = _own_bounds(records, errors, held_out[best])
    return Correction(best, model, bounds, len(records), own, _by_group(records))


def _own_bounds(records: Sequence[Record], errors: _Array, predicted: _Array) -> Range | None:
    """The bounds of those whose groups have other records; None where they are too few, or where
    these do not help."""
    remaining = errors - predicted
    alike: dict[tuple[str, bool], list[int]] = {}
    for place, record in enumerate(records):
        alike.setdefault((record.group, _packed(record.features)), []).append(place)
    shifts = {
        place: _shift([float(remaining[other]) for other in places if other != place])
        for places in alike.values()
        if len(places) > 1
        for place in places
    }
    places = sorted(shifts)
    if len(places) < FEWEST:
        return None
    by = np.array([shifts[place] for place in places])
    if np.abs(remaining[places] - by).mean() >= np.abs(remaining[places]).mean():
        return None
    return factors(_cases([records[place] for place in places], predicted[places] + by))


def _cases(records: Sequence[Record], predicted: _Array) -> list[tuple[Range, float]]:
    return [
        (_corrected(record.computed, by), record.happened)
        for record, by in zip(records, predicted, strict=True)
    ]


def _by_group(records: Sequence[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.group, []).append(record)
    return found


def _shift(remaining: Sequence[float]) -> float:
    """What is added by what remains of some records, at least one: half of it of a single one."""
    count = len(remaining)
    return float(np.median(remaining)) * count / (count + 1)


def _packed(features: Sequence[float]) -> bool:
    """Whether pages are compressed by channels."""
    return len(features) >= _FLAGS and bool(features[-_FLAGS])


def _folds(groups: Sequence[str]) -> NDArray[np.int64]:
    """Which part each record is held out with."""
    known = {group: n % _FOLDS for n, group in enumerate(sorted(set(groups)))}
    if len(known) < _FEWEST_GROUPS:
        return np.arange(len(groups)) % _FOLDS
    return np.array([known[group] for group in groups])


def _held_out(fit: _Fit, inputs: _Array, errors: _Array, folds: NDArray[np.int64]) -> _Array:
    predicted = np.zeros(len(errors))
    for fold in np.unique(folds):
        out = folds == fold
        model = fit(inputs[~out], errors[~out])
        predicted[out] = [model(each) for each in inputs[out]]
    return predicted


def _median(_: _Array, errors: _Array) -> _Model:
    middle = float(np.median(errors))
    return lambda _: middle


def _alike(inputs: _Array, errors: _Array) -> _Model:
    """The median of those whose pages are sent alike, where they are enough."""
    every = float(np.median(errors))
    kinds: dict[tuple[float, ...], list[float]] = {}
    for row, error in zip(inputs, errors, strict=True):
        kinds.setdefault(tuple(row[-_FLAGS:-1]), []).append(float(error))
    middles = {
        kind: float(np.median(found)) for kind, found in kinds.items() if len(found) >= _FOLDS
    }
    return lambda given: middles.get(tuple(given[-_FLAGS:-1]), every)


def _linear(inputs: _Array, errors: _Array) -> _Model:
    middle, spread = inputs.mean(axis=0), inputs.std(axis=0)
    spread = np.where(spread < 1e-9, 1.0, spread)
    rows = np.column_stack([np.ones(len(errors)), (inputs - middle) / spread])
    ridge = _RIDGE * np.eye(rows.shape[1])
    ridge[0, 0] = 0.0
    found = np.zeros(rows.shape[1])
    found[0] = np.median(errors)
    for _ in range(_ROUNDS):
        weights = np.minimum(1.0, _HUBER / np.maximum(np.abs(errors - rows @ found), 1e-9))
        found = np.linalg.solve((rows.T * weights) @ rows + ridge, (rows.T * weights) @ errors)

    def model(given: Sequence[float]) -> float:
        scaled = (np.asarray(given) - middle) / spread
        return float(found[0] + scaled @ found[1:])

    return model


def _corrected(computed: Range, by: float) -> Range:
    return computed.scaled(Range.exactly(math.exp(max(-_MOST, min(_MOST, by)))))


def _log(value: float, least: float = 1e-9) -> float:
    return math.log(max(least, value))
