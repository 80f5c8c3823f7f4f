"""Which downtime limits keep an intent's silence.

QEMU stops the guest once it takes what remains to be sendable within its downtime limit. The guest
then stands still for longer: what QEMU has sent already waits in the source's socket and in the
network, on a full path as much as the kernel lets a socket hold; devices' state is saved and
loaded, and the destination has to say that it has all (libvirt migrates with QEMU's return path).
None of that depends on the limit, so that it is left out of the silence as a time: as long as
completed migrations between the same two hosts stood still beyond their limits. Where none tells,
it is the time that a full socket takes on this path, which covers the published migrations by one
connection: of 70 that reached their limit 5 exceeded it by more, at most 12 ms.
"""

from __future__ import annotations

from collections.abc import Sequence

from vmtune.forecast.conditions import QEMU_LIMIT_MS
from vmtune.model.migration.downtime import DowntimeKept
from vmtune.model.migration.intent import Intent
from vmtune.model.migration.stated_intent import Beyond

_SHARE = 0.8
"""Of the silence that is allowed, what may be planned for sending where nothing is known of the
path: QEMU estimates the throughput over 100 ms, and the guest goes on writing until it is
stopped."""
_STILL_MS = 20
"""What a guest stands still without sending: stopping, the devices' state, starting."""
_UNSEEN_MS = 20
"""What QEMU's downtime does not count: until the guest is felt again. Its heartbeat was silent for
15 ms longer in the median of the published migrations."""
_ESTIMATED_SHARE = 0.95
"""The same share where it is known by how much longer guests stand still."""
_SOCKET_BYTES = 4 << 20
"""What Linux lets a TCP socket hold unsent at most (tcp_wmem)."""
_UNMEASURED_MOST = 0.35
"""Of the silence, what is left out at most for a path of which no migration tells."""
_REACHED = 0.8
"""A guest that stood still for less than this share of its limit had less left than the limit
allows, and does not tell what comes on top."""
_NEWEST = 10
_SPREAD = 1.1
"""They differ from each other."""
_FIRST_SHARE = 4
_MIB = 1 << 20


def expect_beyond(past: Sequence[DowntimeKept], bytes_per_s: float | None) -> Beyond | None:
    """For how long a guest is expected to stand still beyond its downtime limit.

    :param past: of completed migrations over the same path, the newest first.
    :param bytes_per_s: what the path carries; None where that is not known.
    :return: None where nothing tells.
    """
    telling = [each for each in past if each.downtime_ms >= each.limit_ms * _REACHED][:_NEWEST]
    seen = max((each.downtime_ms - each.limit_ms for each in telling), default=0)
    found = Beyond(round(_UNSEEN_MS + max(0, seen) * _SPREAD), len(telling))
    if found.measured:
        return found
    if bytes_per_s is None or bytes_per_s <= 0:
        return found if telling else None
    full = _STILL_MS + _UNSEEN_MS + _SOCKET_BYTES / bytes_per_s * 1000
    return Beyond(max(found.ms, round(full)), len(telling))


def highest_limit_ms(intent: Intent, beyond: Beyond | None = None) -> int:
    """The highest downtime limit by which the silence is kept; QEMU's own where none is stated.

    :param beyond: as :func:`expect_beyond`; what is not measured takes no more than a share of the
        silence.
    """
    silence = intent.max_silence_ms
    if silence is None:
        return QEMU_LIMIT_MS
    if beyond is None:
        return max(1, int(silence * _SHARE) - _STILL_MS)
    left_out = beyond.ms if beyond.measured else min(beyond.ms, silence * _UNMEASURED_MOST)
    return max(1, int((silence - left_out) * _ESTIMATED_SHARE))


def first_limit_ms(intent: Intent, beyond: Beyond | None = None) -> int:
    """The downtime limit to begin with where it is not known which one will do: a quarter of the
    highest."""
    return max(1, highest_limit_ms(intent, beyond) // _FIRST_SHARE)


def bandwidth_to_set(intent: Intent) -> int | None:
    """The bandwidth limit by which the intent's is kept; None without one. In whole MiB/s, since
    libvirt takes no other, unless it is less than one."""
    most = intent.max_bandwidth_bytes_per_s
    return most if most is None or most < _MIB else most - most % _MIB
