"""What is kept of a study: its order as it was given, and how far it is.

The order and the trials are JSON here; what they mean is read by those that search.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from vmtune.bench.model.tune.records import StudyState

Json = Any  # any JSON


_S = StudyState
_ENDS = frozenset(state for state in StudyState if state.ended)
NEXT: Mapping[StudyState, frozenset[StudyState]] = {
    _S.QUEUED: _ENDS | {_S.SEARCHING, _S.CONFIRMING, _S.PAUSED},
    _S.SEARCHING: _ENDS | {_S.QUEUED, _S.PAUSED, _S.CONFIRMING},
    _S.CONFIRMING: _ENDS | {_S.QUEUED, _S.PAUSED},
    _S.PAUSED: _ENDS | {_S.QUEUED},
    **dict.fromkeys(_ENDS, frozenset()),
}
"""Which state may follow which."""
assert set(NEXT) == set(StudyState), "a state without its followers"


@dataclass(frozen=True, slots=True)
class KeptStudy:
    """A requested study.

    :param spec: the order, with all that was left open in it filled in.
    :param host: the machine that runs it.
    :param reason: why it is paused, or failed; empty where a person said so.
    :param finalists: the numbers of the trials that are confirmed; None before.
    :param campaign: the campaign that confirms them; None before.
    :param breaches: of the limits of the order, every one.
    :param result: what it found; None before its end, and where it has none.
    """

    id: UUID
    name: str
    spec: Mapping[str, Json]
    state: StudyState
    host: str
    created_at: datetime
    reason: str = ""
    finalists: tuple[int, ...] | None = None
    campaign: UUID | None = None
    breaches: tuple[Mapping[str, Json], ...] = ()
    result: Mapping[str, Json] | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
