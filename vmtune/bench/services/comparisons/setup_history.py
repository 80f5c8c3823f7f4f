"""A metric of a scenario over time, as it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from vmtune.bench.model.metrics.table import Metric
from vmtune.bench.model.runs.run import RunState, Testbed
from vmtune.bench.model.trend.change import ChangeKind, FoundChange, SignStrength
from vmtune.model.tunables.tunable import Value


@dataclass(frozen=True, slots=True)
class Point:
    """A run's value.

    :param at_limit: it was given up then; the true value is more.
    """

    run: UUID
    at: datetime
    value: float
    fingerprint: str
    at_limit: bool = False


@dataclass(frozen=True, slots=True)
class LostRun:
    """A run that did not succeed and has no value."""

    run: UUID
    at: datetime
    state: RunState


@dataclass(frozen=True, slots=True)
class CompletionShift:
    """A place where the share of runs that succeed changed, among all runs.

    :param run: the first one after it.
    :param before: the share before, *after* since.
    """

    run: UUID
    since: datetime
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Shift:
    """A place where the values changed.

    :param at: the index of the first point after it.
    :param until: of a ramp, when its last level was reached.
    :param ratio: after by before, with its interval; None where there is none.
    :param spread: the spread since by the spread before; None where it was not judged.
    :param matters: the interval lies beyond the margin; of a change of spread always true.
    :param worse: it matters, and is for the worse.
    :param environment: the fields in which the environment became another near that place.
    :param environment_after: how many runs after the place that was; less than 0: before it.
    :param found: as it is kept, with its triage; None where it is not kept yet.
    """

    at: int
    run: UUID
    since: datetime
    kind: ChangeKind
    until: datetime | None
    ratio: float | None
    low: float | None
    high: float | None
    spread: float | None
    matters: bool
    worse: bool
    text: str
    environment: tuple[str, ...]
    environment_after: int = 0
    found: FoundChange | None = None


@dataclass(frozen=True, slots=True)
class Sign:
    """What the newest runs hint at. Provisional: histories in which nothing changed show one too.

    :param at: the index of the first of these points; they are the last ones.
    :param ratio: their median by the median before; None where there is none.
    :param false_at_most: of histories in which nothing changed, the share that shows such a sign
        at a look, 0 to 1.
    """

    at: int
    run: UUID
    since: datetime
    ratio: float | None
    strength: SignStrength
    false_at_most: float
    text: str


@dataclass(frozen=True, slots=True)
class SetupHistory:
    """Runs of one setup on one machine, in the order of time.

    :param id: the same for the same setup, whatever was run meanwhile.
    :param changes: None where they were not looked for; *reason* says why.
    :param sign: an early sign of the next change.
    :param lost: the runs that did not succeed and have no value, in the order of time.
    :param completion: changes of the share that succeeds; None where there are too few runs.
    """

    id: str
    host: str
    testbed: Testbed
    qemu: str
    profile: str
    values: Mapping[str, Value]
    points: tuple[Point, ...]
    changes: tuple[Shift, ...] | None = None
    reason: str = ""
    lost: tuple[LostRun, ...] = ()
    completion: tuple[CompletionShift, ...] | None = None
    sign: Sign | None = None


@dataclass(frozen=True, slots=True)
class History:
    """A metric over time, apart for each setup: what ran with other values is another thing.

    :param next: what to pass as *after* for the setups that follow; None at the end.
    """

    scenario: str
    metric: Metric
    strands: tuple[SetupHistory, ...]
    next: str | None = None
