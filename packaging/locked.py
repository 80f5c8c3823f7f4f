"""Print the part of requirements.lock that running vmtune needs: nothing of development or tests.

    python3 packaging/locked.py [--extra NAME]... [NAME...]

With NAMEs, only those entries, whatever needs them. The lock says of each package what it came by
(`# via ...`); from the dependencies in pyproject.toml these notes lead to all that is needed.
Hashes and markers stay as they are.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ROOT = "vmtune (pyproject.toml)"


@dataclass(frozen=True, slots=True)
class Entry:
    """One package of the lock.

    :param text: its lines, as they are.
    :param via: what brought it: names of packages.
    """

    name: str
    text: str
    via: frozenset[str]


def normal(name: str) -> str:
    """A project's name as PEP 503 compares it; of a requirement, its beginning."""
    found = _NAME.match(name)
    assert found, name
    return re.sub(r"[-_.]+", "-", found[0]).lower().rstrip("-")


def entries(lock: str) -> list[Entry]:
    """The packages of a lock file that `uv pip compile --generate-hashes` wrote."""
    found = []
    for text in re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)[1:]:
        notes = [line.lstrip("# ") for line in text.splitlines() if line.startswith("    #")]
        via = [note.removeprefix("via").strip() for note in notes]
        assert any(via), f"nothing says what brought {text.splitlines()[0]}"
        names = frozenset(normal(one) for one in via if one and one != _ROOT)
        found.append(Entry(normal(text), text, names))
    return found


def needed(wanted: Iterable[str], among: list[Entry]) -> list[Entry]:
    """What *wanted* requirements need, themselves included, in the lock's order."""
    names = {normal(one) for one in wanted}
    missing = names - {entry.name for entry in among}
    assert not missing, f"not in the lock: {', '.join(sorted(missing))}; run `make lock`"
    while more := {e.name for e in among if e.via & names} - names:
        names |= more
    return [entry for entry in among if entry.name in names]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--extra", action="append", default=[])
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    among = entries((TOP / "requirements.lock").read_text())
    if asked.names:
        chosen = [entry for entry in among if entry.name in map(normal, asked.names)]
        assert len(chosen) == len(asked.names), f"not all in the lock: {asked.names}"
    else:
        project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
        extras = [project["optional-dependencies"][name] for name in asked.extra]
        chosen = needed(
            [*project["dependencies"], *(one for more in extras for one in more)], among
        )
    print("".join(entry.text for entry in chosen), end="")


if __name__ == "__main__":
    main()
