"""What reads of those with tokens wait for while others flood the service.

Slices of reads at a fixed rate over TCP (tests/support/served/load.py), in turns: undisturbed;
while 4 strangers send 40 bodies of 85,000 keys to the sign-in; while they send such bodies without
end; while a token's holder imports 60 MB of JSON, again and again; while strangers open 2,000 idle
and 500 slow connections, and keep those that the service does not end, which are counted. Each
flooded slice is compared with the undisturbed one of its round.

    python -m tests.perf.fleets.flood [ROUNDS [ARM ...]]

The service keeps to one CPU (the setting ``cpus``): the other is for those who flood and for the
generator. Strangers and generator come from one address, which is harder than life.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import resource
import socket
import sqlite3
import statistics
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from uuid import uuid4

from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import folder, variables
from tests.support.qemus.qemu import installed, running
from tests.support.served.asking import Door
from tests.support.served.load import Answers, Plan, send
from vmtune.admin.demo.service import Service, running_service
from vmtune.api.serving.connections import MAX_CONNECTIONS
from vmtune.hypervisor.linux import cpus

RATE_PER_S, WARM_S, SECONDS, ROUNDS = 200.0, 1.0, 8.0, 5
STRANGERS, BODIES, KEYS = 4, 40, 85_000
IMPORTED_BYTES = 60_000_000
IDLE, SLOW = 2000, 500
VMS = 10
MACHINE = ("-machine", "none", "-nodefaults", "-display", "none")
MAX_RATIO, MAX_ANSWER_BYTES, MAX_GROWN_BYTES = 1.2, 64 << 10, 1 << 20
CPU = str(max(cpus.ALL))
BOUND = {"40 bodies", "import", "connections"}
"""Arms whose p99 has a bound; that of bodies without end is told."""
_SLOW_HEAD = b"POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


@dataclass
class Flood:
    """What those who flood were answered."""

    sent: int = 0
    largest_bytes: int = 0
    statuses: dict[int, int] = field(default_factory=dict)
    kept: list[int] = field(default_factory=list)
    """How many of the 2,500 connections the service still held at the end of each slice."""

    def note(self, status: int, answer_bytes: int) -> None:
        """One answer; status 0 where the connection was ended without one."""
        self.sent += 1
        self.largest_bytes = max(self.largest_bytes, answer_bytes)
        self.statuses[status] = self.statuses.get(status, 0) + 1


@contextmanager
def repeated(work: Callable[[], None], threads: int, least: int = 0) -> Iterator[None]:
    """*work* in each of *threads*: *least* times in all if given, else again and again for as long
    as the block runs."""
    ends = Event()
    turns = iter(range(least)) if least else itertools.count()

    def run() -> None:
        while not ends.is_set() and next(turns, None) is not None:
            work()

    started = [Thread(target=run) for _ in range(threads)]
    for thread in started:
        thread.start()
    try:
        yield
    finally:
        ends.set()
        for thread in started:
            thread.join()


@contextmanager
def strangers(port: int, told: Flood, bodies: int = 0) -> Iterator[None]:
    """4 without a token, who send bodies of 85,000 keys: so many in all, or without end."""
    body = json.dumps({f"k{number}": 1 for number in range(KEYS)}).encode()
    door = Door(port)

    def one() -> None:
        reply = door.ask("POST", "/session", body)
        told.note(reply.status, len(reply.content))

    with repeated(one, STRANGERS, bodies):
        yield


@contextmanager
def importer(port: int, token: str, told: Flood) -> Iterator[None]:
    """A holder of a token who imports 60 MB that are no run."""
    body = b'{"x": [' + b"[]," * (IMPORTED_BYTES // 3) + b"[]]}"
    door = Door(port)

    def one() -> None:
        reply = door.ask("POST", "/runs/import", body, token)
        told.note(reply.status, len(reply.content))

    with repeated(one, 1):
        yield


@contextmanager
def held_connections(port: int, told: Flood) -> Iterator[None]:
    """2,000 that send nothing, and 500 that are in the middle of a request. The service ends those
    beyond its limits, so it is counted how many it kept."""
    with ExitStack() as stack:
        opened = []
        for number in range(IDLE + SLOW):
            with contextlib.suppress(OSError):
                one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
                opened.append(one)
                if number >= IDLE:
                    one.sendall(_SLOW_HEAD)
        yield
        told.kept.append(sum(map(_is_held, opened)))


def _is_held(one: socket.socket) -> bool:
    """Whether the other end has neither answered nor ended the connection."""
    one.setblocking(False)
    try:
        one.recv(1)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def stored_bytes(at: Path) -> int:
    """What the records take, without what their log holds twice."""
    with contextlib.closing(sqlite3.connect(f"file:{at}/vmtune.db?mode=ro", uri=True)) as records:
        pages = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        return int(records.execute(pages).fetchone()[0])


def measure(
    service: Service, at: Path, rounds: int, wanted: Collection[str]
) -> tuple[dict[str, list[Answers]], Flood, int]:
    """The answers of each wanted arm's slices, what those who flood were told, and by how many
    bytes the database grew by 40 bodies in each round."""
    port = int(service.url.rpartition(":")[2])
    token = service.client.post("/tokens", {"name": "reader", "scopes": ["read"]})["token"]
    bench = service.client.post("/tokens", {"name": "importer", "scopes": ["bench"]})["token"]
    base = "/api/v1"
    kinds = {"VMs": [f"{base}/vms?limit=50"], "migrations": [f"{base}/migrations?limit=50"],
             "hosts": [f"{base}/hosts?limit=50"], "profiles": [f"{base}/profiles"]}  # fmt: skip
    told = Flood()
    arms: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
        "undisturbed": contextlib.nullcontext,
        "40 bodies": lambda: strangers(port, told, BODIES),
        "bodies without end": lambda: strangers(port, Flood()),
        "import": lambda: importer(port, bench, told),
        "connections": lambda: held_connections(port, told),
    }
    if wanted:
        arms = {name: arm for name, arm in arms.items() if name in {"undisturbed", *wanted}}
    found: dict[str, list[Answers]] = {name: [] for name in arms}
    grown_bytes = 0
    for number in range(-1, rounds):
        order = list(arms) if number % 2 else list(reversed(arms))
        for name in order:
            plan = Plan(port, token, RATE_PER_S, WARM_S, SECONDS, kinds,
                        dict.fromkeys(kinds, 1), seed=number + 2)  # fmt: skip
            before = stored_bytes(at)
            with arms[name]():
                answers = send(plan)
            if name == "40 bodies":
                grown_bytes += stored_bytes(at) - before
            if number >= 0:  # the round before the first is to warm up
                found[name].append(answers)
    return found, told, grown_bytes


def main() -> None:
    """Measure and report."""
    where = environment()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))
    with ExitStack() as stack:
        at = stack.enter_context(folder())
        for each in range(VMS):
            stack.enter_context(
                running(installed(), at / "qmp", f"q{each}", uuid4(), machine=MACHINE)
            )
        stack.enter_context(variables(VMTUNE_CPUS=CPU))
        service = stack.enter_context(running_service(at))
        service.client.post("/hosts", {"name": "here", "uri": f"qmp+unix://{at}/qmp"})
        found, told, grown_bytes = measure(service, at, rounds, sys.argv[2:])
    quiet = [answers.percentile(99) for answers in found["undisturbed"]]
    checks = []
    for name, slices in found.items():
        late = [answers.percentile(99) for answers in slices]
        middle = [answers.percentile(50) for answers in slices]
        print(f"{name}: p99 {spread(late)} ms, median {spread(middle)} ms")
        ratio = statistics.median(a / b for a, b in zip(late, quiet, strict=True))
        print(f"  {ratio:.2f} times the undisturbed p99 of its round, in the median")
        if name in BOUND:
            checks.append(Check(f"p99 beside: {name}", ratio, "times", MAX_RATIO, "max"))
        served = sum(answers.statuses.get("200", 0) for answers in slices)
        asked = sum(len(answers.all_ms) for answers in slices)
        checks.append(Check(f"reads answered: {name}", 100 * served / asked, "%", 100, "min"))
    print(f"{told.sent} bodies, answered {told.statuses}")
    if told.kept:
        print(f"of {IDLE + SLOW} connections the service kept {told.kept}")
        most = max(told.kept)
        checks.append(Check("connections kept", most, "", MAX_CONNECTIONS, "max"))
    checks += [
        Check("largest answer", told.largest_bytes, "bytes", MAX_ANSWER_BYTES, "max"),
        Check("growth of the database", grown_bytes, "bytes", MAX_GROWN_BYTES, "max"),
    ]
    raw = {name: [answers.all_ms for answers in slices] for name, slices in found.items()}
    finish("flood", checks, {"took_ms": raw, "statuses": told.statuses,
                              "kept": told.kept}, where)  # fmt: skip


if __name__ == "__main__":
    main()
