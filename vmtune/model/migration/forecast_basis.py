"""What a forecast was made from, and where what happened lies within its bounds."""

from __future__ import annotations

from enum import StrEnum


class Basis(StrEnum):
    """What a forecast was made from."""

    BEFORE = "before"
    """A measurement of the guest before its migration."""
    RUNNING = "running"
    """What was seen of the migration itself, when it could first be told whether it ends."""


class Position(StrEnum):
    """Where what happened lies."""

    WITHIN = "within"
    BELOW = "below"
    ABOVE = "above"


class Figure(StrEnum):
    """What is forecast with bounds."""

    TOTAL = "total_time"
    SILENCE = "silence"
    SENT = "bytes"
