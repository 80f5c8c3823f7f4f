"""Machines whose images are on file systems of their own, and VMs that write to a disk there.

An image is half full of what follows from a seed; its first MiB is where the guest writes, by
turns (``vmtune/lab/guest/disk.c``).
"""

from __future__ import annotations

import hashlib
import os
import random
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.hosts.live import Live, at_work, wait_for
from tests.support.hosts.machines import on, said
from vmtune import lab
from vmtune.errors import LabError
from vmtune.lab.guest_serial import GuestPass, parse_serial
from vmtune.model.workload import Workload

FOLDER = "/var/lib/libvirt/images"
POOL = "images"
VIRSH = ("virsh", "--quiet", "--connect", "qemu:///system")
MIB = 1 << 20
_SECTOR, _WORDS, _SECTORS = 512, 256, 2048
_MOST_ROUNDS = 20_000
_STEP_S = 120


def machines(live: Live) -> tuple[lab.HostStatus, ...]:
    """Both, with the daemons that they have now."""
    return lab.status(live.settings).hosts


def own_file_systems(live: Live, size_bytes: int, *, pool: bool = True) -> None:
    """Give each machine a file system for its images, and have the service know both.

    :param pool: whether libvirt has an active pool there.
    """
    for name, host in zip("ab", live.status.hosts, strict=True):
        file = live.settings.folder / f"{name}.ext4"
        with file.open("wb") as made:
            made.truncate(size_bytes)
        _run("mkfs.ext4", "-q", "-m", "0", str(file))
        said(host, "mkdir", "-p", FOLDER)
        device = said(host, "losetup", "--find", "--show", "--direct-io=on", str(file))
        said(host, "mount", device, FOLDER)
        said(host, "losetup", "--detach", device)  # once it is no longer mounted
        said(host, "rmdir", f"{FOLDER}/lost+found")
        if pool:
            said(host, *VIRSH, "pool-create-as", POOL, "dir", "--target", FOLDER)
        uri = f"qemu+tls://{host.name}/system"
        live.client.post("/hosts", {"name": name, "uri": uri})


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=_STEP_S, stdin=subprocess.DEVNULL)


@dataclass(frozen=True)
class LocalDisk:
    """A VM's disk on a machine's own file system, and what it was made of.

    :param head: the first MiB, as it was before the guest.
    :param digest: of all blocks of a MiB after that which are not zero, and their places.
    """

    path: str
    format: str
    head: bytes
    digest: str


def make_disk(live: Live, size_bytes: int, format: str, seed: str) -> LocalDisk:
    """An image on machine a, half of whose MiBs are random."""
    within = lab.inside(machines(live)[0])
    path = f"{FOLDER}/{secrets.token_hex(4)}.{format}"
    return make_image(live.settings.folder, path, size_bytes, seed, within)


def make_image(
    scratch: Path, path: str, size_bytes: int, seed: str, within: Sequence[str] = ()
) -> LocalDisk:
    """An image, half of whose MiBs are random, in the format that its name ends with.

    :param scratch: a folder for what goes again.
    :param within: a command that enters the machine whose image it is.
    """
    chance = random.Random(seed)
    blocks = size_bytes // MIB
    full = sorted({0, *chance.sample(range(1, blocks), blocks // 2)})
    raw = scratch / f"{secrets.token_hex(4)}.made"
    with raw.open("wb") as file:
        file.truncate(size_bytes)
        for block in full:
            file.seek(block * MIB)
            file.write(chance.randbytes(MIB))
    head, digest = _content(raw)
    format = path.rpartition(".")[2]
    _run(*within, "qemu-img", "convert", "-O", format, str(raw), path)
    raw.unlink()
    return LocalDisk(path, format, head, digest)


def _content(raw: Path) -> tuple[bytes, str]:
    """The first MiB, and the digest of what follows."""
    digest = hashlib.sha256()
    size = raw.stat().st_size
    with raw.open("rb", buffering=0) as file:
        head = os.pread(file.fileno(), MIB, 0)
        for block in range(1, size // MIB):
            at = block * MIB
            try:
                data = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                break  # a hole to its end
            if data >= at + MIB:
                continue
            content = os.pread(file.fileno(), MIB, at)
            if content.count(0) < MIB:
                digest.update(at.to_bytes(8, "big") + content)
    return head, digest.hexdigest()


def sector(turn: int) -> bytes:
    """What the guest writes in a turn: ``word_of`` in its disk.c."""
    words = (
        ((turn * _WORDS + place) * 0x9E3779B1 & 0xFFFFFFFF) >> 16 for place in range(_WORDS)
    )  # fmt: skip
    return b"".join(word.to_bytes(2, "little") for word in words)


def wrong_in(head: bytes, before: bytes) -> str:
    """What does not hold of the MiB that the guest writes: each sector has the turn of the last
    round, or of the one before from where that has got; empty where all holds.

    :param before: what was there before the guest.
    """
    parts = [head[at : at + _SECTOR] for at in range(0, MIB, _SECTOR)]
    rounds = range(-1, _MOST_ROUNDS)

    def due(round_: int, place: int) -> bytes:
        if round_ < 0:
            return before[place * _SECTOR : (place + 1) * _SECTOR]
        return sector(round_ * _SECTORS + place)

    now = next((each for each in rounds if due(each, 0) == parts[0]), None)
    if now is None:
        return "sector 0 is of no turn"
    reached = next((p for p in range(_SECTORS) if parts[p] != due(now, p)), _SECTORS)
    for place in range(reached, _SECTORS):
        if parts[place] != due(now - 1, place):
            return f"sector {place} is neither of round {now} nor of the one before"
    return ""


def wrong_on(live: Live, host: lab.HostStatus, vm: lab.LabVm, disk: LocalDisk) -> str:
    """What is wrong of the image on the machine where the VM runs, which stands meanwhile; empty
    where nothing is."""
    said(host, *VIRSH, "suspend", vm.name)
    try:
        why = wrong_at_rest(live, host, disk)
    finally:
        said(host, *VIRSH, "resume", vm.name)
    return why or wrong_to_the_guest(vm)


def wrong_at_rest(live: Live, host: lab.HostStatus, disk: LocalDisk) -> str:
    """What is wrong of an image that nobody writes to; empty where nothing is."""
    return wrong_image(live.settings.folder, disk, disk.path, lab.inside(host))


def wrong_image(scratch: Path, disk: LocalDisk, path: str, within: Sequence[str] = ()) -> str:
    """Likewise, of any image that is to hold what *disk* did; see :func:`make_image`."""
    raw = scratch / f"{secrets.token_hex(4)}.seen"
    try:
        convert = ("qemu-img", "convert", "-U", "-f", disk.format, "-O", "raw")
        _run(*within, *convert, path, str(raw))
        head, digest = _content(raw)
    finally:
        raw.unlink(missing_ok=True)
    if digest != disk.digest:
        return "what the guest does not write has changed"
    return wrong_in(head, disk.head)


def holds(host: lab.HostStatus, disk: LocalDisk) -> bool:
    """Whether a machine has the image."""
    return on(host, "test", "-e", disk.path).returncode == 0


def pools(host: lab.HostStatus) -> list[str]:
    """The names of a machine's storage pools, but for the one of its images."""
    names = said(host, *VIRSH, "pool-list", "--all", "--name").split()
    return [name for name in names if name != POOL]


def wrong_to_the_guest(vm: lab.LabVm) -> str:
    """What the guest itself has found wrong of memory and disk; empty where nothing."""
    with vm.serial.open(errors="replace") as lines:
        counts = [e.wrong or 0 for e in parse_serial(lines) if isinstance(e, GuestPass)]
    return f"the guest has read {max(counts)} wrong words" if any(counts) else ""


@contextmanager
def vm_on(
    live: Live,
    disk: LocalDisk,
    workload: Workload,
    memory_bytes: int = 128 * MIB,
    *,
    discard: str = "ignore",
) -> Iterator[lab.LabVm]:
    """A VM on machine a with that disk at IDE, at work; gone from both afterwards, as is the
    disk.

    :param discard: ``unmap`` where the image keeps its holes.
    """
    a = machines(live)[0]
    settings = lab.VmSettings(
        name=f"vm-{secrets.token_hex(3)}",
        memory_bytes=memory_bytes,
        workload=workload,
        disks=(lab.DiskSettings(ide=True),),
    )
    vm = lab.define_vm(live.settings, settings, start=False)
    shared = str(live.settings.folder / "vms" / vm.name / "disk0.raw")
    xml = said(a, *VIRSH, "dumpxml", "--inactive", vm.name)
    assert shared in xml
    driver = f"type='{disk.format}' discard='{discard}'"
    xml = xml.replace(shared, disk.path).replace("type='raw'", driver)
    lab.virsh(a.uri, "define", "/proc/self/fd/0", stdin=xml)
    try:
        said(a, *VIRSH, "start", vm.name)
        wait_for(lambda: at_work(vm), "the guest to write")
        yield vm
    finally:
        for host in machines(live):
            for command in ("destroy", "undefine"):
                with suppress(LabError):
                    lab.virsh(host.uri, command, vm.name)
            remove(host, disk)


def remove(host: lab.HostStatus, disk: LocalDisk) -> None:
    """Remove a machine's image, and have libvirt forget it, too."""
    on(host, "rm", "-f", disk.path)
    on(host, *VIRSH, "pool-refresh", POOL)
