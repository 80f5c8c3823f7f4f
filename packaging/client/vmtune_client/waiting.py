"""What can be waited for, and for how long."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .errors import VmtuneError
from .remote.events import ServerEvent, StreamItem


class Late(VmtuneError):
    """It has not ended in time. It goes on."""

    code = "late"

    @classmethod
    def after(cls, within_s: float | None, id: str) -> Deadline:
        """A deadline for the end of *id*; None for none."""
        return Deadline(None if within_s is None else time.monotonic() + within_s, within_s, id)


@dataclass(frozen=True, slots=True)
class Deadline:
    """Until when to wait."""

    at: float | None
    within_s: float | None
    id: str

    @property
    def left_s(self) -> float | None:
        """How many seconds are left; None for no limit."""
        return None if self.at is None else max(0.0, self.at - time.monotonic())

    def check(self) -> None:
        """:raise Late: the time is over."""
        if self.left_s == 0:
            raise Late(
                f"{self.id} has not ended within {self.within_s:g} s",
                remedy="wait again, or abort it",
            )


class Watched(Enum):
    """What can be waited for: the path of its records, and the topic of its events."""

    MIGRATION = "/migrations/{id}", "migration"
    RUN = "/runs/{id}", "run"
    CAMPAIGN = "/campaigns/{id}", "campaign"
    STUDY = "/studies/{id}", "study"
    EVACUATION = "/hosts/{host}/evacuations/{id}", "evacuation"

    @property
    def path(self) -> str:
        """Of a record."""
        return self.value[0]

    @property
    def topic(self) -> str:
        """Of its events."""
        return self.value[1]

    @staticmethod
    def is_progress(item: StreamItem) -> bool:
        """Whether it says only how far something is: that is no reason to read the record."""
        if not isinstance(item, ServerEvent):
            return False
        data: Any = item.data.get("data")  # any: JSON
        return isinstance(data, dict) and "share" in data
