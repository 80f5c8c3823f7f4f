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


def programs() -> dict[str, str]:
    """The modules of all benchmarks by name: those that are run and give a table of checks."""
    marks = ('if __name__ == "__main__":', "finish(")
    return {
        path.stem: ".".join((__package__, *path.relative_to(_FOLDER).with_suffix("").parts))
        for path in sorted(_FOLDER.rglob("*.py"), key=lambda path: path.stem)
        if path.stem != "__main__" and all(mark in path.read_text("utf-8") for mark in marks)
    }


def run(name: str, module: str) -> list[dict[str, object]]:
    """Run one benchmark, showing what it prints: its last line is JSON, and has its checks."""
    print(f"== {name}", flush=True)
    process = subprocess.Popen([sys.executable, "-m", module], stdout=subprocess.PIPE, text=True)
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
    known = programs()
    wanted = sys.argv[1:] or [name for name in known if name not in _BY_NAME_ALONE]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
        return 1
    rows = [(name, check) for name in wanted for check in run(name, known[name])]
    print()
    for name, check in rows:
        mark = "holds" if check["holds"] else "FAILS"
        relation = "<=" if check.get("sense") == "max" else ">="
        value = f"{check['value']:.4g} {check['unit']}"
        print(f"{mark}  {name:18} {check['metric']:48} {value:>14}  {relation} {check['bound']}")
    return 0 if all(check["holds"] for _, check in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
