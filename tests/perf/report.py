"""What every benchmark prints: its checks against bounds, where it ran, and the raw values."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Check:
    """A figure and the bound that it is to hold.

    :param sense: ``max``: the value may be at most *bound*; ``min``: at least.
    """

    metric: str
    value: float
    unit: str
    bound: float
    sense: Literal["max", "min"]

    @property
    def holds(self) -> bool:
        """Whether the bound is held."""
        return self.value <= self.bound if self.sense == "max" else self.value >= self.bound


def environment() -> dict[str, object]:
    """What of this machine matters for the figures."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {
        "kernel": platform.release(),
        "cpu": model,
        "cpus": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kvm": os.access("/dev/kvm", os.R_OK | os.W_OK),
        "python": platform.python_version(),
        "load_at_start": os.getloadavg()[0],
    }


def spread(values: Sequence[float]) -> str:
    """Median with the smallest and largest value: ``12.3 (11.8 to 19.0)``."""
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def finish(name: str, checks: Sequence[Check], raw: Mapping[str, object], where: object) -> None:
    """Print the checks, then everything as one line of JSON; exit 1 if a bound is not held."""
    for check in checks:
        relation = "at most" if check.sense == "max" else "at least"
        verdict = "holds" if check.holds else "DOES NOT HOLD"
        print(
            f"{check.metric}: {check.value:.3g} {check.unit} "
            f"({relation} {check.bound:g}): {verdict}"
        )
    document = {
        "name": name,
        "checks": [{**asdict(check), "holds": check.holds} for check in checks],
        "environment": where,
        "raw": raw,
    }
    print(json.dumps(document))
    sys.exit(0 if all(check.holds for check in checks) else 1)
