"""Corrects forecasts by those that were compared with what happened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import structlog

from vmtune.errors import VmtuneError
from vmtune.forecast.conditions import compresses, conditions_of
from vmtune.forecast.correction import Correction, Record, features, learn
from vmtune.forecast.errors import AS_COMPUTED
from vmtune.forecast.path import Throughput
from vmtune.forecast.probe import DirtyProbe
from vmtune.forecast.prospect import Prospect, expect
from vmtune.forecast.ranges import Range
from vmtune.model.migration.forecast_basis import Figure
from vmtune.model.tunables.tunable import Value
from vmtune.storage import Store

log = structlog.get_logger(__name__)

_MOST = 500
"""The latest: what a path and a model do changes."""
_AGAIN_S = 60.0
Corrections = Mapping[Figure, Correction]
_FEATURES, _COMPUTED = "features", "computed"


@dataclass(frozen=True, slots=True)
class Computed:
    """A forecast without any correction, and what its errors may depend on."""

    features: tuple[float, ...]
    figures: Mapping[Figure, Range]

    def document(self) -> dict[str, Any]:  # any: JSON
        """As it is kept with a migration."""
        figures = {
            figure.value: [found.low, found.likely, found.high]
            for figure, found in self.figures.items()
        }
        return {_FEATURES: list(self.features), _COMPUTED: figures}


def compute(probe: DirtyProbe, throughput: Throughput, values: dict[str, Value]) -> Computed | None:
    """It; None where no time is given."""
    found = expect(probe, throughput, conditions_of(values), compresses(values), errors=AS_COMPUTED)
    depends_on = features(probe, throughput, values, found)
    total, silence, sent = found.total_ms, found.silence_ms, found.sent_bytes
    if depends_on is None or total is None or silence is None or sent is None:
        return None
    figures = {Figure.TOTAL: total, Figure.SILENCE: silence, Figure.SENT: sent}
    return Computed(depends_on, figures)


def corrected(prospect: Prospect, computed: Computed, learnt: Corrections, vm: UUID) -> Prospect:
    """The prospect with the figures of which enough is learnt; the others have fixed bounds.

    :param vm: whose own records count more.
    """
    found = {
        figure: correction.apply(computed.features, computed.figures[figure], str(vm))
        for figure, correction in learnt.items()
    }
    return replace(
        prospect,
        total_ms=found.get(Figure.TOTAL, prospect.total_ms),
        silence_ms=found.get(Figure.SILENCE, prospect.silence_ms),
        sent_bytes=found.get(Figure.SENT, prospect.sent_bytes),
    )


def corrected_by(computed: Computed | None, learnt: Corrections) -> dict[Figure, int]:
    """How many records each figure is corrected by that is corrected at all."""
    if computed is None:
        return {}
    return {figure: correction.records for figure, correction in learnt.items()}


class Learning:
    """What the records of a service tell, computed anew once a minute at most."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: Corrections = {}
        self._looked_s: float | None = None

    async def corrections(self) -> Corrections:
        """By figure; without those of which too little is recorded."""
        now = time.monotonic()
        if self._looked_s is None or now - self._looked_s >= _AGAIN_S:
            self._looked_s = now
            try:
                self._known = await asyncio.to_thread(self._learn)
            except VmtuneError as error:
                log.info("nothing new is learnt of forecasts", reason=error.message)
        return self._known

    def _learn(self) -> Corrections:
        records: dict[Figure, list[Record]] = {figure: [] for figure in Figure}
        for vm, inputs, happened in self._store.forecasts.to_learn_from(_MOST):
            depends_on, computed = inputs.get(_FEATURES), inputs.get(_COMPUTED)
            if not depends_on or not computed:
                continue
            for figure in Figure:
                came = happened.of(figure)
                if came is not None:
                    said = Range(*computed[figure.value])
                    records[figure].append(Record(tuple(depends_on), said, came, str(vm)))
        found = {figure: learn(each) for figure, each in records.items()}
        return {figure: each for figure, each in found.items() if each is not None}
