"""How many cores of hosts have nothing to do: looked at twice, some time apart."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from vmtune.hypervisor.protocol import Driver

_LEAST_S = 0.5
"""Over less the kernel's ticks of 10 ms would count."""


@dataclass(frozen=True, slots=True)
class Idle:
    """What the hosts had idled by a moment, each in seconds of a core; None where one does not say.

    :param at_s: by :func:`time.monotonic`.
    """

    at_s: float
    idle_s: tuple[float | None, ...]


async def look(hosts: Sequence[Driver]) -> Idle:
    """The first look.

    :raise HostUnreachable: one of them does not answer.
    """
    found = await asyncio.gather(*(host.host_facts() for host in hosts))
    return Idle(time.monotonic(), tuple(facts.cpu_idle_s for facts in found))


async def free_cores(hosts: Sequence[Driver], before: Idle) -> float | None:
    """Since *before*, half a second at least: of the host that has the fewest; None where one does
    not say.

    :raise HostUnreachable: one of them does not answer.
    """
    if None in before.idle_s:
        return None
    await asyncio.sleep(max(0.0, before.at_s + _LEAST_S - time.monotonic()))
    return fewest(before, await look(hosts))


def fewest(before: Idle, now: Idle) -> float | None:
    """By two looks."""
    took_s = now.at_s - before.at_s
    pairs = list(zip(before.idle_s, now.idle_s, strict=True))
    shares = [(b - a) / took_s for a, b in pairs if a is not None and b is not None]
    return max(0.0, min(shares)) if shares and len(shares) == len(pairs) else None
