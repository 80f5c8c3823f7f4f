"""Version numbers of QEMU and libvirt, comparable and printable."""

from __future__ import annotations

from typing import NamedTuple


class Version(NamedTuple):
    """major.minor.micro, ordered as tuples are."""

    major: int
    minor: int = 0
    micro: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.micro}"

    @property
    def short(self) -> str:
        """major.minor, as releases are called."""
        return f"{self.major}.{self.minor}"

    @classmethod
    def from_libvirt(cls, number: int) -> Version:
        """libvirt packs versions as major * 1,000,000 + minor * 1,000 + micro."""
        return cls(number // 1_000_000, number // 1_000 % 1_000, number % 1_000)

    @classmethod
    def parse(cls, text: str) -> Version:
        """``10``, ``10.0`` or ``10.0.2``.

        :raise ValueError: anything else.
        """
        return cls(*(int(part) for part in text.split(".", 2)))
