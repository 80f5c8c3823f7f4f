"""Rows of the recovery of post-copy, which vmtune itself does during a migration."""

from __future__ import annotations

from enum import StrEnum

from vmtune.model.tunables.tunable import Kind, Route, Side, Tunable
from vmtune.units import Unit

ATTEMPTS = 20
WITHIN_S = 3600


class PostcopyRecovery(StrEnum):
    """Who recovers a migration that is paused in post-copy."""

    AUTO = "auto"
    MANUAL = "manual"


POSTCOPY = (
    Tunable(
        "postcopy_recovery", "Recovery of post-copy",
        "auto: when the connection breaks in post-copy, a new one is tried as soon as the hosts "
        "reach each other again. manual: only vmtune migration recover does so. Migrations that "
        "others have started are recovered by themselves only where their profile says auto.",
        Kind.CHOICE, Route.CONTROL, Side.SOURCE, default=PostcopyRecovery.AUTO.value,
        choices=tuple(choice.value for choice in PostcopyRecovery),
    ),
    Tunable(
        "postcopy_recovery_attempts", "Attempts to recover post-copy",
        "How often a new connection is tried after each pause; the waits between them double, from "
        "a second to a minute.",
        Kind.INTEGER, Route.CONTROL, Side.SOURCE, Unit.NONE, ATTEMPTS, 1, 1000,
    ),
    Tunable(
        "postcopy_recovery_within_s", "Time to recover post-copy",
        "No attempt begins later after a pause.",
        Kind.INTEGER, Route.CONTROL, Side.SOURCE, Unit.S, WITHIN_S, 1, 7 * 86400,
    ),
)  # fmt: skip
