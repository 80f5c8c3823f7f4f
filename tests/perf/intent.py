"""Are intents kept, beside the policies of others? Migrations between two hosts over a capped link.

Workloads are drawn from ``SEED=``, and in each block every arm migrates each workload once, in an
order of its own: by intent, and by the shipped profiles of others. A block's guest goes to and fro.
The links between the hosts' network namespaces carry what was drawn, and each migration may use all
of it. The silence is the longest gap of the guest's heartbeat, the slowdown the hardest throttle
that samples saw. What goes on beyond its deadline is aborted, and has not kept it.

Whether a throttle suffices depends on how much of its CPU time a guest needs on this machine. So
the slowdown that is allowed is raised, before the blocks, until a migration that is throttled by it
from the start keeps the other goals. Each workload also has an intent that cannot be kept, since
all of its memory takes twice the deadline to send: is that refused beforehand?

Two workloads, one block and three rivals by default, some 6 minutes; ``FULL=1``, or a file of
RESULTS: six workloads, ten BLOCKS, all rivals. What RESULTS has is not done again, so that it can
be stopped and go on. ``MINUTES=`` begins nothing after so many. ``LANES=`` are labs side by side,
each of which has some blocks of one workload. ``RIVALS=`` names some of the profiles; auto-converge
is always needed. The machine should have nothing else to do. ``python -m tests.perf.intent_table
RESULTS`` makes the tables of docs/benchmarks.md.

    SEED=1 LANES=3 MINUTES=55 RIVALS="auto-converge nova-force" \\
        python -m tests.perf.intent [RESULTS [BLOCKS]]
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from tests.perf.intent_drawn import (
    BEAT_MS,
    KINDS,
    MIB,
    SLOWDOWNS_PERCENT,
    Drawn,
    drawn,
    with_slowdown,
)
from tests.perf.intent_results import (
    OURS,
    REFUSED,
    Done,
    Key,
    Results,
    checks_of,
    whole_blocks,
)
from tests.perf.report import environment, finish
from tests.perf.support import folder
from tests.support.live import ENDED, Live, live, wait_for
from vmtune import lab
from vmtune.bench.migration.guest_listener import GuestListener
from vmtune.client.connection.errors import ClientError
from vmtune.model.migration.intent import still_ms

T = TypeVar("T")
SEED = os.environ.get("SEED", "1")
FULL = bool(os.environ.get("FULL"))
FEW_WORKLOADS, FEW_BLOCKS = 2, 1
LANES = int(os.environ.get("LANES", "1"))
MINUTES = float(os.environ.get("MINUTES", "inf"))
MEMORY_BYTES = 256 * MIB
FEW = ("qemu-defaults", "auto-converge", "kubevirt-vep-291")
ALL = (
    *("qemu-defaults", "auto-converge", "nova-abort", "nova-force"),
    *("ovirt-minimal-downtime", "ovirt-suspend-workload", "ovirt-postcopy"),
    *("kubevirt", "kubevirt-postcopy", "kubevirt-vep-248", "kubevirt-vep-291"),
)
BLOCKS = 10
_FIRST_DOWNTIME_SHARE = 0.6
"""Of the silence that is allowed, less what a throttled guest stands still at a time, the downtime
limit of a migration that shows what is feasible."""
_FEASIBLE_SHARE = 0.75
"""It ends within this share of the deadline."""
_TRIES = 2
"""Other labs may have disturbed one."""
_LATE_S = 1.0
_SETTLED_S = 1.0
_IDLE_FOR_S = 15.0
_SEEN_WITHIN_S = 20.0
_STANDS_S = 120.0
"""What neither begins nor ends within this is left, and its guest with it."""
_FAILURES = 3
"""So many in a row that are no migration's end one lane is left."""
_AWAY = {"a": "b", "b": "a"}
_BEFORE_QEMU = ("queued", "preparing", "starting")
_LOOK_EVERY_S, _BEGUN_EVERY_S = 2.0, 0.1
"""Who looks more often is what the service is busy with."""


def cap(it: Live, mib_per_s: int) -> None:
    """Have the links between the hosts carry so much."""
    for host in it.status.hosts:
        found = _said("ip", "-n", host.namespace, "-o", "-4", "route", "show")
        device = found.split(" dev ")[1].split()[0]
        _said(
            *("ip", "netns", "exec", host.namespace, "tc", "qdisc", "replace", "dev", device),
            *("root", "tbf", "rate", f"{mib_per_s * 8 * 1024}kbit", "burst", "512kb"),
            *("latency", "50ms"),
        )


def _said(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    return done.stdout


class Guest:
    """A VM at work, and who listens to its heart. It goes to and fro between the hosts: one that
    was booted for each migration would take most of the campaign's time."""

    def __init__(self, it: Live, vm: lab.LabVm, listener: GuestListener) -> None:
        self.it = it
        self.vm = vm
        self.listener = listener

    @property
    def side(self) -> str | None:
        """The host on which it runs; None where it does not run."""
        found = self.it.states(self.vm)
        return next((side for side, state in found.items() if state == "running"), None)


@contextlib.contextmanager
def guest(it: Live, one: Drawn) -> Iterator[Guest]:
    """A guest that has written to all of its region."""
    name = f"intent-{one.kind}"
    with folder() as where:
        listener = GuestListener(where, BEAT_MS)
        try:
            settings = lab.VmSettings(
                name=name, memory_bytes=MEMORY_BYTES, workload=one.workload, listener=where
            )
            vm = lab.define_vm(it.settings, settings)
            wait_for(lambda: listener.start() is not None, "the guest to write")
            time.sleep(one.first_pass_s)
            yield Guest(it, vm, listener)
        finally:
            for host in it.status.hosts:
                for command in (("destroy", name), ("undefine", name)):
                    with contextlib.suppress(Exception):
                        lab.virsh(host.uri, *command)
            listener.close()


def order(one: Drawn, arm: str, templates: dict[str, Any]) -> dict[str, Any]:
    """What is asked of the service."""
    if arm == OURS:
        return {"intent": {**one.intent, "otherwise": "refuse"}}
    found = templates[arm]
    values = {**found["values"], "max_bandwidth_bytes_per_s": one.link_mib_per_s * MIB}
    return {"values": values, "steps": found["steps"]}


def migrate(
    it: Live, vm: lab.LabVm, to: str, body: dict[str, Any], given_up_s: float
) -> tuple[Any, float, float]:
    """The record of a migration at its end; the CPU time that the service used since QEMU began
    it, and how long that was: ordering one costs the same whatever it does."""
    process = it.service.process
    assert process is not None
    record = patiently(lambda: it.migrate(vm, to, **body))
    ordered = time.monotonic()
    while record["state"] in _BEFORE_QEMU:
        if time.monotonic() > ordered + _STANDS_S:
            raise TimeoutError(f"{record['id']} is still {record['state']}")
        time.sleep(_BEGUN_EVERY_S)
        record = it.record(record)
    used, began = _cpu_s(process.pid), time.monotonic()
    until = began + given_up_s
    while record["state"] not in ENDED:
        time.sleep(_LOOK_EVERY_S)
        record = it.record(record)
        if record["state"] == "active" and time.monotonic() > until:
            with contextlib.suppress(ClientError):  # it has just ended, or is asked once more
                it.client.delete(f"/migrations/{record['id']}")
        if time.monotonic() > until + _STANDS_S:
            raise TimeoutError(f"{record['id']} is still {record['state']}")
    return record, _cpu_s(process.pid) - used, time.monotonic() - began


def patiently(call: Callable[[], T]) -> T:
    """Again while the service refuses: it may not have seen yet where the guest has come to. An
    intent that cannot be kept by its forecast is refused for good."""
    until = time.monotonic() + _SEEN_WITHIN_S
    while True:
        try:
            return call()
        except ClientError as error:
            if is_infeasible(error) or time.monotonic() > until:
                raise
        time.sleep(_BEGUN_EVERY_S)


def is_infeasible(error: ClientError) -> bool:
    """Whether the service refuses because of the intent."""
    return any(problem.code == "intent_infeasible" for problem in error.problems)


@contextlib.contextmanager
def watched(listener: GuestListener) -> Iterator[Callable[[], float]]:
    """Within the block the guest's heart is listened to; yields what gives its longest silence so
    far, in milliseconds."""
    time.sleep(_SETTLED_S)
    listener.forget_silences()
    begun = time.monotonic()
    listener.watch(True)
    try:
        yield lambda: max((gap.duration_ms for gap in listener.silences(begun)), default=0.0)
    finally:
        listener.watch(False)


def idle_cpus(it: Live) -> float:
    """How many cores the service uses that has nothing to do."""
    process = it.service.process
    assert process is not None
    used = _cpu_s(process.pid)
    time.sleep(_IDLE_FOR_S)
    return (_cpu_s(process.pid) - used) / _IDLE_FOR_S


def measured(
    there: Guest, side: str, key: Key, one: Drawn, templates: dict[str, Any], idle: float
) -> Done:
    """One migration of a guest away from *side*.

    :param key: the seed, the workload's number, the block and the arm.
    :param idle: as :func:`idle_cpus`.
    """
    it, vm, listener = there.it, there.vm, there.listener
    to, arm = _AWAY[side], key[3]
    refused = None
    if arm == OURS:  # measured beforehand: that is not the migration's time
        refused = (planned(it, vm, to, one.intent), planned(it, vm, to, one.infeasible))
    deadline_s = one.intent["deadline_s"]
    body = order(one, arm, templates)
    try:
        with watched(listener) as longest_ms:
            begun, before = time.monotonic(), _busy_s()
            record, cpu_s, took_s = migrate(it, vm, to, body, deadline_s + _LATE_S)
            silence = longest_ms()
    except ClientError as error:
        if arm != OURS or not is_infeasible(error):
            raise
        return wrongly_refused(key, one, refused)
    busy = 100 * (_busy_s() - before) / (time.monotonic() - begun) / (os.cpu_count() or 1)
    samples = it.client.get(f"/migrations/{record['id']}/samples?limit=1000")["items"]
    total = record["totals"]["total_time_ms"] if record["totals"] else took_s * 1000
    hardest = max((each["throttle_percent"] for each in samples), default=0)
    pairs = pairwise(samples)
    lost = sum((b["at_ms"] - a["at_ms"]) * a["throttle_percent"] for a, b in pairs) / 100_000
    kept = (
        record["state"] == "completed"
        and silence <= one.intent["max_silence_ms"]
        and total <= deadline_s * 1000
        and hardest <= one.intent["max_slowdown_percent"]
    )
    cpu = max(0.0, cpu_s - idle * took_s)
    return Done(
        *(*key[:2], one.kind, *key[2:], record["state"], total, silence, hardest, lost),
        *(cpu, took_s, kept, refused, busy, one.intent["max_slowdown_percent"]),
    )


def feasible(it: Live, one: Drawn) -> Drawn:
    """*one* with as much slowdown, at least what was drawn, as a migration needs that is throttled
    by it from the start, to keep the other goals with time to spare."""
    drawn_percent = one.intent["max_slowdown_percent"]
    with guest(it, one) as there:
        for percent in (each for each in SLOWDOWNS_PERCENT if each >= drawn_percent):
            found = with_slowdown(one, percent)
            if any(kept_throttled(there, found) for _ in range(_TRIES)):
                return found
    raise RuntimeError(f"workload {one} cannot keep its intent by any throttle: another SEED")


def kept_throttled(there: Guest, one: Drawn) -> bool:
    """Whether a migration with the hardest throttle that its intent allows keeps the rest."""
    it, side, goals = there.it, there.side, one.intent
    if side is None:
        raise RuntimeError("the guest does not run")
    still = goals["max_silence_ms"] - still_ms(goals["max_slowdown_percent"])
    values = {
        "auto_converge": True,
        "throttle_trigger_threshold_percent": 1,
        "cpu_throttle_initial_percent": goals["max_slowdown_percent"],
        "max_cpu_throttle_percent": goals["max_slowdown_percent"],
        "downtime_limit_ms": round(still * _FIRST_DOWNTIME_SHARE),
        "max_bandwidth_bytes_per_s": goals["max_bandwidth_bytes_per_s"],
    }
    within_s = goals["deadline_s"] * _FEASIBLE_SHARE
    with watched(there.listener) as longest_ms:
        record, *_ = migrate(it, there.vm, _AWAY[side], {"values": values}, within_s)
        silence = longest_ms()
    return bool(
        record["state"] == "completed"
        and record["totals"]["total_time_ms"] <= within_s * 1000
        and silence <= goals["max_silence_ms"]
    )


def wrongly_refused(key: Key, one: Drawn, refused: tuple[bool, bool] | None) -> Done:
    """An intent that can be kept, and did not get its migration: it was not kept."""
    ours = (True, refused[1]) if refused is not None else None
    none = (0.0, 0.0, 0, 0.0, 0.0, 0.0)
    slowdown = one.intent["max_slowdown_percent"]
    return Done(*key[:2], one.kind, *key[2:], REFUSED, *none, False, ours, 0.0, slowdown)


def _busy_s() -> float:
    """Seconds for which cores of this machine were busy since it was started."""
    user, nice, system, _, _, irq, softirq, *_ = (
        int(part) for part in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def planned(it: Live, vm: lab.LabVm, to: str, intent: dict[str, Any]) -> bool:
    """Whether the plan refuses the intent."""
    body = {"destination": to, "intent": intent}
    plan = patiently(lambda: it.client.post(f"/vms/{vm.uuid}/plan", body))
    return bool(plan["intent"]["refused"])


def _cpu_s(pid: int) -> float:
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


Part = tuple[int, range]
"""A workload's number, and some of its blocks."""


def parts(workloads: int, blocks: int) -> deque[Part]:
    """Halves of the workloads' blocks: lanes that take one after the other end at about the same
    time."""
    first = range((blocks + 1) // 2)
    halves = (first, range(len(first), blocks))
    return deque((number, half) for half in halves if half for number in range(workloads))


def lane(
    number: int, left: deque[Part], arms: Sequence[str], results: Results, until: float
) -> None:
    """One part after the other of what is *left*, each in a lab of its own: what the service learns
    of a path would be wrong for links that carry more or less."""
    while time.monotonic() < until:
        try:
            drawn_as, blocks = left.popleft()
        except IndexError:
            return
        with folder() as state, live(state, number=95 - number) as it:
            part(it, drawn_as, blocks, arms, results, until)


def part(
    it: Live, drawn_as: int, blocks: range, arms: Sequence[str], results: Results, until: float
) -> None:
    """Some blocks of a workload."""
    keys_of: dict[int, list[Key]] = {
        block: [
            (SEED, drawn_as, block, arm)
            for arm in random.Random(f"{SEED}/{drawn_as}/{block}").sample(arms, len(arms))
        ]
        for block in blocks
    }
    if all(results.has(key) for keys in keys_of.values() for key in keys):
        return
    query = f"/profile-templates?memory_bytes={MEMORY_BYTES}"
    templates = {each["name"]: each for each in it.client.get(query)["items"]}
    idle = idle_cpus(it)
    one, known = drawn(SEED, drawn_as), results.slowdown_percent(SEED, drawn_as)
    cap(it, one.link_mib_per_s)
    one = feasible(it, one) if known is None else with_slowdown(one, known)
    print(f"{drawn_as}: {one}", flush=True)
    failures = 0
    for keys in keys_of.values():
        while left := [key for key in keys if not results.has(key)]:
            if time.monotonic() > until:
                return
            try:
                for done in migrations(it, one, left, templates, idle, until):
                    results.add(done)
                    print(done, flush=True)
                    failures = 0
            except Exception:
                # Another guest: one fault must not cost the rest of the campaign.
                failures += 1
                if failures >= _FAILURES:
                    raise
                traceback.print_exc()


def migrations(
    it: Live, one: Drawn, keys: Sequence[Key], templates: dict[str, Any], idle: float, until: float
) -> Iterator[Done]:
    """Those of *keys*, of one guest, as far as it lives and the time allows."""
    with guest(it, one) as there:
        for key in keys:
            side = there.side
            if side is None or time.monotonic() > until:
                return  # a migration has cost the guest: another one
            yield measured(there, side, key, one, templates, idle)


def main() -> None:
    """Measure and report."""
    where = environment()
    full = FULL or len(sys.argv) > 1
    named = tuple(os.environ.get("RIVALS", "").split())
    arms = (OURS, *(named or (ALL if full else FEW)))
    workloads, blocks = (len(KINDS), BLOCKS) if full else (FEW_WORKLOADS, FEW_BLOCKS)
    blocks = int(sys.argv[2]) if len(sys.argv) > 2 else blocks
    until = time.monotonic() + MINUTES * 60
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(LANES) as pool:
        file = Path(sys.argv[1]) if len(sys.argv) > 1 else stack.enter_context(folder()) / "done"
        results = Results(file)
        left = parts(workloads, blocks)
        lanes = [pool.submit(lane, n, left, arms, results, until) for n in range(LANES)]
        broken = [error for each in lanes if (error := each.exception()) is not None]
        for error in broken:  # what the other lanes have measured counts
            traceback.print_exception(error)
    whole = whole_blocks(results.done, arms)
    if not whole:
        sys.exit("no block is whole yet: go on with the same RESULTS")
    raw = {"seed": SEED, "done": [asdict(each) for each in results.done]}
    finish("intent", list(checks_of(whole, arms)), raw, where)


if __name__ == "__main__":
    main()
