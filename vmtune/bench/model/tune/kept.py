"""What is kept of a study: its order as it was given, and how far it is.

The order and the trials are JSON here; what they mean is read by those that search.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

Json = Any  # any JSON


class StudyState(StrEnum):
    """How a study ended, or where it stands."""

    QUEUED = "queued"
    """Another study has the machine."""
    SEARCHING = "searching"
    PAUSED = "paused"
    """No run starts until it is resumed; the run that was active ran to its end."""
    CONFIRMING = "confirming"
    """The finalists are compared with the defaults in a campaign of their own."""
    COMPLETED = "completed"
    """Also where nothing better was found."""
    CANCELLED = "cancelled"
    FAILED = "failed"
    """It stopped because of a fault that resuming does not fix."""

    @property
    def ended(self) -> bool:
        """No run of it will be made any more."""
        return self in (StudyState.COMPLETED, StudyState.CANCELLED, StudyState.FAILED)


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
