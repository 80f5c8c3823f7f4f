"""Are intents kept, beside the policies of others? Migrations between two hosts over a capped link.

Workloads are drawn from ``SEED=``, and in each block every arm migrates each workload once, in an
order of its own: by intent, and by the shipped profiles of others. The links between the hosts'
network namespaces carry what was drawn, and each migration may use all of it. The silence is the
longest gap of the guest's heartbeat, the slowdown the hardest throttle that samples saw. What goes
on for half as long again as its deadline is aborted, and has not kept it. Each workload also has an
intent that cannot be kept, since all of its memory takes twice the deadline to send: is that
refused beforehand?

Two workloads, one block and three rivals by default, some 10 minutes; ``FULL=1``: six workloads,
ten blocks, all rivals, which takes most of a day. The machine should have nothing else to do.

    SEED=1 python -m tests.perf.intent
"""

from __future__ import annotations

import contextlib
import os
import random
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.perf.report import Check, environment, finish
from tests.perf.support import folder
from tests.support.live import ENDED, Live, live, wait_for
from vmtune import lab
from vmtune.bench.migration.guest_listener import GuestListener
from vmtune.client.connection.errors import ClientError
from vmtune.model.workload import Workload

MIB = 1 << 20
SEED = os.environ.get("SEED", "1")
FULL = bool(os.environ.get("FULL"))
WORKLOADS, BLOCKS = (6, 10) if FULL else (2, 1)
MEMORY_BYTES = 256 * MIB
OURS = "intent"
FEW = ("qemu-defaults", "auto-converge", "kubevirt-vep-291")
ALL = (
    *("qemu-defaults", "auto-converge", "nova-abort", "nova-force"),
    *("ovirt-minimal-downtime", "ovirt-suspend-workload", "ovirt-postcopy"),
    *("kubevirt", "kubevirt-postcopy", "kubevirt-vep-248", "kubevirt-vep-291"),
)
KINDS = ("steady", "fast", "skewed", "bursts", "slow", "wide")
_BEAT_MS = 5
_GIVEN_UP = 1.5
_LOOK_EVERY_S = 1.0
"""Who looks more often is what the service is busy with."""
_NEAR = 1.1


@dataclass(frozen=True, slots=True)
class Drawn:
    """A workload with its link and its intents."""

    kind: str
    workload: Workload
    link_mib_per_s: int
    intent: dict[str, Any]  # JSON
    infeasible: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """One migration.

    :param silence_ms: by the heartbeat; *lost_s*: seconds of the guest's work that were withheld.
    :param cpu_percent: of a core, that the service used meanwhile.
    """

    kind: str
    block: int
    arm: str
    state: str
    total_ms: float
    silence_ms: float
    throttle_percent: int
    lost_s: float
    cpu_percent: float
    kept: bool


@dataclass(slots=True)
class Found:
    """All of them, and which intents were refused beforehand."""

    done: list[Done] = field(default_factory=list)
    refused: dict[str, list[bool]] = field(
        default_factory=lambda: {"feasible": [], "infeasible": []}
    )


def drawn(seed: str, number: int) -> Drawn:
    """Workload *number* of *seed*."""
    chance = random.Random(f"{seed}/{number}")
    kind = KINDS[number % len(KINDS)]
    link = chance.choice((24, 32, 48))
    region = round({"wide": 4.0}.get(kind, 2.6) * link * chance.uniform(0.8, 1.2))
    share = {"slow": 0.3, "steady": 1.2, "fast": 4.0, "wide": 0.9}.get(kind, 1.5)
    rate = max(1, round(link * share * chance.uniform(0.8, 1.2)))
    workload = Workload(
        region_bytes=region * MIB,
        dirty_mb_per_s=rate,
        idle_ms=chance.choice((200, 500)) if kind == "bursts" else 0,
        skew_percent=chance.choice((50, 80)) if kind == "skewed" else 0,
        beat_ms=_BEAT_MS,
    )
    intent = {
        "max_bandwidth_bytes_per_s": link * MIB,
        "max_silence_ms": chance.choice((500, 800, 1200)),
        "deadline_s": chance.choice((30, 45, 60)),
        "max_slowdown_percent": 99,
        "may": ["throttle"],
    }
    too_soon = {**intent, "max_silence_ms": 100, "deadline_s": max(1, region // link // 2)}
    return Drawn(kind, workload, link, intent, too_soon)


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


@contextlib.contextmanager
def guest(it: Live, one: Drawn, where: Path) -> Iterator[tuple[lab.LabVm, GuestListener]]:
    """A VM at work on host a, and who listens to its heart."""
    listener = GuestListener(where, _BEAT_MS)
    name = f"intent-{one.kind}"
    try:
        settings = lab.VmSettings(
            name=name, memory_bytes=MEMORY_BYTES, workload=one.workload, listener=where
        )
        vm = lab.define_vm(it.settings, settings)
        wait_for(lambda: listener.start() is not None, "the guest to write")
        yield vm, listener
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


def migrate(it: Live, vm: lab.LabVm, to: str, body: dict[str, Any], given_up_s: float) -> Any:
    """The record of a migration at its end."""
    record = it.migrate(vm, to, **body)
    until = time.monotonic() + given_up_s
    aborted = False
    while record["state"] not in ENDED:
        time.sleep(_LOOK_EVERY_S)
        record = it.record(record)
        if not aborted and record["state"] == "active" and time.monotonic() > until:
            aborted = True
            with contextlib.suppress(ClientError):  # it has just ended
                it.client.delete(f"/migrations/{record['id']}")
    return record


def measured(it: Live, one: Drawn, block: int, arm: str, templates: dict[str, Any]) -> Done:
    """One migration of a fresh VM."""
    with folder() as where, guest(it, one, where) as (vm, listener):
        if arm == OURS:  # measured beforehand: that is not the migration's time
            it.client.post(f"/vms/{vm.uuid}/plan", {"destination": "b", "intent": one.intent})
        process = it.service.process
        assert process is not None
        used, begun = _cpu_s(process.pid), time.monotonic()
        listener.watch(True)
        deadline_s = one.intent["deadline_s"]
        record = migrate(it, vm, "b", order(one, arm, templates), deadline_s * _GIVEN_UP)
        took_s = time.monotonic() - begun
        cpu = (_cpu_s(process.pid) - used) / took_s * 100
        silence = max((gap.duration_ms for gap in listener.silences(begun)), default=0.0)
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
    return Done(one.kind, block, arm, record["state"], total, silence, hardest, lost, cpu, kept)


def _cpu_s(pid: int) -> float:
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def judged(it: Live, one: Drawn, found: Found) -> None:
    """Whether the plan refuses the intent that can be kept, and the one that cannot."""
    with folder() as where, guest(it, one, where) as (vm, _):
        for name, intent in (("feasible", one.intent), ("infeasible", one.infeasible)):
            plan = it.client.post(f"/vms/{vm.uuid}/plan", {"destination": "b", "intent": intent})
            found.refused[name].append(plan["intent"]["refused"])


def campaign(it: Live, arms: Sequence[str]) -> Found:
    """All workloads in all blocks."""
    query = f"/profile-templates?memory_bytes={MEMORY_BYTES}"
    templates = {each["name"]: each for each in it.client.get(query)["items"]}
    found = Found()
    for number in range(WORKLOADS):
        one = drawn(SEED, number)
        print(f"{one.kind}: {one.workload}, {one.link_mib_per_s} MiB/s, {one.intent}", flush=True)
        cap(it, one.link_mib_per_s)
        judged(it, one, found)
        for block in range(BLOCKS):
            shuffled = random.Random(f"{SEED}/{number}/{block}").sample(arms, len(arms))
            for arm in shuffled:
                done = measured(it, one, block, arm, templates)
                found.done.append(done)
                print(f"  {block} {arm}: {done}", flush=True)
    return found


def share(done: Sequence[Done]) -> float:
    """Of these, how many percent kept their intent."""
    return 100 * sum(each.kept for each in done) / len(done) if done else 0.0


def checks_of(found: Found, arms: Sequence[str]) -> Iterator[Check]:
    """What the figures have to hold."""
    by_arm = {arm: [each for each in found.done if each.arm == arm] for arm in arms}
    rivals = {arm: share(done) for arm, done in by_arm.items() if arm != OURS}
    for arm, kept in sorted(rivals.items(), key=lambda one: -one[1]):
        print(f"{arm}: kept in {kept:.0f} %")
    yield Check("intent kept", share(by_arm[OURS]), "%", 95, "min")
    yield Check(
        "more often than the best rival by",
        share(by_arm[OURS]) - max(rivals.values()),
        "points",
        0,
        "min",
    )
    kinds = {each.kind for each in found.done}
    good = 0
    for kind in kinds:
        times = {
            arm: [each.total_ms for each in done if each.kind == kind and each.kept]
            for arm, done in by_arm.items()
        }
        ours = times.pop(OURS)
        best = min((statistics.median(each) for each in times.values() if each), default=None)
        good += bool(ours) and (best is None or statistics.median(ours) <= best * _NEAR)
    yield Check(
        "workloads as fast as the best rival that kept it", good / len(kinds) * 6, "of 6", 5, "min"
    )
    refused = {name: 100 * sum(each) / len(each) for name, each in found.refused.items()}
    yield Check("infeasible intents refused", refused["infeasible"], "%", 90, "min")
    yield Check("feasible intents refused", refused["feasible"], "%", 5, "max")
    lost, theirs = (
        statistics.fmean(each.lost_s for each in by_arm[arm]) for arm in (OURS, "auto-converge")
    )
    yield Check("lost work by auto-converge's", lost / max(0.01, theirs), "", 1, "max")
    cpu = statistics.median(each.cpu_percent for each in by_arm[OURS])
    yield Check("service's CPU, of a core", cpu, "%", 2, "max")


def main() -> None:
    """Measure and report."""
    where = environment()
    arms = (OURS, *(ALL if FULL else FEW))
    with folder() as state, live(state, number=95) as it:
        found = campaign(it, arms)
    raw = {"seed": SEED, "done": [asdict(each) for each in found.done], "refused": found.refused}
    finish("intent", list(checks_of(found, arms)), raw, where)


if __name__ == "__main__":
    main()
