"""The parameters of the host kernel's SRCU."""

from __future__ import annotations

import contextlib
from pathlib import Path

SRCUTREE = Path("/sys/module/srcutree/parameters")


def srcutree(folder: Path = SRCUTREE) -> dict[str, str]:
    """Each parameter's value by its name; empty for a kernel without any."""
    found = {}
    with contextlib.suppress(OSError):
        for path in sorted(folder.iterdir()):
            with contextlib.suppress(OSError):
                found[path.name] = path.read_text(errors="replace").strip()
    return found
