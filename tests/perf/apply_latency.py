"""How long it takes to plan, apply and read back ten settings on one running QEMU.

Through the service's API on its unix socket, over direct QMP; beside it the same ten settings
by ``virsh qemu-monitor-command``, one call each, which neither plans nor reads back. Each is
done on an equal QEMU, in turns.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from uuid import uuid4

from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import COUNTED, LAB, SETTINGS, folder, interleaved, median_ratio
from tests.support.qemus.qemu import installed, running
from vmtune.admin.demo.service import running_service
from vmtune.client.connection.http import Client
from vmtune.lab import VmSettings, define_vm, down, up, virsh
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import QmpKind
from vmtune.model.workload import Workload

REPEATS = 25
MACHINE = (
    *("-machine", "pc", "-accel", "tcg", "-m", "64", "-nodefaults", "-display", "none"),
    *("-object", "iothread,id=iothread1", "-S"),
)
"""Without a running guest."""
RUNNING = tuple(word for word in MACHINE if word != "-S")
"""With one, as virsh's arm has: a firmware that finds no disk, and waits."""


def set_by_api(client: Client, vm: str, which: int) -> None:
    """The vmtune arm."""
    done = client.post(f"/vms/{vm}/applications", {"profile": f"ten-{which}"})
    effective = [o for o in done["outcomes"] if o["status"] == "effective"]
    assert done["state"] == "applied", done
    assert len(effective) == COUNTED, effective


def commands(which: int) -> list[str]:
    """The virsh arm's ten monitor commands, each what a person would type."""
    texts = []
    for name, value in SETTINGS[which].items():
        qmp = BUILT_IN[name].qmp
        assert qmp is not None
        if qmp.kind is QmpKind.PARAMETER:
            command = {"execute": "migrate-set-parameters", "arguments": {qmp.name: value}}
        elif qmp.kind is QmpKind.CAPABILITY:
            continue
        else:
            where = "iothread1" if qmp.kind is QmpKind.IOTHREAD else "main"
            arguments = {"path": f"/objects/{where}", "property": qmp.name, "value": value}
            command = {"execute": "qom-set", "arguments": arguments}
        texts.append(json.dumps(command))
    assert len(texts) == COUNTED
    return texts


def set_by_virsh(uri: str, name: str, which: int) -> None:
    """The virsh arm."""
    for text in commands(which):
        answer = json.loads(virsh(uri, "qemu-monitor-command", name, text))
        assert "error" not in answer, answer


def run(at: Path) -> tuple[list[float], list[float]]:
    """Both arms' times in milliseconds."""
    vm = uuid4()
    lab = up(LAB)
    try:
        guest = define_vm(
            LAB,
            VmSettings(
                name="perf",
                memory_bytes=64 << 20,
                workload=Workload(region_bytes=1 << 20, idle_ms=1000),
                iothreads=1,
            ),
        )
        uri = lab.hosts[0].uri
        add = {"execute": "object-add", "arguments": {"qom-type": "main-loop", "id": "main"}}
        virsh(uri, "qemu-monitor-command", guest.name, json.dumps(add))
        with (
            running(installed(), at / "qmp", uuid=vm, machine=RUNNING),
            running_service(at) as service,
        ):
            service.client.post("/hosts", {"name": "here", "uri": f"qmp+unix://{at}/qmp"})
            for n, values in enumerate(SETTINGS):
                service.client.post("/profiles", {"name": f"ten-{n}", "values": values})
            ours, theirs = interleaved(
                (
                    lambda which: set_by_api(service.client, str(vm), which),
                    lambda which: set_by_virsh(uri, guest.name, which),
                ),
                REPEATS,
            )
    finally:
        down(LAB)
    return ours, theirs


def main() -> None:
    """Measure and report."""
    where = environment()
    with folder() as at:
        ours, theirs = run(at)
    print(f"vmtune, plan + apply + read back: {spread(ours)} ms, {REPEATS} repeats")
    print(f"virsh qemu-monitor-command, {COUNTED} calls: {spread(theirs)} ms")
    checks = [
        Check("apply of 10 settings, median", statistics.median(ours), "ms", 25, "max"),
        Check("virsh's time against vmtune's", median_ratio(theirs, ours), "times", 10, "min"),
    ]
    finish("apply_latency", checks, {"vmtune_ms": ours, "virsh_ms": theirs}, where)


if __name__ == "__main__":
    main()
