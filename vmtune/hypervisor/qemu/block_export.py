"""One node of a QEMU, exported by NBD on a unix socket, and the scratch nodes for it.

A QEMU has one NBD server at most, so a node is exported only where there is none. Sources: QEMU
qapi/block-export.json, blockdev-nbd.c, nbd/server.c.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from vmtune.errors import CommandRefused, Conflict, OutcomeUnknown, SetupError
from vmtune.hypervisor.qemu.block_allowlist import EXPORT, JOB, NODE
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qemu.replies import reading_reply

REQUESTS_PER_CONNECTION = 16
"""How many requests of one connection QEMU has in flight, however many the client sends
(nbd/server.c: MAX_NBD_REQUESTS, 7.2 to 10)."""
_VIRTIO_BLK = "virtio-blk-device"
_MAIN_LOOP_ONLY = ("ide-hd", "ide-cd")
_LOOK_EVERY_S = 0.01
_REMOVED_WITHIN_S = 10.0
_FORMATTED_WITHIN_S = 600.0


@dataclass(frozen=True, slots=True)
class BlockNode:
    """A block node of a QEMU, by its given name.

    :param driver: ``qcow2``, ``raw``, ``file``, ...
    :param on_main_loop: QEMU's main loop handles its requests, for certain: an iothread might
        where this is False.
    """

    name: str
    driver: str
    size_bytes: int
    read_only: bool
    on_main_loop: bool = False


@dataclass(frozen=True, slots=True)
class Export:
    """What is exported.

    :param node: the node's name.
    :param socket: where its NBD server listens; called as the list of commands has it.
    :param iothread: its requests are handled there; empty: where the node's are.
    :param scratch_bytes: above 0, the node is a null node of that size, which is made for it
        and goes with it.
    """

    node: str
    socket: Path
    writable: bool = False
    iothread: str = ""
    scratch_bytes: int = 0

    @property
    def uri(self) -> str:
        """As NBD clients take it (NBD project, doc/uri.md)."""
        return f"nbd+unix:///{EXPORT}?socket={quote(str(self.socket))}"


async def list_nodes(monitor: Monitor) -> Sequence[BlockNode]:
    """The nodes that have a name; QEMU's own names for others begin with ``#``."""
    nodes = await monitor.execute("query-named-block-nodes", {"flat": True})
    iothreads = await monitor.execute("query-iothreads")
    on_main_loop = await _nodes_on_main_loop(monitor) if iothreads else None
    with reading_reply("its block nodes"):
        return [
            BlockNode(
                name, str(node["drv"]), int(node["image"]["virtual-size"]), bool(node["ro"]),
                on_main_loop is None or name in on_main_loop,
            )
            for node in nodes
            if not (name := str(node["node-name"])).startswith("#")
        ]  # fmt: skip


async def _nodes_on_main_loop(monitor: Monitor) -> Collection[str]:
    """Of a QEMU with iothreads: the topmost nodes of disks that use none of them.

    A SCSI disk has the iothread of its controller, and a node without a device that of the job
    which uses it: what they use is not asked, and they are left out.
    """
    blocks = await monitor.execute("query-block")
    with reading_reply("its block devices"):
        disks = [
            (str(block["qdev"]), str(block["inserted"]["node-name"]))
            for block in blocks
            if block.get("qdev") and block.get("inserted")
        ]
    return [node for device, node in disks if await _on_main_loop(monitor, device)]


async def _on_main_loop(monitor: Monitor, device: str) -> bool:
    kind = await _property(monitor, device, "type")
    if kind != _VIRTIO_BLK:
        return kind in _MAIN_LOOP_ONLY
    if await _property(monitor, device, "iothread"):
        return False
    return not await _property(monitor, device, "iothread-vq-mapping")


async def _property(monitor: Monitor, device: str, name: str) -> object:
    """None where the device does not have it: iothread-vq-mapping came with QEMU 9.0."""
    with contextlib.suppress(CommandRefused):
        return await monitor.execute("qom-get", {"path": device, "property": name})
    return None


async def add_export(monitor: Monitor, export: Export) -> None:
    """Start the NBD server and export the node; neither is there where that fails.

    :raise Conflict: QEMU has an NBD server of another program.
    :raise CommandRefused: as QEMU says; there is no such node, or it cannot be written to.
    """
    address = {"type": "unix", "data": {"path": str(export.socket)}}
    try:
        # 0 is no limit: QEMU 9.2 and later take 100 clients where nothing is said.
        await monitor.execute("nbd-server-start", {"addr": address, "max-connections": 0})
    except CommandRefused as refusal:
        if "already running" not in refusal.message:
            raise
        raise Conflict(
            "this QEMU has an NBD server already, and can have one only",
            code="nbd_server_running",
            remedy="wait for the backup or copy that uses it, or stop it with nbd-server-stop",
        ) from refusal
    where = {"iothread": export.iothread} if export.iothread else {}
    try:
        if export.scratch_bytes:
            await _add_scratch(monitor, export)
        await monitor.execute(
            "block-export-add",
            {
                "type": "nbd", "id": EXPORT, "name": EXPORT, "node-name": export.node,
                "writable": export.writable, **where,
            },
        )  # fmt: skip
    except CommandRefused:
        await remove_export(monitor, scratch=export.scratch_bytes > 0)
        raise


async def _add_scratch(monitor: Monitor, export: Export) -> None:
    node = {"driver": "null-co", "node-name": export.node, "size": export.scratch_bytes}
    await monitor.execute("blockdev-add", {**node, "read-zeroes": True})


async def remove_export(monitor: Monitor, *, scratch: bool) -> None:
    """Remove the export, disconnect its clients, and stop its server. Harmless where
    there is neither. A server that exports something else is another's, and is left alone.

    :param scratch: remove vmtune's node as well.
    :raise OutcomeUnknown: it does not go.
    """
    with contextlib.suppress(CommandRefused):  # it is not there
        await monitor.execute("block-export-del", {"id": EXPORT, "mode": "hard"})
    deadline = time.monotonic() + _REMOVED_WITHIN_S
    while EXPORT in (exported := await _exports(monitor)):
        if time.monotonic() > deadline:
            raise OutcomeUnknown(
                f"the export {EXPORT} does not go within {_REMOVED_WITHIN_S:g} s",
                remedy="see query-block-exports, and remove it with block-export-del",
            )
        await asyncio.sleep(_LOOK_EVERY_S)
    if not exported:
        with contextlib.suppress(CommandRefused):  # it is not running
            await monitor.execute("nbd-server-stop")
    if scratch:
        with contextlib.suppress(CommandRefused):  # it is not there
            await monitor.execute("blockdev-del", {"node-name": NODE})


async def _exports(monitor: Monitor) -> Collection[str]:
    """The ids of what it exports."""
    exports = await monitor.execute("query-block-exports")
    with reading_reply("its exports"):
        return [str(each["id"]) for each in exports]


async def make_qcow2(monitor: Monitor, file: str, size_bytes: int) -> None:
    """Make the node *file* a qcow2 image all of whose clusters are there.

    :raise SetupError: it cannot be, in QEMU's words.
    """
    options = {"driver": "qcow2", "file": file, "size": size_bytes, "preallocation": "falloc"}
    await monitor.execute("blockdev-create", {"job-id": JOB, "options": options})
    deadline = time.monotonic() + _FORMATTED_WITHIN_S
    while True:
        jobs = await monitor.execute("query-jobs")
        with reading_reply("its jobs"):
            job = {each["id"]: each for each in jobs}[JOB]
            ended, error = job["status"] == "concluded", str(job.get("error", ""))
        if ended:
            break
        if time.monotonic() > deadline:
            error = f"it takes more than {_FORMATTED_WITHIN_S:g} s"
            break
        await asyncio.sleep(_LOOK_EVERY_S)
    if ended:
        await monitor.execute("job-dismiss", {"id": JOB})
    if error:
        raise SetupError(f"the qcow2 node cannot be made: {error}", code="no_scratch_node")
