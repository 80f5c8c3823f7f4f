"""How far what is computed turned out to be from what happened."""

from __future__ import annotations

from dataclasses import dataclass

from vmtune.forecast.ranges import Range


@dataclass(frozen=True, slots=True)
class Errors:
    """What happened, as a share of the lower bound, the likely value and the upper bound that were
    computed: 5 %, 50 % and 95 % of migrations are below.

    :param still_ms: what a guest stands still without sending: stopping, the devices' state,
        starting.
    """

    total: Range
    silence: Range
    sent: Range
    still_ms: float


AS_COMPUTED = Errors(Range.exactly(1.0), Range.exactly(1.0), Range.exactly(1.0), 10.0)
"""Nothing is corrected."""
USUAL = Errors(Range(0.79, 1.0, 1.0), Range(0.16, 0.66, 2.7), Range(0.8, 1.0, 1.0), 10.0)
"""Of 71 migrations of tests/perf/forecasts/dataset.py that ended on one machine, as rough as that:
of the bounds that are computed, the lower ones by the first factor, the upper ones by the last."""
