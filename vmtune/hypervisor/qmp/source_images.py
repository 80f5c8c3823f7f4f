"""The images of a QEMU without libvirt whose VM has left with copies of them: removed where nothing
else that can be seen names them.

The source's QEMU stands until somebody ends it, and has them open: their room is free after that.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from vmtune.errors import CommandRefused
from vmtune.hypervisor.guard import Guard
from vmtune.hypervisor.linux.disk_file import identity_of, names_beneath, opened_by
from vmtune.hypervisor.qemu.names import vm_state
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.hypervisor.qmp.disks import identity_at, read_disks
from vmtune.hypervisor.qmp.qemu import Qemu
from vmtune.model.host.facts import VmState
from vmtune.model.migration.disks import CopiedDisk


async def remove(
    source: Qemu | None, others: Sequence[Qemu], disks: Collection[CopiedDisk], guard: Guard
) -> dict[str, str]:
    """Remove the images of *disks*.

    :param source: the QEMU that the VM has left; None where it has ended.
    :param others: the host's other QEMUs.
    :return: by their targets why images stay; empty for those that are gone.
    :raise CommandRefused: the VM is still here; nothing was removed.
    """
    pid = None
    if source is not None:
        await _refuse_if_here(source)
        process = source.process()
        if process is None:
            return {disk.target: "QEMU's process cannot be seen" for disk in disks}
        pid = process.pid
    named: set[str] = set()
    for qemu in others:
        named |= await _named_by(qemu)
    await guard.wait()

    def call() -> dict[str, str]:
        return {disk.target: _removed(disk, pid, named, guard) for disk in disks}

    return await asyncio.to_thread(call)


async def _refuse_if_here(source: Qemu) -> None:
    reply = await source.monitor.execute("query-status")
    with reading_reply("what it is doing"):
        state = vm_state(reply["status"])
    if state is not VmState.MIGRATED:
        raise CommandRefused(
            f"the source's QEMU says that the VM is {state.value}",
            field="vm",
            code="images_in_use",
            remedy="look at where the VM is",
        )


async def _named_by(qemu: Qemu) -> set[str]:
    """The identities of all files of a QEMU's disks; empty ones where they cannot be seen."""
    process = qemu.process()
    pid = process.pid if process is not None else None
    disks = await read_disks(qemu.monitor, pid)
    paths = [path for disk in disks.values() for path in (disk.path, *disk.backing) if path]
    return {identity_at(path, pid) for path in paths}


def _removed(disk: CopiedDisk, pid: int | None, named: Collection[str], guard: Guard) -> str:
    """Why an image stays; empty where it is gone."""
    if pid is None and not disk.path.startswith("/"):
        return "its QEMU has ended, and nothing says in which folder it was started"
    start = Path("/") if pid is None else Path(f"/proc/{pid}")
    if pid is not None:
        start = start / ("root" if disk.path.startswith("/") else "cwd")
    file = start / disk.path.lstrip("/")
    try:
        if not file.parent.is_dir():
            return "its folder is not there"
        try:
            found = file.lstat()
        except FileNotFoundError:
            return ""
        why = _is_not_alone(file, found, disk, named) or _is_used(file, found, pid)
        if why:
            return why
        guard.check()
        file.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _is_not_alone(
    file: Path, found: os.stat_result, disk: CopiedDisk, named: Collection[str]
) -> str:
    if not stat.S_ISREG(found.st_mode):
        return "it is not a plain file"
    if not disk.identity:
        return "nothing says which file it was"
    if identity_of(found) != disk.identity:
        return "it is another file by now"
    if found.st_nlink > 1:
        return "it has other names (hard links)"
    if disk.identity in named or "" in named:
        return "another QEMU of this host has it, or may have it"
    return _lies_beneath(file, sorted(file.parent.iterdir()), disk.identity)


def _lies_beneath(file: Path, neighbours: Iterable[Path], identity: str) -> str:
    """Which image of its folder lies on it; empty where none does."""
    for other in neighbours:
        if other == file or not other.is_file():
            continue
        beneath = names_beneath(other)
        if not beneath:
            continue
        if file.name in beneath:
            return f"{other.name} lies on it"
        try:
            same = identity_of((file.parent / beneath).stat()) == identity
        except OSError:
            continue
        if same:
            return f"{other.name} lies on it"
    return ""


def _is_used(file: Path, found: os.stat_result, pid: int | None) -> str:
    try:
        user = opened_by(found, {os.getpid(), *([pid] if pid is not None else [])})
    except PermissionError as error:
        return str(error)
    return "" if user is None else f"the process {user} has it open"
