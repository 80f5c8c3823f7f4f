"""Makes the reports in this folder: `python tests/data/guestperf/make.py`.

They are made, not measured. Their form is that of QEMU's guestperf, of 7.2 (``old-``) and of 10.0
(``new-``): which fields there are, of which type and unit, in which order, and how its engine
fills them (tests/migration/guestperf and tests/migration-stress/guestperf). Their figures follow
from simple arithmetic. Nothing of vmtune is used here.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
EPOCH = 1_700_000_000.3141592
GIB = 1 << 30
PAGE = 4096
SLEEP = 15


def hardware(cpus: int, new: bool, ring: int = 0) -> dict[str, Any]:
    made: dict[str, Any] = {
        "cpus": cpus,
        "mem": 1,
        "src_mem_bind": [],
        "dst_mem_bind": [],
        "src_cpu_bind": ["0", "1"] if cpus > 1 else [],
        "dst_cpu_bind": ["2", "3"] if cpus > 1 else [],
        "prealloc_pages": False,
        "huge_pages": False,
        "locked_pages": False,
    }
    return made | ({"dirty_ring_size": ring} if new else {})


def scenario(name: str, new: bool, **changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": name,
        "downtime": 500,
        "bandwidth": 125000,
        "max_iters": 30,
        "max_time": 300,
        "pause": False,
        "pause_iters": 5,
        "post_copy": False,
        "post_copy_iters": 5,
        "auto_converge": False,
        "auto_converge_step": 10,
        "compression_mt": False,
        "compression_mt_threads": 1,
        "compression_xbzrle": False,
        "compression_xbzrle_cache": 10,
        "multifd": False,
        "multifd_channels": 2,
    }
    if new:
        made |= {
            "multifd_compression": "",
            "dirty_limit": False,
            "x_vcpu_dirty_limit_period": 500,
            "vcpu_dirty_limit": 1,
        }
    return made | changes


def ram(iteration: int, remaining: float, sent: float, mbps: float) -> dict[str, Any]:
    normal = int(sent) // PAGE
    return {
        "transferred_bytes": int(sent) + 9 * normal,
        "remaining_bytes": int(remaining),
        "total_bytes": GIB + (512 << 20),
        "duplicate_pages": 131072,
        "skipped_pages": 0,
        "normal_pages": normal,
        "normal_bytes": normal * PAGE,
        "dirty_rate_pps": 0 if iteration == 1 else 261_000 - 700 * iteration,
        "transfer_rate_mbs": mbps,
        "iterations": iteration,
    }


NOTHING = dict.fromkeys(ram(1, 0, 0, 0), 0)


def entry(status: str, memory: dict[str, Any], now: float, new: bool, **more: Any) -> Any:
    made = {
        "status": status,
        "ram": memory,
        "now": now,
        "duration": 0,
        "downtime": 0,
        "downtime_expected": 0,
        "setup_time": 0,
        "throttle_pcent": 0,
    }
    if new:
        made |= {"dirty_limit_throttle_time_per_round": 0, "dirty_limit_ring_full_time": 0}
    return made | more


def history(
    new: bool,
    iterations: int,
    end: str,
    each_s: float = 1.1,
    throttled: bool = False,
    limited: bool = False,
) -> list[Any]:
    begun = EPOCH + SLEEP - 1
    entries = []
    for iteration in range(1, iterations + 1):
        seconds = 0.0512 + each_s * (iteration - 1)
        more: dict[str, Any] = {"duration": round(seconds * 1000), "setup_time": 3}
        more["downtime_expected"] = 300 if iteration == 1 else 2890 - 61 * iteration
        if throttled and iteration > 2:
            more["throttle_pcent"] = min(99, 20 + 10 * (iteration - 3))
        if limited and iteration > 2:
            more["dirty_limit_throttle_time_per_round"] = 104_000 + 31 * iteration
            more["dirty_limit_ring_full_time"] = 51_200
        sent = 40e6 + 1.1e9 * (iteration - 1)
        memory = ram(
            iteration, GIB * (0.97 if iteration == 1 else 0.9), sent, 8012.34567 + iteration
        )
        entries.append(entry("active", memory, begun + seconds + 0.0003, new, **more))
    seconds = each_s * iterations + 0.4
    if end == "completed":
        memory = ram(iterations + 1, 0, 1.1e9 * iterations + 3.1e8, 8123.045) | {
            "dirty_rate_pps": 0
        }
        more = {"duration": round(seconds * 1000), "downtime": 137, "setup_time": 3}
    else:
        memory, more = NOTHING, {}
    return [*entries, entry(end, memory, begun + seconds + 0.0127, new, **more)]


def guest(cpus: int, seconds: float, slow_from: float, slow_to: float) -> list[Any]:
    """Each thread prints when it has gone over 1 GB."""
    made = []
    for thread in range(cpus):
        now = 1.9 + 0.07 * thread
        while now < seconds:
            slow = slow_from <= now < slow_to
            value = round((930 if slow else 310) * cpus * (1 + 0.02 * math.sin(9 * now)))
            now += value / 1000
            stamp = round(EPOCH + now, 3)
            made.append({"tid": 61 + thread, "timestamp": stamp, "value": value})
    return sorted(made, key=lambda timing: timing["timestamp"])


def cpu(cpus: int, seconds: float) -> tuple[list[Any], list[Any]]:
    qemu, vcpus = [], []
    for second in range(int(seconds)):
        now = EPOCH + second * 1.0017
        busy = 10.0 * round(100 * second * 1.2 * cpus)
        qemu.append({"tid": 4711, "timestamp": now, "value": busy})
        for thread in range(cpus):
            value = 10.0 * round(100 * second * 0.98)
            vcpus.append({"tid": 4716 + thread, "timestamp": now + 0.00018, "value": value})
    return qemu, vcpus


def report(
    cpus: int, new: bool, told: dict[str, Any], progress: list[Any], success: bool, ring: int = 0
) -> dict[str, Any]:
    begun, ended = progress[0]["now"] - EPOCH, progress[-1]["now"] - EPOCH
    over = progress[-1]["status"] == "completed"
    seconds = ended + (SLEEP - 1 if over else 0)
    qemu, vcpus = cpu(cpus, seconds)
    made: dict[str, Any] = {
        "hardware": hardware(cpus, new, ring),
        "scenario": told,
        "progress_history": progress,
        "guest_timings": guest(cpus, seconds, begun, ended),
        "qemu_timings": qemu,
        "vcpu_timings": vcpus,
    }
    if new:
        made["result"] = {"success": success}
    return made | {
        "binary": "/usr/bin/qemu-system-x86_64",
        "dst_host": "localhost",
        "kernel": "/boot/vmlinuz-6.1.0-40-amd64",
        "initrd": "tests/migration-stress/initrd-stress.img" if new
        else "tests/migration/initrd-stress.img",
        "transport": "unix" if new else "tcp",
        "sleep": SLEEP,
    }  # fmt: skip


def main() -> None:
    # QEMU 7.2's own table runs "cache-20" with 10 %, and "channels-4" with 2.
    xbzrle = {"compression_xbzrle": True, "compression_xbzrle_cache": 10}
    reports = {
        "old-completed": report(
            2, False, scenario("compr-xbzrle-cache-20", False, **xbzrle),
            history(False, 4, "completed"), True,
        ),
        "old-cancelled": report(
            1, False, scenario("compr-multifd-channels-4", False, multifd=True),
            history(False, 31, "cancelled", 0.4), False,
        ),
        "new-completed": report(
            1, True, scenario("auto-converge-step-10", True, auto_converge=True),
            history(True, 9, "completed", throttled=True), True,
        ),
        "new-paused": report(
            1, True, scenario("pause-iters-5", True, pause=True), history(True, 5, "completed"),
            False,
        ),
        "new-failed": report(
            2, True,
            scenario("compr-dirty-limit-20MB", True, dirty_limit=True, vcpu_dirty_limit=20),
            history(True, 6, "failed", limited=True), False, 4096,
        ),
    }  # fmt: skip
    for name, made in reports.items():
        (FOLDER / f"{name}.json").write_text(json.dumps(made, indent=4) + "\n")


if __name__ == "__main__":
    main()
