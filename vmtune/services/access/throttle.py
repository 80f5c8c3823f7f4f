"""Slows down failed authentications, in bounded memory."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from vmtune.errors import TooManyAttempts

_FORGOTTEN_AFTER_S = 900.0
_MOST = 10_000
_DOUBLINGS = 16


@dataclass(slots=True)
class _Record:
    failures: int
    since: float
    until: float


class Throttle:
    """Failures by key: some are free, then each doubles the wait before the next attempt.

    An attempt counts as failed until it succeeds, so that a thousand at once are not a
    thousand free ones. What failed last fifteen minutes ago is forgotten, and so is the one
    that failed longest ago where ten thousand others have failed since.

    :param free: failures without a wait.
    :param longest_s: the longest wait.
    :param clock: seconds.
    """

    def __init__(
        self, free: int, longest_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._free = free
        self._longest_s = longest_s
        self._clock = clock
        self._records: OrderedDict[str, _Record] = OrderedDict()

    def __len__(self) -> int:
        return len(self._records)

    def attempt(self, key: str) -> None:
        """Count an attempt.

        :raise TooManyAttempts: it is too early; it is neither checked nor counted.
        """
        now = self._clock()
        record = self._records.pop(key, None)
        if record is not None and now - record.since >= _FORGOTTEN_AFTER_S:
            record = None
        record = record or _Record(0, now, now)
        self._records[key] = record
        if now < record.until:
            raise TooManyAttempts(
                "too many failed authentications",
                wait_s=math.ceil(record.until - now),
                remedy="wait as long as Retry-After says, then check the token",
            )
        record.failures += 1
        record.since = now
        beyond = record.failures - self._free
        if beyond >= 0:
            record.until = now + min(2.0 ** min(beyond, _DOUBLINGS), self._longest_s)
        while len(self._records) > _MOST:
            self._records.popitem(last=False)

    def succeeded(self, key: str) -> None:
        """Start afresh."""
        self._records.pop(key, None)


def key_of(address: str) -> str:
    """The key of an address: all of an IPv6 customer's network is one."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)
