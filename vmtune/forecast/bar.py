"""The share of a migration's time that has passed, for a progress bar."""

from __future__ import annotations

from vmtune.forecast.outlook import Outlook

_MORE_THAN_FIRST_PASS = 1.25
"""What the whole is taken for, by its first pass, until the first synchronisation tells more."""
_MOST = 0.999


def time_share(elapsed_ms: float, outlook: Outlook, before: float) -> float:
    """The share, 0 to 1: never less than *before*, and 1 only for one that has ended. It stands
    where the migration will not end by itself."""
    left_ms = outlook.left_ms
    if outlook.ends is None and outlook.pass_left_ms is not None:
        whole_ms = (elapsed_ms + outlook.pass_left_ms) * _MORE_THAN_FIRST_PASS
        left_ms = max(0.0, whole_ms - elapsed_ms)
    if outlook.ends is False or left_ms is None:
        return before
    whole_ms = elapsed_ms + left_ms
    return max(before, min(_MOST, elapsed_ms / whole_ms)) if whole_ms > 0 else before
