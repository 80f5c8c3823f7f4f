"""Tries every fault at random moments of migrations, and prints the table for the docs.

    python -m tests.fault [--tries 20] [--fault NAME] [--kind KIND] [--seed N] [--append FILE]

It needs root, libvirt, QEMU and PostgreSQL, and makes a lab of its own for each fault. All of it
takes hours: with --append each try is added to a file as soon as it is over, only those that the
file lacks are made, and the table is of all that are in it. However it ends, a summary says how
many tries there were, and in how many something was lost or doubled, a record was wrong, or
something was left.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.fault.faults import FAULTS
from tests.fault.harms import as_summary
from tests.fault.suite import Tried, as_markdown, left_to_try, note, noted, try_often
from tests.fault.testbed import Kind, testbed
from tests.support.hosts.live import why_no_lab
from tests.support.stores.postgres import why_no_postgres

_NUMBER = 70  # of the first lab's network
KINDS = {kind.name.lower().replace("_", "-"): kind for kind in Kind}
"""By the words that the command takes."""


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="vmtune-fault-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def _try_all(name: str, numbers: Sequence[int], seed: int, say: Callable[[Tried], None]) -> None:
    """Each try in turn. One that breaks the testbed counts as one in which something was lost, and
    the next is made on new testbed."""
    left = list(numbers)
    lab = _NUMBER + list(FAULTS).index(name)
    while left:
        with _folder() as folder, testbed(FAULTS[name].kind, folder, lab) as made:
            try:
                while left:
                    try_often(made, name, left[:1], seed, say)
                    del left[0]
            except Exception as error:
                traceback.print_exc()
                for service in made.services:
                    print(service.said()[-4000:], file=sys.stderr)
                why = f"{type(error).__name__}: {error}"
                say(Tried(name, seed, left.pop(0), 0, "", "not known", 0, (why,)))


def main() -> int:
    """0 when nothing was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.fault", description=__doc__)
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--fault", choices=FAULTS, action="append")
    parser.add_argument("--kind", choices=KINDS, action="append", help="all faults of this kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--append", type=Path, metavar="FILE")
    asked = parser.parse_args()
    # As Ctrl-C would: labs and services are taken down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    why_not = why_no_lab()
    if why_not:
        print(why_not, file=sys.stderr)
        return 1
    found = noted(asked.append) if asked.append else []

    def say(tried: Tried) -> None:
        print(f"  {tried}", flush=True)
        found.append(tried)
        if asked.append:
            note(asked.append, tried)

    try:
        _try_each(names_of(asked.fault or (), asked.kind or ()), found, asked, say)
    finally:
        print()
        print("\n".join(as_markdown(found)))
        print()
        print("\n".join(as_summary(found)))
    return 0 if not any(tried.wrong for tried in found) else 1


def names_of(faults: Sequence[str], kinds: Sequence[str]) -> list[str]:
    """The faults that were asked for; all where none was."""
    if not faults and not kinds:
        return list(FAULTS)
    of_kinds = {KINDS[kind] for kind in kinds}
    return [name for name, each in FAULTS.items() if name in faults or each.kind in of_kinds]


def _try_each(
    names: Sequence[str],
    found: list[Tried],
    asked: argparse.Namespace,
    say: Callable[[Tried], None],
) -> None:
    for name in names:
        fault = FAULTS[name]
        if fault.kind in (Kind.POSTGRES, Kind.TWO) and why_no_postgres():
            print(f"== {fault.name}: left out: {why_no_postgres()}", flush=True)
            continue
        print(f"== {fault.name}, {fault.kind.value}", flush=True)
        _try_all(name, left_to_try(found, name, asked.seed, asked.tries), asked.seed, say)


if __name__ == "__main__":
    sys.exit(main())
