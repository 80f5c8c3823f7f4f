"""How long it takes to apply ten settings to a hundred running QEMUs at once, over the API,
and how much memory the service takes for it."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID, uuid4

from tests.perf.apply_latency import set_by_api
from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import SETTINGS, folder
from tests.support.qemus.qemu import installed, running
from vmtune.admin.demo.service import running_service

QEMUS = 100
REPEATS = 5
MACHINE = ("-machine", "none", "-nodefaults", "-display", "none", "-object", "iothread,id=io0")


def memory_bytes(pid: int, field: str) -> int:
    """A figure of /proc/PID/status: VmRSS now, VmHWM at the most."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def run(at: Path) -> tuple[list[float], int]:
    """Seconds of each round over all QEMUs, and the service's peak memory in bytes."""
    uuids = [uuid4() for _ in range(QEMUS)]
    with ExitStack() as stack:

        def start(number: int, uuid: UUID) -> None:
            stack.enter_context(
                running(installed(), at / "qmp", f"q{number}", uuid, machine=MACHINE)
            )

        for number, uuid in enumerate(uuids):
            start(number, uuid)
        service = stack.enter_context(running_service(at))
        service.client.post("/hosts", {"name": "here", "uri": f"qmp+unix://{at}/qmp"})
        for n, values in enumerate(SETTINGS):
            service.client.post("/profiles", {"name": f"ten-{n}", "values": values})
        pool = stack.enter_context(ThreadPoolExecutor(QEMUS))
        rounds = []
        for repeat in range(REPEATS + 1):
            began = time.perf_counter()
            work = [
                pool.submit(set_by_api, service.client, str(uuid), repeat % 2) for uuid in uuids
            ]
            for one in work:
                one.result()
            rounds.append(time.perf_counter() - began)
        return rounds, memory_bytes(service.pid, "VmHWM")


def main() -> None:
    """Measure and report."""
    where = environment()
    with folder() as at:
        rounds, peak = run(at)
    first, later = rounds[0], rounds[1:]
    print(f"{QEMUS} QEMUs, first round with probing: {first:.2f} s")
    print(f"{QEMUS} QEMUs, later rounds: {spread(later)} s; service at most {peak >> 20} MiB")
    checks = [
        Check("100 QEMUs at once, first round", first, "s", 3, "max"),
        Check("100 QEMUs at once, median later", statistics.median(later), "s", 3, "max"),
        Check("service memory at most", peak / 1e6, "MB", 300, "max"),
    ]
    finish("fleet_apply", checks, {"rounds_s": rounds, "peak_bytes": peak}, where)


if __name__ == "__main__":
    main()
