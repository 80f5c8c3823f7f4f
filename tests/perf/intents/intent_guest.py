"""Guests of the comparison of intents, and their migrations between the two hosts of a lab."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from tests.perf.intents.intent_drawn import BEAT_MS, MIB, Drawn
from tests.perf.support import folder
from tests.support.hosts.live import ENDED, Live, wait_for
from vmtune import lab
from vmtune.bench.migration.guest_listener import GuestListener
from vmtune.client.connection.errors import ClientError
from vmtune.model.migration.intent import still_ms

T = TypeVar("T")
MEMORY_BYTES = 256 * MIB
AWAY = {"a": "b", "b": "a"}
_FIRST_DOWNTIME_SHARE = 0.6
"""Of the silence that is allowed, less what a throttled guest stands still at a time, the downtime
limit of a migration that shows what is feasible."""
_FEASIBLE_SHARE = 0.75
"""It ends within this share of the deadline."""
_SETTLED_S = 1.0
_IDLE_FOR_S = 15.0
_SEEN_WITHIN_S = 20.0
_STANDS_S = 120.0
"""What neither begins nor ends within this is left, and its guest with it."""
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


def hardest(one: Drawn) -> dict[str, Any]:
    """The settings of a migration that is throttled from the start by all that is allowed."""
    goals = one.intent
    still = goals["max_silence_ms"] - still_ms(goals["max_slowdown_percent"])
    return {
        "auto_converge": True,
        "throttle_trigger_threshold_percent": 1,
        "cpu_throttle_initial_percent": goals["max_slowdown_percent"],
        "max_cpu_throttle_percent": goals["max_slowdown_percent"],
        "downtime_limit_ms": round(still * _FIRST_DOWNTIME_SHARE),
        "max_bandwidth_bytes_per_s": goals["max_bandwidth_bytes_per_s"],
    }


def kept_throttled(there: Guest, one: Drawn) -> bool:
    """Whether a migration with the hardest throttle that its intent allows keeps the rest."""
    it, side, goals = there.it, there.side, one.intent
    if side is None:
        raise RuntimeError("the guest does not run")
    within_s = goals["deadline_s"] * _FEASIBLE_SHARE
    with watched(there.listener) as longest_ms:
        record, *_ = migrate(it, there.vm, AWAY[side], {"values": hardest(one)}, within_s)
        silence = longest_ms()
    return bool(
        record["state"] == "completed"
        and record["totals"]["total_time_ms"] <= within_s * 1000
        and silence <= goals["max_silence_ms"]
    )


def busy_s() -> float:
    """Seconds for which cores of this machine were busy since it was started."""
    user, nice, system, _, _, irq, softirq, *_ = (
        int(part) for part in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def _cpu_s(pid: int) -> float:
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
