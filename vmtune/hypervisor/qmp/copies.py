"""Disks that are copied along with a migration between two QEMUs without libvirt.

As libvirt does it (src/qemu/qemu_migration.c): the QEMU that waits exports its images by NBD, and
the source mirrors its own to them. Once all mirrors have caught up the memory is sent. At the
switchover, with the guest stopped, the mirrors are ended (``block-job-cancel`` without force sends
what is left), and only then the migration may go on.

All that is made is named :data:`COPY`: who comes later can end what another process began.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vmtune.errors import CommandRefused, OutcomeUnknown, VmtuneError
from vmtune.hypervisor.qemu.block_allowlist import COPY
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.model.migration.disks import Mirrored

PORTS = range(49216, 49280)
"""Beyond those that libvirt uses for migrations."""
_LOOK_EVERY_S = 0.02
_DRAINS_WITHIN_S = 60.0
_ENDS_WITHIN_S = 30.0
_READY, _ENDED = "ready", ("concluded", "null")
_NBD = "nbd"


@dataclass(frozen=True, slots=True)
class Pair:
    """A disk on both sides.

    :param target: its name, the same on both.
    :param here: the source's block node; *there*, the destination's.
    """

    target: str
    here: str
    there: str

    @property
    def name(self) -> str:
        """Of its export, its job and the node between."""
        return COPY + re.sub(r"[^A-Za-z0-9_.-]", "_", self.target)


def job_of(target: str) -> str:
    """The name of the job that copies a disk."""
    return Pair(target, "", "").name


@dataclass(frozen=True, slots=True)
class How:
    """How disks are copied.

    :param incremental: only the image on top of each chain.
    :param synchronous: the guest's writes wait for the destination.
    :param bytes_per_s: most for each disk; 0: no limit.
    """

    incremental: bool = False
    synchronous: bool = False
    bytes_per_s: int = 0


@dataclass(frozen=True, slots=True)
class Tls:
    """How a QEMU encrypts a migration, and so the copies that belong to it.

    :param creds: the id of its tls-creds object; empty where it does not.
    :param hostname: of the other side's certificate, where that is not its address.
    :param authz: the id of the object that says which clients it takes.
    """

    creds: str = ""
    hostname: str = ""
    authz: str = ""


async def tls_of(monitor: Monitor) -> Tls:
    """What QEMU migrates with right now, whoever has set it."""
    reply = await monitor.execute("query-migrate-parameters")
    names = ("tls-creds", "tls-hostname", "tls-authz")
    with reading_reply("its parameters"):
        return Tls(*(str(reply.get(name) or "") for name in names))


async def export(
    destination: Monitor, pairs: Sequence[Pair], host: str, port: int | None, socket: str
) -> Mapping[str, Any]:  # any JSON
    """Export the destination's nodes, with the TLS that it takes migrations with.

    :param host: the address to listen at; empty: at *socket*.
    :return: where, as QEMU's SocketAddress.
    :raise CommandRefused: it cannot listen, or exports something already.
    """
    server = await _listen(destination, host, port, socket, len(pairs))
    try:
        for pair in pairs:
            what = {"type": _NBD, "id": pair.name, "name": pair.name, "node-name": pair.there}
            await destination.execute("block-export-add", {**what, "writable": True})
    except VmtuneError:
        with contextlib.suppress(VmtuneError):
            await unexport(destination, started=True)
        raise
    return server


async def _listen(
    destination: Monitor, host: str, port: int | None, socket: str, clients: int
) -> Mapping[str, Any]:  # any JSON
    tls = await tls_of(destination)
    options: dict[str, object] = {"max-connections": clients}
    if tls.creds:
        options["tls-creds"] = tls.creds
        if tls.authz:
            options["tls-authz"] = tls.authz
    places: list[dict[str, Any]] = [
        {"type": "inet", "host": host, "port": str(each)} for each in ([port] if port else PORTS)
    ]
    if not host:
        places = [{"type": "unix", "path": socket}]
    refused = ""
    for place in places:
        data = {name: value for name, value in place.items() if name != "type"}
        address = {"addr": {"type": place["type"], "data": data}}
        try:
            await destination.execute("nbd-server-start", {**address, **options})
        except CommandRefused as refusal:
            refused = refusal.message
            if "already running" in refused:
                break
        else:
            return place
    raise CommandRefused(
        f"QEMU on the destination cannot listen for disks: {refused}",
        field="values.copy_storage",
        code="cannot_listen",
        remedy="name another port (disks_port), or start the waiting QEMU anew",
    )


async def mirror(
    source: Monitor,
    pairs: Sequence[Pair],
    server: Mapping[str, Any],
    how: How,  # any JSON
) -> None:
    """Begin to copy, with the TLS that the source migrates with."""
    tls = await tls_of(source)
    options = {"tls-creds": tls.creds} if tls.creds else {}
    if tls.creds and tls.hostname:
        options["tls-hostname"] = tls.hostname
    for pair in pairs:
        node = {"driver": "nbd", "node-name": pair.name, "server": dict(server), **options}
        await source.execute("blockdev-add", {**node, "export": pair.name})
        job: dict[str, Any] = {
            "job-id": pair.name, "device": pair.here, "target": pair.name,
            "sync": "top" if how.incremental else "full", "auto-dismiss": False,
        }  # fmt: skip
        if how.synchronous:
            job["copy-mode"] = "write-blocking"
        if how.bytes_per_s:
            job["speed"] = how.bytes_per_s
        await source.execute("blockdev-mirror", job)


async def _jobs(source: Monitor) -> dict[str, Mapping[str, Any]]:  # any JSON
    reply = await source.execute("query-jobs")
    with reading_reply("its jobs"):
        return {str(job["id"]): job for job in reply if str(job["id"]).startswith(COPY)}


async def progress(source: Monitor, targets: Collection[str]) -> dict[str, Mirrored]:
    """How far the copies of some disks are; without those that are not copied."""
    jobs = await _jobs(source)
    found: dict[str, Mirrored] = {}
    for target in targets:
        job = jobs.get(job_of(target))
        if job is not None:
            with reading_reply("its jobs"):
                total, now = int(job["total-progress"]), int(job["current-progress"])
                found[target] = Mirrored(total, now, job["status"] == _READY)
    return found


async def all_ready(source: Monitor, pairs: Sequence[Pair]) -> bool:
    """Whether all copies have caught up.

    :raise CommandRefused: one has ended, in QEMU's words.
    """
    jobs = await _jobs(source)
    for pair in pairs:
        job = jobs.get(pair.name)
        if job is None or job["status"] in _ENDED:
            raise _broken(pair.target, job)
    return all(jobs[pair.name]["status"] == _READY for pair in pairs)


async def drain(source: Monitor) -> None:
    """With the guest stopped: send what is left, and end the copies.

    :raise CommandRefused: one has failed.
    """
    for name, job in (await _jobs(source)).items():
        if job["status"] not in _ENDED:
            with contextlib.suppress(CommandRefused):  # it has just ended
                await source.execute("block-job-cancel", {"device": name, "force": False})
    for name, job in (await _ended(source, _DRAINS_WITHIN_S)).items():
        if job.get("error"):
            raise _broken(name.removeprefix(COPY), job)
        await source.execute("job-dismiss", {"id": name})


async def has_copies(source: Monitor) -> bool:
    """Whether it was begun to copy its disks, and not ended."""
    return bool(await _nodes(source))


async def _nodes(source: Monitor) -> list[str]:
    reply = await source.execute("query-named-block-nodes", {"flat": True})
    with reading_reply("its block nodes"):
        names = [str(node["node-name"]) for node in reply]
    return [name for name in names if name.startswith(COPY)]


async def drop(source: Monitor) -> None:
    """End all copies at once, and remove what was made for them. Harmless where there is nothing.

    :raise OutcomeUnknown: one does not end.
    """
    for name, job in (await _jobs(source)).items():
        if job["status"] not in _ENDED:
            with contextlib.suppress(CommandRefused):
                await source.execute("block-job-cancel", {"device": name, "force": True})
    for name in await _ended(source, _ENDS_WITHIN_S):
        with contextlib.suppress(CommandRefused):
            await source.execute("job-dismiss", {"id": name})
    for name in await _nodes(source):
        with contextlib.suppress(CommandRefused):
            await source.execute("blockdev-del", {"node-name": name})


async def _ended(source: Monitor, within_s: float) -> dict[str, Mapping[str, Any]]:  # any JSON
    """The jobs, once all have ended."""
    deadline = time.monotonic() + within_s
    while True:
        jobs = await _jobs(source)
        if all(job["status"] in _ENDED for job in jobs.values()):
            return jobs
        if time.monotonic() > deadline:
            raise OutcomeUnknown(
                f"the copies of disks do not end within {within_s:g} s",
                remedy="see query-jobs; restore the link between the hosts",
            )
        await asyncio.sleep(_LOOK_EVERY_S)


async def unexport(destination: Monitor, *, started: bool = False) -> None:
    """Remove the exports, and stop their server. Harmless where there is nothing; a server that
    exports something else by NBD is another's.

    :param started: the server is vmtune's, though it may export nothing yet.
    :raise OutcomeUnknown: an export does not end.
    """
    exports = await _exports(destination)
    ours = [name for name in exports if name.startswith(COPY)]
    for name in ours:
        with contextlib.suppress(CommandRefused):
            await destination.execute("block-export-del", {"id": name, "mode": "hard"})
    if ours:
        exports = await _without(destination, ours)
    if (ours or started) and _NBD not in exports.values():
        with contextlib.suppress(CommandRefused):
            await destination.execute("nbd-server-stop")


async def _without(destination: Monitor, ours: Sequence[str]) -> dict[str, str]:
    """What is exported once *ours* are not any more."""
    deadline = time.monotonic() + _ENDS_WITHIN_S
    while not (exports := await _exports(destination)).keys().isdisjoint(ours):
        if time.monotonic() > deadline:
            raise OutcomeUnknown(
                f"the exports of disks do not end within {_ENDS_WITHIN_S:g} s",
                remedy="see query-block-exports",
            )
        await asyncio.sleep(_LOOK_EVERY_S)
    return exports


async def _exports(destination: Monitor) -> dict[str, str]:
    """Their types by their names, whoever has made them."""
    reply = await destination.execute("query-block-exports")
    with reading_reply("its exports"):
        return {str(each["id"]): str(each["type"]) for each in reply}


def _broken(target: str, job: Mapping[str, Any] | None) -> CommandRefused:  # any JSON
    why = str((job or {}).get("error") or "it has ended before the memory was sent")
    return CommandRefused(
        f"the copy of the disk {target} failed: {why}",
        field="values.copy_storage",
        code="copy_failed",
        remedy="look at the room and the image at the destination",
    )
