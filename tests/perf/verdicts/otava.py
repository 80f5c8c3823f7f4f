"""Apache Otava on given series, in a Python of its own: it is no part of vmtune's environment.

``OTAVA=`` names a Python that has it. Otherwise a virtual environment is made in ``.cache/otava``,
for which PyPI must be reachable: ``make otava`` does that, and so does the benchmark.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

VERSION = "0.8.0"
_HOME = Path(__file__).parents[3] / ".cache" / "otava"
_PROGRAM = """
import json, sys
from otava.analysis import compute_change_points
for line in sys.stdin:
    found, _ = compute_change_points(json.loads(line))
    print(json.dumps([int(point.index) for point in found]))
"""


def ready_python() -> Path | None:
    """The Python that has Otava already; None without one."""
    given = os.environ.get("OTAVA")
    if given:
        return Path(given)
    return _HOME / "bin" / "python" if (_HOME / "bin" / "otava").exists() else None


@lru_cache(maxsize=1)
def python() -> Path | None:
    """The Python that has Otava, made if need be; None where it cannot be had."""
    ready = ready_python()
    if ready is not None:
        return ready
    found = _HOME / "bin" / "python"
    try:
        subprocess.run([sys.executable, "-m", "venv", _HOME], check=True, capture_output=True)
        subprocess.run(
            [found, "-m", "pip", "install", "--quiet", f"apache-otava=={VERSION}"],
            check=True,
            capture_output=True,
            timeout=300,
        )
    except (OSError, subprocess.SubprocessError) as error:
        print(f"Apache Otava cannot be installed: {error}")
        return None
    return found


def otava_changes(series: Sequence[Sequence[float]]) -> list[list[int]] | None:
    """Where Otava's defaults find changes in each; None without Otava."""
    program = python()
    if program is None:
        return None
    lines = "\n".join(json.dumps(list(each)) for each in series)
    ended = subprocess.run(
        [program, "-c", _PROGRAM], input=lines, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in ended.stdout.splitlines()]


if __name__ == "__main__":
    made = python()
    print(made or "none")
    sys.exit(made is None)
