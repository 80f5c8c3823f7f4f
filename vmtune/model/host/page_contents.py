"""What a guest's memory holds, by a sample of its pages."""

from __future__ import annotations

from dataclasses import dataclass, field

RUNS, RUN_BYTES = 1024, 1 << 20
"""Which pages are there is looked up in so many runs of memory at random places, in all of a guest
that has no more."""


@dataclass(frozen=True, slots=True)
class PageContents:
    """Two figures; of the pages themselves nothing is kept.

    :param pages: how many were looked at, of those that are backed by memory; above 0.
    :param zero_share: of them, how many hold nothing but zeros, 0 to 1.
    :param packed_share: bytes for a byte of the others once zlib has compressed them at level 1,
        above 0; 1 where there are no others.
    """

    pages: int
    zero_share: float
    packed_share: float


@dataclass(frozen=True, slots=True)
class PageSample:
    """Pages of a guest that were looked at.

    :param contents: what they hold.
    :param changed: what those hold that changed since they were looked at before; None where none
        did, or it was the first look.
    :param there_share: of the guest's memory, how much is mapped, be it to the kernel's pages of
        zeros, 0 to 1; None for a second look.
    :param digests: of each page, by its address in QEMU's process: to look again.
    """

    contents: PageContents
    changed: PageContents | None = None
    there_share: float | None = None
    digests: dict[int, int] = field(default_factory=dict, repr=False)
