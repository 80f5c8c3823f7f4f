"""Run the benchmarks, all or the one named, and print a table of their checks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent
_BY_NAME_ALONE = {"soak"}
"""Takes an hour, or ``MINUTES=``."""
_LONGEST_S = 1800


def programs() -> list[str]:
    """The names of all benchmarks: the modules that are run and give a table of checks."""
    marks = ('if __name__ == "__main__":', "finish(")
    return sorted(
        path.stem
        for path in _FOLDER.glob("*.py")
        if path.stem != "__main__" and all(mark in path.read_text("utf-8") for mark in marks)
    )


def run(name: str) -> list[dict[str, object]]:
    """Run one benchmark, showing what it prints: its last line is JSON, and has its checks."""
    print(f"== {name}", flush=True)
    process = subprocess.Popen(
        [sys.executable, "-m", f"tests.perf.{name}"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    last = ""
    for line in process.stdout:
        print(line, end="", flush=True)
        last = line
    process.wait(_LONGEST_S)
    try:
        checks: list[dict[str, object]] = json.loads(last)["checks"]
    except (ValueError, KeyError):
        return [{"metric": "it broke", "value": 0, "unit": "", "bound": 0, "holds": False}]
    return checks


def main() -> int:
    """Run what is asked for; 0 when every bound is held."""
    wanted = sys.argv[1:] or [name for name in programs() if name not in _BY_NAME_ALONE]
    unknown = [name for name in wanted if name not in programs()]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(programs())}")
        return 1
    rows = [(name, check) for name in wanted for check in run(name)]
    print()
    for name, check in rows:
        mark = "holds" if check["holds"] else "FAILS"
        relation = "<=" if check.get("sense") == "max" else ">="
        value = f"{check['value']:.4g} {check['unit']}"
        print(f"{mark}  {name:18} {check['metric']:48} {value:>14}  {relation} {check['bound']}")
    return 0 if all(check["holds"] for _, check in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
