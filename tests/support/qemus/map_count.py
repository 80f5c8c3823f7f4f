"""The machine's vm.max_map_count, which some tests set and others compute from."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAP_COUNT = Path("/proc/sys/vm/max_map_count")


@contextmanager
def map_count_held() -> Iterator[None]:
    """Within the block no other test sets it, nor computes from it."""
    with MAP_COUNT.open() as held:  # closed, it is unlocked
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
