"""The packs that benchmarks of a process can set."""

from __future__ import annotations

from collections.abc import Sequence

from vmtune.bench.model.settable import choose
from vmtune.packs import registry


def use_packs(names: Sequence[str]) -> None:
    """Let benchmarks of this process set the tunables of the packs that the setting names, too.

    :raise InvalidInput: a pack cannot be accepted.
    """
    choose(registry(names))
