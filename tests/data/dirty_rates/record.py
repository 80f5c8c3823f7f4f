"""Records how fast a vCPU dirties memory, for the simulation of the dirty-ring reaper.

Run it from the checkout, as root where there is a usable /dev/kvm:
``python -m tests.data.dirty_rates.record``. For each workload it starts the lab's guest with
one vCPU and a dirty ring of 65536 entries, holds a migration into /dev/null back, and measures
the vCPU's dirty rate by rounds of calc-dirty-rate. Tracking is on all the time, as in any
migration, so the rounds see what a reaper would see.

The files beside it were recorded on QEMU 10.0.2 under a nested KVM with two busy cores: rounds of
50 ms often took 60 to 100, and the vCPU was slowed down at times, which is why even the steady
workload is uneven.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from qemu.qmp import QMPClient

from tests.support.qemus.qemu import installed, running
from vmtune.lab.domain_xml import kvm_usable
from vmtune.lab.guest_build import build_guest
from vmtune.model.workload import Workload

HERE = Path(__file__).parent
RING_ENTRIES = 65536
ROUND_MS = 50
SECONDS = 12
# Slow enough that the migration outlives the recording.
BANDWIDTH_BYTES_PER_S = 1 << 20
# In every page of a region a byte is written, then the guest rests, and again.
WORKLOADS = {
    "steady": Workload(256 << 20),
    "bursts": Workload(64 << 20, idle_ms=400),
    "phases": Workload(256 << 20, idle_ms=2000),
    "small-set": Workload(8 << 20, idle_ms=20),
}


async def measure(socket: Path) -> list[tuple[float, int, int]]:
    """Of each round: milliseconds since the one before, milliseconds that QEMU measured,
    and MiB/s by QEMU's reckoning: all pages of the former by the latter."""
    qmp = QMPClient("record")
    await qmp.connect(str(socket))
    try:
        # calc-dirty-rate alone would switch tracking off after each round.
        await qmp.execute("migrate-set-parameters", {"max-bandwidth": BANDWIDTH_BYTES_PER_S})
        arguments: dict[str, object] = {
            "mode": "dirty-ring",
            "calc-time": ROUND_MS,
            "calc-time-unit": "millisecond",
        }
        in_ms: dict[str, object] = {"calc-time-unit": "millisecond"}
        await qmp.execute("calc-dirty-rate", arguments)
        await qmp.execute("migrate", {"uri": "exec:cat >/dev/null"})
        rounds: list[tuple[float, int, int]] = []
        began = last = time.monotonic()
        while last - began < SECONDS:
            answer: Any = await qmp.execute("query-dirty-rate", in_ms)
            # Right after calc-dirty-rate it may still be "unstarted".
            if answer["status"] != "measured":
                await asyncio.sleep(0.001)
                continue
            now = time.monotonic()
            await qmp.execute("calc-dirty-rate", arguments)
            (vcpu,) = answer["vcpu-dirty-rate"]
            elapsed_ms = round((now - last) * 1000, 1)
            rounds.append((elapsed_ms, answer["calc-time"], vcpu["dirty-rate"]))
            last = now
        await qmp.execute("migrate_cancel")
        # The first rounds include the start of tracking.
        return rounds[2:]
    finally:
        await qmp.disconnect()


def record(guest: Path, at: Path, name: str, workload: Workload) -> None:
    """Write one workload's file."""
    at.mkdir()
    serial = at / "serial"
    serial.touch()
    machine = (
        *("-machine", "pc", "-accel", f"kvm,dirty-ring-size={RING_ENTRIES}", "-cpu", "qemu64"),
        *("-m", "512", "-nodefaults", "-display", "none"),
        *("-kernel", str(guest), "-append", workload.command_line(), "-serial", f"file:{serial}"),
    )
    with running(installed(), at, name, machine=machine) as qemu:
        while "pass" not in serial.read_text():
            assert qemu.process.poll() is None, qemu.said()
            time.sleep(0.05)
        rounds = asyncio.run(measure(qemu.socket))
    document = {
        "how": "lab guest, one vCPU, KVM, tests/data/dirty_rates/record.py",
        "qemu": installed().label,
        "guest": workload.command_line(),
        "region_bytes": workload.region_bytes,
        "ring_entries": RING_ENTRIES,
        "elapsed_ms": [elapsed for elapsed, _, _ in rounds],
        "measured_ms": [measured for _, measured, _ in rounds],
        "mib_per_s": [rate for _, _, rate in rounds],
    }
    (HERE / f"{name}.json").write_text(json.dumps(document) + "\n")


def main() -> None:
    """Record every workload, or those that are named."""
    if not kvm_usable():
        sys.exit("no usable /dev/kvm: a dirty ring needs it")
    with tempfile.TemporaryDirectory(prefix="vt-") as folder:
        guest = build_guest(Path(folder) / "guest")
        for name in sys.argv[1:] or WORKLOADS:
            record(guest, Path(folder) / name, name, WORKLOADS[name])
            print(f"recorded {name}", flush=True)


if __name__ == "__main__":
    main()
