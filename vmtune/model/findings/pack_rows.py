"""Rows of the table of findings for tunables that packs add."""

from __future__ import annotations

from vmtune.model.findings.kinds import blocker

PACK_ROWS = (
    blocker(
        "pack_not_loaded",
        "the tunable {name} is unknown: this service has not loaded its pack",
        "add its pack to the setting packs and restart the service, or unset it",
    ),
    blocker(
        "pack_needs_consent",
        "the pack {pack} needs {names}, which the operator has not allowed",
        "add {names} to the setting {setting} and restart the service, or unset it",
    ),
)
