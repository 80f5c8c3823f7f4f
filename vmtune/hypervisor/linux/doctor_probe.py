"""Probes this machine for host diagnostics: /proc, /sys, /dev, and system calls."""

from __future__ import annotations

import functools
import os
import pwd
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from vmtune.hypervisor.linux.dirty_ring import RingReset, aborts_on_short_reset, ask_ring_reset
from vmtune.hypervisor.linux.kernel_calls import ask_kvm, ask_scatter_gather
from vmtune.hypervisor.linux.qemu_process import QemuProcess, has_capability
from vmtune.model.doctor.facts import Examined, KvmSeen, NicSeen, QemuSeen, Seen, SkippedCheck
from vmtune.model.doctor.rules import PROGRAMS, QEMU_PROGRAM
from vmtune.model.versions import Version

_CAP_SYS_RESOURCE = 24  # linux/capability.h
_VERSION = re.compile(r"(?:version|libvirt\)) (\d{1,4}\.\d{1,4}\.\d{1,4})", re.ASCII)
_MEMORY = re.compile(r"(\d{1,15})([kKmMgGtT]?)[bB]?", re.ASCII)
_FACTORS = {"k": 1 << 10, "m": 1 << 20, "": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_DEFAULT_MEMORY_BYTES = 128 << 20  # hw/core/machine.c
_ASKS_WITHIN_S = 5.0


_DAEMONS = ("virtqemud", "libvirtd")


def _find(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


@functools.lru_cache(maxsize=8)
def _says(program: str, changed_ns: int) -> Version | None:
    """The version that a program says; asked once for each file."""
    try:
        said = subprocess.run(
            [program, "--version"],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ASKS_WITHIN_S,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.search(said)
    return Version.parse(match[1]) if match else None


def _version_of(name: str) -> Version | None:
    """The version of an installed program; None where there is none that answers."""
    program = _find(name)
    return _says(program, Path(program).stat().st_mtime_ns) if program else None


@dataclass(frozen=True, slots=True)
class Probes:
    """How a machine is probed. Tests give a folder, and answers, of their own.

    :param root: where /proc, /sys and /dev are.
    :param kvm: asks /dev/kvm; *ring_reset* how it empties dirty rings; *gathers* a network card.
    :param which: finds a program; *version* asks it.
    """

    root: Path = Path("/")
    kvm: Callable[[Path], KvmSeen] = ask_kvm
    ring_reset: Callable[[Path], RingReset] = ask_ring_reset
    gathers: Callable[[str], bool | None] = ask_scatter_gather
    which: Callable[[str], str | None] = _find
    version: Callable[[str], Version | None] = _version_of


class _Look:
    """Reads files below a root, and keeps what could not be read."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.skipped_checks: list[SkippedCheck] = []

    def text(self, path: str, what: str) -> Seen[str] | None:
        try:
            return Seen((self.root / path).read_text(errors="replace").strip(), f"/{path}")
        except OSError as error:
            self.skipped_checks.append(SkippedCheck(what, f"/{path}: {error.strerror}"))
            return None

    def number(self, path: str, what: str) -> Seen[int] | None:
        text = self.text(path, what)
        if text is None:
            return None
        try:
            return Seen(int(text.value), text.where)
        except ValueError:
            self.skipped_checks.append(
                SkippedCheck(what, f"/{path} holds {text.value[:40]!r}, no number")
            )
            return None


def examine(probes: Probes | None = None) -> Examined:
    """Probe this machine. Changes nothing; blocks for some milliseconds."""
    probes = probes or Probes()
    look = _Look(probes.root)
    kernel = look.text("proc/sys/kernel/osrelease", "the kernel's version")
    device, for_all = _userfaultfd(probes.root / "dev/userfaultfd")
    kvm = _kvm(probes, look)
    installed = probes.version(QEMU_PROGRAM)
    libvirt = probes.version("libvirtd") or probes.version("virtqemud")
    nics = tuple(_nics(probes, look))
    if not nics:
        look.skipped_checks.append(SkippedCheck("network cards", "none is up below /sys/class/net"))
    return Examined(
        hostname=_text(probes.root / "proc/sys/kernel/hostname"),
        user=_user(),
        kernel=kernel,
        srcu=_srcu(probes.root / "sys/module/srcutree/parameters"),
        max_map_count=look.number("proc/sys/vm/max_map_count", "vm.max_map_count"),
        optmem_max_bytes=look.number("proc/sys/net/core/optmem_max", "net.core.optmem_max"),
        unprivileged_userfaultfd=look.number(
            "proc/sys/vm/unprivileged_userfaultfd", "vm.unprivileged_userfaultfd"
        ),
        userfaultfd_device=device,
        userfaultfd_for_all=for_all,
        kvm=kvm,
        cpus=_cpus(look),
        qemus=tuple(_qemus(probes.root)),
        nics=nics,
        confines=_confines(probes.root),
        can_raise_memlock=_can_raise_memlock(look, libvirt is not None),
        qemu_versions=((f"{QEMU_PROGRAM} --version", installed),) if installed else (),
        libvirt=Seen(str(libvirt), "libvirtd --version") if libvirt else None,
        programs={name: probes.which(name) is not None for name in (*PROGRAMS, QEMU_PROGRAM)},
        skipped_checks=tuple(look.skipped_checks),
    )


def _kvm(probes: Probes, look: _Look) -> KvmSeen:
    device = probes.root / "dev/kvm"
    kvm = probes.kvm(device)
    if kvm.why_not or not kvm.present:
        look.skipped_checks.append(
            SkippedCheck("KVM's dirty ring", kvm.why_not or "there is no /dev/kvm")
        )
    if not kvm.dirty_ring_bytes:
        return kvm
    reset = probes.ring_reset(device)
    if reset.ends_early is None:
        look.skipped_checks.append(
            SkippedCheck("how the kernel empties dirty rings", reset.why_unknown)
        )
    return replace(kvm, ring_reset_ends_early=reset.ends_early)


def _can_raise_memlock(look: _Look, by_libvirt: bool) -> Seen[bool] | None:
    """Whether libvirt's daemon may give QEMU more lockable memory; without libvirt, whether
    what this process starts may."""
    pid = next((name for name, comm in _processes(look.root) if comm in _DAEMONS), None)
    if by_libvirt and pid is None:
        look.skipped_checks.append(
            SkippedCheck("what libvirt's daemon may do", "it does not run right now")
        )
        return None
    path = f"proc/{pid or 'self'}/status"
    status = look.text(path, "who may raise the locked-memory limit")
    raises = has_capability(status.value if status else None, _CAP_SYS_RESOURCE)
    return None if raises is None else Seen(raises, f"CapEff of /{path}")


def _processes(root: Path) -> list[tuple[int, str]]:
    """All processes that can be seen: number and name, of which the kernel keeps 15 letters."""
    try:
        pids = sorted(int(e.name) for e in (root / "proc").iterdir() if e.name.isdigit())
    except OSError:
        return []
    return [(pid, _text(root / "proc" / str(pid) / "comm")) for pid in pids]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _srcu(folder: Path) -> dict[str, str]:
    try:
        return {path.name: _text(path) for path in sorted(folder.iterdir())}
    except OSError:
        return {}


def _userfaultfd(path: Path) -> tuple[str, bool]:
    """How the device is, and whether everybody may use it."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return "missing", False
    return f"of mode {mode:04o}", mode & 0o006 == 0o006


def _confines(root: Path) -> Seen[str] | None:
    """Which of the kernel's two ways to confine a program is active."""
    enabled = "sys/module/apparmor/parameters/enabled"
    if _text(root / enabled) == "Y":
        return Seen("AppArmor", f"/{enabled}")
    enforce = "sys/fs/selinux/enforce"
    return Seen("SELinux", f"/{enforce}") if _text(root / enforce) == "1" else None


def _cpus(look: _Look) -> Seen[int] | None:
    text = look.text("proc/cpuinfo", "the number of CPUs")
    if text is None:
        return None
    count = len(re.findall(r"^processor\b", text.value, re.MULTILINE))
    return Seen(count, text.where) if count else None


def _qemus(root: Path) -> Iterator[QemuSeen]:
    """The QEMU processes that can be seen."""
    proc = root / "proc"
    for pid, name in _processes(root):
        if not name.startswith(("qemu-system-", "qemu-kvm")):
            continue
        process = QemuProcess(pid, proc)
        if process.arguments() is None:
            continue  # it has just ended
        yield QemuSeen(
            pid=pid,
            vcpus=_vcpus(process, proc / str(pid)),
            maps=_line_count(proc / str(pid) / "maps"),
            memory_bytes=_memory_bytes(process),
            memlock_bytes=process.locked_memory_limit_bytes(),
            may_lock=process.may_lock_memory(),
            root=_is_root(_text(proc / str(pid) / "status")),
            dirty_ring_entries=process.dirty_ring_size_entries(),
            aborts_on_short_reset=aborts_on_short_reset(proc / str(pid) / "exe"),
            label=process.label(),
        )


def _vcpus(process: QemuProcess, folder: Path) -> int:
    """Its vCPU threads, which libvirt has named ``CPU 0/KVM``; else what ``-smp`` says."""
    try:
        names = [_text(task / "comm") for task in (folder / "task").iterdir()]
    except OSError:
        names = []
    threads = sum(name.startswith("CPU ") for name in names)
    if threads:
        return threads
    for use in process.option("smp") or []:
        text = use.get("cpus", use.get("", ""))
        if text.isdigit():
            return int(text)
    return 1


def _memory_bytes(process: QemuProcess) -> int | None:
    """What ``-m`` says; without a unit it is MiB (system/vl.c)."""
    uses = process.option("m")
    if uses is None:
        return None
    if not uses:
        return _DEFAULT_MEMORY_BYTES
    match = _MEMORY.fullmatch(uses[-1].get("size", uses[-1].get("", "")))
    return int(match[1]) * _FACTORS[match[2].lower()] if match else None


def _line_count(path: Path) -> int | None:
    try:
        count = path.read_bytes().count(b"\n")
    except OSError:
        return None
    return count or None  # of another user's process it reads as empty


def _is_root(status: str) -> bool:
    match = re.search(r"^Uid:\s+\d+\s+(\d+)", status, re.MULTILINE)
    return match is not None and match[1] == "0"


def _nics(probes: Probes, look: _Look) -> Iterator[NicSeen]:
    """Network cards that are up and have a device behind them: no bridges, no loopback."""
    folder = probes.root / "sys/class/net"
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return
    for name in names:
        if not (folder / name / "device").exists() or _text(folder / name / "operstate") != "up":
            continue
        speed = _text(folder / name / "speed")
        known = int(speed) if speed.isdigit() and int(speed) > 0 else None
        gathers = probes.gathers(name)
        if known is None:
            look.skipped_checks.append(
                SkippedCheck(f"the speed of {name}", "its driver does not say")
            )
        if gathers is None:
            look.skipped_checks.append(
                SkippedCheck(f"scatter-gather of {name}", "its driver does not say")
            )
        yield NicSeen(name, known, gathers)
