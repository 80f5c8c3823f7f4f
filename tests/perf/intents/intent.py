"""Are intents kept, beside the policies of others? Migrations between two hosts over a capped link.

Workloads are drawn from ``SEED=``, and in each block every arm migrates each workload once, in an
order of its own: by intent, and by the shipped profiles of others. A block's guest goes to and fro.
The links between the hosts' network namespaces carry what was drawn, and each migration may use all
of it. The silence is the longest gap of the guest's heartbeat, the slowdown the hardest throttle
that samples saw. What goes on beyond its deadline is aborted, and has not kept it.

Whether a throttle suffices depends on how much of its CPU time a guest needs on this machine. So
the slowdown that is allowed is raised, before the blocks, until four migrations that are throttled
by it from the start keep the other goals. Each block has one more of these, which tells whether the
intent could be kept then. Each workload also has an intent that cannot be kept, since all of its
memory takes twice the deadline to send: is that refused beforehand?

Two workloads, one block and three rivals by default, some 6 minutes; ``FULL=1``, or a file of
RESULTS: six workloads, ten BLOCKS, all rivals. What RESULTS has is not done again, so that it can
be stopped and go on. ``MINUTES=`` begins nothing after so many. ``LANES=`` are labs side by side,
each of which has some blocks of one workload. ``RIVALS=`` names some of the profiles; auto-converge
is always needed. The machine should have nothing else to do. ``python -m
tests.perf.intents.intent_table RESULTS`` makes the tables of docs/benchmarks.md.

    SEED=1 LANES=3 MINUTES=55 RIVALS="auto-converge nova-force" \\
        python -m tests.perf.intents.intent [RESULTS [BLOCKS]]
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.perf.intents.intent_drawn import (
    KINDS,
    MIB,
    SLOWDOWNS_PERCENT,
    Drawn,
    drawn,
    with_slowdown,
)
from tests.perf.intents.intent_guest import (
    AWAY,
    MEMORY_BYTES,
    Guest,
    busy_s,
    cap,
    guest,
    hardest,
    idle_cpus,
    is_infeasible,
    kept_throttled,
    migrate,
    patiently,
    watched,
)
from tests.perf.intents.intent_results import (
    BY_HAND,
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
from tests.support.hosts.live import Live, live
from vmtune import lab
from vmtune.client.connection.errors import ClientError

SEED = os.environ.get("SEED", "1")
FULL = bool(os.environ.get("FULL"))
FEW_WORKLOADS, FEW_BLOCKS = 2, 1
LANES = int(os.environ.get("LANES", "1"))
MINUTES = float(os.environ.get("MINUTES", "inf"))
FEW = ("qemu-defaults", "auto-converge", "kubevirt-vep-291")
ALL = (
    *("qemu-defaults", "auto-converge", "nova-abort", "nova-force"),
    *("ovirt-minimal-downtime", "ovirt-suspend-workload", "ovirt-postcopy"),
    *("kubevirt", "kubevirt-postcopy", "kubevirt-vep-248", "kubevirt-vep-291"),
)
BLOCKS = 10
_TRIES = 4
"""What a throttle does differs from one migration to the next: a workload that a throttle of 70 %
had slowed by half once was not slowed at all in two of five others."""
_LATE_S = 1.0
_FAILURES = 3
"""So many in a row that are no migration's end one lane is left."""


def order(one: Drawn, arm: str, templates: dict[str, Any]) -> dict[str, Any]:
    """What is asked of the service."""
    if arm == OURS:
        return {"intent": {**one.intent, "otherwise": "refuse"}}
    if arm == BY_HAND:
        return {"values": hardest(one)}
    found = templates[arm]
    values = {**found["values"], "max_bandwidth_bytes_per_s": one.link_mib_per_s * MIB}
    return {"values": values, "steps": found["steps"]}


def measured(
    there: Guest, side: str, key: Key, one: Drawn, templates: dict[str, Any], idle: float
) -> Done:
    """One migration of a guest away from *side*.

    :param key: the seed, the workload's number, the block and the arm.
    :param idle: as :func:`idle_cpus`.
    """
    it, vm, listener = there.it, there.vm, there.listener
    to, arm = AWAY[side], key[3]
    refused = None
    if arm == OURS:  # measured beforehand: that is not the migration's time
        refused = (planned(it, vm, to, one.intent), planned(it, vm, to, one.infeasible))
    deadline_s = one.intent["deadline_s"]
    body = order(one, arm, templates)
    try:
        with watched(listener) as longest_ms:
            begun, before = time.monotonic(), busy_s()
            record, cpu_s, took_s = migrate(it, vm, to, body, deadline_s + _LATE_S)
            silence = longest_ms()
    except ClientError as error:
        if arm != OURS or not is_infeasible(error):
            raise
        return wrongly_refused(key, one, refused)
    busy = 100 * (busy_s() - before) / (time.monotonic() - begun) / (os.cpu_count() or 1)
    samples = it.client.get(f"/migrations/{record['id']}/samples?limit=1000")["items"]
    total = record["totals"]["total_time_ms"] if record["totals"] else took_s * 1000
    percent = max((each["throttle_percent"] for each in samples), default=0)
    pairs = pairwise(samples)
    lost = sum((b["at_ms"] - a["at_ms"]) * a["throttle_percent"] for a, b in pairs) / 100_000
    kept = (
        record["state"] == "completed"
        and silence <= one.intent["max_silence_ms"]
        and total <= deadline_s * 1000
        and percent <= one.intent["max_slowdown_percent"]
    )
    cpu = max(0.0, cpu_s - idle * took_s)
    return Done(
        *(*key[:2], one.kind, *key[2:], record["state"], total, silence, percent, lost),
        *(cpu, took_s, kept, refused, busy, one.intent["max_slowdown_percent"]),
    )


def feasible(it: Live, one: Drawn) -> Drawn:
    """*one* with as much slowdown, at least what was drawn, as a migration needs that is throttled
    by it from the start, to keep the other goals with time to spare."""
    drawn_percent = one.intent["max_slowdown_percent"]
    with guest(it, one) as there:
        for percent in (each for each in SLOWDOWNS_PERCENT if each >= drawn_percent):
            found = with_slowdown(one, percent)
            if all(kept_throttled(there, found) for _ in range(_TRIES)):
                return found
    raise RuntimeError(f"workload {one} cannot keep its intent by any throttle: another SEED")


def wrongly_refused(key: Key, one: Drawn, refused: tuple[bool, bool] | None) -> Done:
    """An intent that can be kept, and did not get its migration: it was not kept."""
    ours = (True, refused[1]) if refused is not None else None
    none = (0.0, 0.0, 0, 0.0, 0.0, 0.0)
    slowdown = one.intent["max_slowdown_percent"]
    return Done(*key[:2], one.kind, *key[2:], REFUSED, *none, False, ours, 0.0, slowdown)


def planned(it: Live, vm: lab.LabVm, to: str, intent: dict[str, Any]) -> bool:
    """Whether the plan refuses the intent."""
    body = {"destination": to, "intent": intent}
    plan = patiently(lambda: it.client.post(f"/vms/{vm.uuid}/plan", body))
    return bool(plan["intent"]["refused"])


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
    """Those of *keys*, of one guest, as far as it lives, can be throttled, and the time allows."""
    with guest(it, one) as there:
        for key in keys:
            side = there.side
            if side is None or time.monotonic() > until:
                return  # a migration has cost the guest: another one
            done = measured(there, side, key, one, templates, idle)
            yield done
            if done.throttle_percent and done.state != "completed":
                return  # its QEMU may never throttle again


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
        all_arms = (*arms, BY_HAND)
        lanes = [pool.submit(lane, n, left, all_arms, results, until) for n in range(LANES)]
        broken = [error for each in lanes if (error := each.exception()) is not None]
        for error in broken:  # what the other lanes have measured counts
            traceback.print_exception(error)
    whole = whole_blocks(results.done, arms)
    if not whole:
        sys.exit("no block is whole yet: go on with the same RESULTS")
    raw = {"seed": SEED, "done": [asdict(each) for each in results.done]}
    blocks_of = {each.key[:3] for each in whole}
    by_hand = [e for e in results.done if e.arm == BY_HAND and e.key[:3] in blocks_of]
    finish("intent", list(checks_of(whole, arms, by_hand)), raw, where)


if __name__ == "__main__":
    main()
