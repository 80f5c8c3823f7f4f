"""Rows of the table of findings for tunables that packs add."""

from __future__ import annotations

from vmtune.model.findings.kinds import blocker

PACK_ROWS = (
    blocker(
        "pack_not_loaded",
        "no tunable {name} is known: it is of a pack that this service has not loaded",
        "name its pack in the setting packs and start the service again, or unset it",
    ),
    blocker(
        "pack_needs_consent",
        "the pack {pack} would use {names}, which the operator has not allowed",
        "add {names} to the setting {setting} and start the service again, or unset it",
    ),
)
