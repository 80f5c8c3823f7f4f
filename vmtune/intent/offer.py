"""What can be used for an intent: what both hosts can do, less what is set and what is refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from vmtune.model.migration.intent import Means
from vmtune.model.tunables.rules import contradictions
from vmtune.model.tunables.tunable import Value

Pinned = Mapping[str, Value | None]
"""What the user, or the profile, has set, which stays; None: it is to be left unset."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What both hosts can do.

    :param multifd: in parallel, likewise *zstd*, *zero_copy*, *postcopy*.
    :param postcopy_with_multifd: whether both QEMUs take the two together.
    :param free_cores: on the host that has fewer; None where that is not known.
    :param dirty_ring_entries: of the VM's dirty rings, where QEMU can bound by them how much a vCPU
        dirties, and nothing else empties them; else 0.
    :param copies: how many disks are copied with the memory.
    :param auto_converge: QEMU can withhold CPU time.
    """

    multifd: bool = False
    zstd: bool = False
    zero_copy: bool = False
    postcopy: bool = False
    postcopy_with_multifd: bool = False
    free_cores: float | None = None
    dirty_ring_entries: int = 0
    copies: int = 0
    auto_converge: bool = True

    @property
    def means(self) -> frozenset[Means]:
        """Those that can be used: a pause always."""
        found = {
            Means.PAUSE: True,
            Means.THROTTLE: self.auto_converge or self.dirty_ring_entries > 0,
            Means.POSTCOPY: self.postcopy,
            Means.COMPRESS: self.zstd,
            Means.ZERO_COPY: self.zero_copy,
        }
        assert set(found) == set(Means), "a means that nobody offers"
        return frozenset(means for means, can in found.items() if can)

    def left_by(self, pinned: Pinned) -> Offer:
        """What of it *pinned* leaves. A user who throttles is left to it."""
        values = {name: value for name, value in pinned.items() if value is not None}

        def fits(**more: Value) -> bool:
            same = all(pinned[name] == value for name, value in more.items() if name in pinned)
            return same and not contradictions({**values, **more})

        throttled = pinned.get("auto_converge") is True or pinned.get("dirty_limit") is True
        limits = not throttled and "auto_converge" not in pinned and fits(dirty_limit=True)
        return replace(
            self,
            multifd=self.multifd and fits(multifd=True),
            zstd=self.zstd and fits(multifd=True, multifd_compression="zstd"),
            zero_copy=self.zero_copy and fits(multifd=True, zero_copy_send=True),
            postcopy=self.postcopy and fits(postcopy=True),
            auto_converge=self.auto_converge and not throttled and fits(auto_converge=True),
            dirty_ring_entries=self.dirty_ring_entries if limits else 0,
        )

    def without(self, blocked: Collection[str | None]) -> Offer:
        """What is left of it where a plan refuses these tunables."""
        apart = "postcopy" in blocked and self.postcopy_with_multifd
        return replace(
            self,
            multifd=self.multifd and not {"multifd", "multifd_channels"} & set(blocked),
            zstd=self.zstd and "multifd_compression" not in blocked,
            zero_copy=self.zero_copy and "zero_copy_send" not in blocked,
            postcopy=self.postcopy and ("postcopy" not in blocked or apart),
            postcopy_with_multifd=self.postcopy_with_multifd and not apart,
            auto_converge=self.auto_converge and "auto_converge" not in blocked,
            dirty_ring_entries=0 if "dirty_limit" in blocked else self.dirty_ring_entries,
        )
