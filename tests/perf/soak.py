"""Whether the service's memory stays as it is under mixed load.

Reads in the web UI's mix at 50 a second, next to which profiles are applied to QEMUs, VMs are
planned for, labelled, and come and go, without a pause. Its memory (RSS) at the end is held
against that after 5 minutes, or after half of the time where that is less.

    make bench NAME=soak MINUTES=60
"""

from __future__ import annotations

import itertools
import os
import statistics
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

from tests.perf.apply_latency import MACHINE
from tests.perf.report import Check, environment, finish
from tests.perf.support import SETTINGS, folder
from tests.support.qemus.qemu import installed, running
from tests.support.served.load import Plan, send
from vmtune.admin.demo.service import Service, running_service

MINUTES, SETTLED_AFTER_S = 60.0, 300.0
QEMUS, RATE_PER_S = 4, 50.0
MAX_GROWTH_PERCENT = 5.0


def memory_bytes(pid: int) -> int:
    """Its resident memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096


def change(service: Service, at: Path, vms: list[str], ends: threading.Event) -> None:
    """Change something, again and again."""
    for turn in itertools.count():
        if ends.is_set():
            return
        vm = vms[turn % len(vms)]
        service.client.post(f"/vms/{vm}/applications", {"profile": f"ten-{turn % 2}"})
        service.client.post(f"/vms/{vm}/plan", {"profile": "ten-0"})
        service.client.put(f"/vms/{vm}/labels", {"labels": {"turn": str(turn % 10)}})
        if turn % 50 == 0:
            with running(installed(), at / "qmp", f"new{turn}", uuid4(), machine=MACHINE):
                service.client.get("/vms")
        time.sleep(0.2)


def reads(service: Service, seconds: float, vms: list[str]) -> Plan:
    """What is read meanwhile."""
    token = service.client.post("/tokens", {"name": "soak", "scopes": ["read"]})["token"]
    base = "/api/v1"
    kinds = {
        "lists": [f"{base}/{what}" for what in ("vms", "hosts", "applications", "profiles")],
        "VMs": [f"{base}/vms/{vm}" for vm in vms],
        "explain": [f"{base}/vms/{vm}/explain" for vm in vms],
    }
    port = urlsplit(service.url).port
    assert port is not None
    shares = {"lists": 6, "VMs": 1, "explain": 3}
    return Plan(port, token, RATE_PER_S, 0.0, seconds, kinds, shares)


def run(at: Path, seconds: float) -> tuple[list[tuple[float, int]], dict[str, int]]:
    """Memory by the second, and the statuses of the reads."""
    seen: list[tuple[float, int]] = []
    ends = threading.Event()
    with ExitStack() as stack:
        ids = [uuid4() for _ in range(QEMUS)]
        vms = [str(each) for each in ids]
        for number, vm in enumerate(ids):
            stack.enter_context(
                running(installed(), at / "qmp", f"q{number}", uuid=vm, machine=MACHINE)
            )
        service = stack.enter_context(running_service(at))
        service.client.post("/hosts", {"name": "here", "uri": f"qmp+unix://{at}/qmp"})
        for number, values in enumerate(SETTINGS):
            service.client.post("/profiles", {"name": f"ten-{number}", "values": values})
        service.client.get("/vms")  # which remembers them
        plan = reads(service, seconds, vms)

        def watch() -> None:
            begun = time.monotonic()
            while not ends.wait(5):
                seen.append((time.monotonic() - begun, memory_bytes(service.pid)))

        threads = [
            threading.Thread(target=watch),
            threading.Thread(target=change, args=(service, at, vms, ends)),
        ]
        for each in threads:
            each.start()
        try:
            answers = send(plan)
        finally:
            ends.set()
            for each in threads:
                each.join()
    return seen, answers.statuses


def main() -> None:
    """Measure and report."""
    where = environment()
    minutes = float(os.environ.get("MINUTES") or MINUTES)
    with folder() as at:
        seen, statuses = run(at, 60 * minutes)
    settled_s = min(SETTLED_AFTER_S, 30 * minutes)
    then = statistics.median(size for at_s, size in seen if settled_s <= at_s < settled_s + 30)
    end = statistics.median(size for _, size in seen[-6:])
    growth = 100 * (end / then - 1)
    print(f"memory after {settled_s:.0f} s {then / 1e6:.0f} MB, at the end {end / 1e6:.0f} MB")
    checks = [
        Check(f"growth until {minutes:g} min", growth, "%", MAX_GROWTH_PERCENT, "max"),
        Check("reads answered with 200", 100 * statuses.get("200", 0) / sum(statuses.values()),
              "%", 100, "min"),
    ]  # fmt: skip
    finish("soak", checks, {"memory": seen, "statuses": statuses}, where)


if __name__ == "__main__":
    main()
