"""Records what QEMU answers, for the fake and for the tests of the tunables table.

Run it from the checkout after a new QEMU was installed: ``python -m tests.data.qmp.record``.
It writes a folder for each QEMU that tests/support/qemus/qemu.py knows, named by version.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

from qemu.qmp import QMPClient

from tests.support.qemus import qemu

HERE = Path(__file__).parent
VM = UUID("5f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e10")

AT_REST = (
    "query-version",
    "query-name",
    "query-uuid",
    "query-kvm",
    "query-status",
    "query-cpus-fast",
    "query-memory-size-summary",
    "query-iothreads",
    "query-migrate",
    "query-migrate-capabilities",
    "query-migrate-parameters",
)
LISTED = ("/", "/objects", "/machine/peripheral", "/machine/peripheral-anon")
READ = (
    ("/machine", "type"),
    ("/machine/peripheral/virtio-disk0", "num-queues"),
    ("/machine/peripheral/virtio-disk0", "queue-size"),
    ("/objects/iothread1", "thread-pool-min"),
    ("/objects/iothread1", "thread-pool-max"),
)
# Slow enough to be looked at while it runs.
SLOW_BYTES_PER_S = 20_000

Execute = Callable[..., Awaitable[Any]]


def save(folder: Path, name: str, content: object) -> None:
    """Write one reply, in an order that does not change from run to run."""
    (folder / f"{name}.json").write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


def compression_methods(schema: Any) -> list[str]:
    """What multifd-compression accepts, by QEMU's own description of its commands."""
    by_name = {entity["name"]: entity for entity in schema}
    arguments = by_name[by_name["migrate-set-parameters"]["arg-type"]]
    kind = next(m["type"] for m in arguments["members"] if m["name"] == "multifd-compression")
    return sorted(by_name[kind]["values"])


async def until(source: Execute, status: str) -> Any:
    """The reply of query-migrate in which the migration is first *status*."""
    while True:
        reply = await source("query-migrate")
        if reply["status"] == status:
            return reply
        await asyncio.sleep(0.01)


async def migrate(source: Execute, destination: Execute, folder: Path) -> None:
    """A migration, looked at in the states through which it goes."""
    states: dict[str, Any] = {}
    await destination("migrate-incoming", {"uri": "tcp:127.0.0.1:0"})
    states["destination-listening"] = await destination("query-migrate")
    port = states["destination-listening"]["socket-address"][0]["port"]
    await source("migrate-set-parameters", {"max-bandwidth": SLOW_BYTES_PER_S})
    await source("migrate", {"uri": f"tcp:127.0.0.1:{port}"})
    states["just-started"] = await source("query-migrate")
    states["active"] = await until(source, "active")
    await asyncio.sleep(0.5)
    # QEMU 11 may have sent the idle guest by now: then the first look is what there is.
    later = await source("query-migrate")
    if later["status"] == "active":
        states["active"] = later
    await source("migrate-set-parameters", {"max-bandwidth": 0})
    reply = await until(source, "completed")
    while not reply["total-time"]:
        reply = await source("query-migrate")
    states["completed"] = reply
    states["destination-completed"] = await destination("query-migrate")
    for state, content in states.items():
        save(folder, f"query-migrate.{state}", content)


async def fail_and_cancel(source: Execute, folder: Path) -> None:
    """Migrations that do not succeed."""
    await source("migrate", {"uri": "tcp:127.0.0.1:1"})
    save(folder, "query-migrate.failed", await until(source, "failed"))
    await source("migrate-set-parameters", {"max-bandwidth": SLOW_BYTES_PER_S})
    await source("migrate", {"uri": "exec:cat >/dev/null"})
    await source("migrate_cancel")
    save(folder, "query-migrate.cancelled", await until(source, "cancelled"))


async def record(build: qemu.Build) -> None:
    """All replies of one QEMU."""
    folder = HERE / build.label.removeprefix("qemu-")
    folder.mkdir(exist_ok=True)
    waiting = ("-incoming", "defer")
    with (
        tempfile.TemporaryDirectory(prefix="vmtune-record-") as temporary,
        qemu.running(build, Path(temporary), "vm", VM) as here,
        qemu.running(build, Path(temporary), "there", VM, extra=waiting) as there,
    ):
        source, destination = QMPClient(), QMPClient()
        await source.connect(str(here.socket))
        await destination.connect(str(there.socket))
        for command in AT_REST:
            save(folder, command, await source.execute(command))
        save(folder, "qom-list", {p: await source.execute("qom-list", {"path": p}) for p in LISTED})
        values = [
            {"path": p, "property": n,
             "value": await source.execute("qom-get", {"path": p, "property": n})}
            for p, n in READ
        ]  # fmt: skip
        save(folder, "qom-get", values)
        schema = await source.execute("query-qmp-schema")
        save(folder, "multifd-compression", compression_methods(schema))
        await fail_and_cancel(source.execute, folder)
        await migrate(source.execute, destination.execute, folder)
        await source.disconnect()
        await destination.disconnect()


if __name__ == "__main__":
    for each in qemu.builds():
        print(each.label, each.why_not or "recorded")
        if not each.why_not:
            asyncio.run(record(each))
