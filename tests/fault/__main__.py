"""Tries every fault at random moments of migrations, and prints the table for the docs.

    python -m tests.fault [--tries 20] [--fault NAME] [--seed N]

It needs root, libvirt, QEMU and PostgreSQL, and makes a lab of its own for each fault.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fault.faults import FAULTS, Fault
from tests.fault.ground import Kind, ground
from tests.fault.suite import Tried, as_markdown, try_often
from tests.support.live import why_no_lab
from tests.support.postgres import why_no_postgres

_NUMBER = 70  # of the first lab's network


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="vmtune-fault-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def _tried(fault: Fault, tries: int, seed: int, number: int) -> Tried:
    with _folder() as folder, ground(fault.kind, folder, number) as made:
        try:
            return try_often(made, fault, tries, seed, lambda line: print(line, flush=True))
        except BaseException:
            for service in made.services:
                print(service.said()[-4000:], file=sys.stderr)
            raise


def main() -> int:
    """0 when nothing was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.fault", description=__doc__)
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--fault", choices=FAULTS, action="append")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    # As Ctrl-C would: labs and services are taken down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    why_not = why_no_lab()
    if why_not:
        print(why_not, file=sys.stderr)
        return 1
    found: list[Tried] = []
    for place, name in enumerate(asked.fault or FAULTS):
        fault = FAULTS[name]
        if fault.kind in (Kind.POSTGRES, Kind.TWO) and why_no_postgres():
            print(f"== {fault.name}: left out: {why_no_postgres()}", flush=True)
            continue
        print(f"== {fault.name}, {fault.kind.value}", flush=True)
        found.append(_tried(fault, asked.tries, asked.seed, _NUMBER + place))
    print()
    print("\n".join(as_markdown(found)))
    return 0 if not any(tried.wrong for tried in found) else 1


if __name__ == "__main__":
    sys.exit(main())
