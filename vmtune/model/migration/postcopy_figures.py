"""What a post-copy cost the guest, as the destination's QEMU counts it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FIRST_BUCKET_US = 1
"""Of the distribution, the N-th count is of faults that took 2^N to 2^(N+1) microseconds
(postcopy-latency-dist in QEMU's qapi/migration.json, since 10.1)."""


@dataclass(frozen=True, slots=True)
class PostcopyFigures:
    """How long vCPUs waited for pages that were still on the source, by QEMU's capability
    ``postcopy-blocktime``.

    :param blocked_ms: all vCPUs waited at once: the guest stood still.
    :param vcpu_blocked_ms: each vCPU, in their order.
    :param latency_ns: of a page, the mean; None before QEMU 10.1.
    :param latency_counts: pages by latency, see :data:`FIRST_BUCKET_US`; empty before QEMU 10.1.
    :param vcpu_latency_ns: the mean for each vCPU; empty before QEMU 10.1.
    """

    blocked_ms: int
    vcpu_blocked_ms: tuple[int, ...] = ()
    latency_ns: int | None = None
    latency_counts: tuple[int, ...] = ()
    vcpu_latency_ns: tuple[int, ...] = ()

    def latency_at_most_us(self, share: float) -> int | None:
        """An upper bound of the latency of that share of pages, 0 to 1: the end of its bucket; None
        where QEMU has no distribution or no page was waited for."""
        wanted = share * sum(self.latency_counts)
        if not wanted:
            return None
        reached = itertools.accumulate(self.latency_counts)
        bucket = next(n for n, count in enumerate(reached) if count >= wanted)
        return FIRST_BUCKET_US << (bucket + 1)


def read_postcopy_figures(
    reply: Mapping[str, Any],  # any JSON: the QMP reply as it came
) -> PostcopyFigures | None:
    """The destination's query-migrate; None where QEMU did not count."""
    if "postcopy-blocktime" not in reply:
        return None
    return PostcopyFigures(
        reply["postcopy-blocktime"],
        tuple(reply.get("postcopy-vcpu-blocktime", ())),
        reply.get("postcopy-latency"),
        tuple(reply.get("postcopy-latency-dist", ())),
        tuple(reply.get("postcopy-vcpu-latency", ())),
    )
