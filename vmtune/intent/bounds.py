"""Which downtime limits keep an intent's silence."""

from __future__ import annotations

from vmtune.model.migration.intent import Intent

QEMU_LIMIT_MS = 300
"""QEMU's own downtime limit (DEFAULT_MIGRATE_SET_DOWNTIME in migration/options.c)."""
_SHARE = 0.8
"""Of the silence that is allowed, what may be planned for sending: QEMU estimates the throughput
over 100 ms, and the guest goes on writing until it is stopped."""
_STILL_MS = 20
"""What a guest stands still without sending: stopping, the devices' state, starting."""
_FIRST_SHARE = 4


def highest_limit_ms(intent: Intent) -> int:
    """The highest downtime limit by which the silence is kept; QEMU's own where none is stated."""
    if intent.max_silence_ms is None:
        return QEMU_LIMIT_MS
    return max(1, int(intent.max_silence_ms * _SHARE) - _STILL_MS)


def first_limit_ms(intent: Intent) -> int:
    """The downtime limit to begin with: a quarter of the highest."""
    return max(1, highest_limit_ms(intent) // _FIRST_SHARE)
