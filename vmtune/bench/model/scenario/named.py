"""How scenarios of every kind are named."""

from __future__ import annotations


class Named:
    """A scenario called ``family/variant``."""

    __slots__ = ()
    name: str

    @property
    def family(self) -> str:
        """Scenarios that are to be compared with each other have the same."""
        return self.name.partition("/")[0]

    @property
    def variant(self) -> str:
        """Which of the family."""
        return self.name.partition("/")[2]
