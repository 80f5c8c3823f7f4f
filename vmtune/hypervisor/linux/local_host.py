"""This machine, as /proc and /sys show it: for drivers whose QEMUs run here."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from vmtune.hypervisor.linux.qemu_process import has_capability
from vmtune.model.host.limits import SYSCTLS

_CAP_SYS_RESOURCE = 24  # linux/capability.h


@dataclass(frozen=True, slots=True)
class LocalHost:
    """What a driver puts into its host facts. What cannot be read is None or left out.

    :param machine_id: /etc/machine-id, the same as long as the system is installed.
    :param kvm: /dev/kvm exists.
    :param cpu_idle_s: for how long its CPUs together had nothing to do, since it was booted.
    :param can_lock_beyond_limits: this process has CAP_SYS_RESOURCE, so that what it
        starts can be given a higher locked-memory limit.
    """

    hostname: str
    kernel: str
    machine_id: str
    kvm: bool
    cpus: int | None
    memory_bytes: int | None
    sysctls: MappingProxyType[str, int]
    can_lock_beyond_limits: bool | None
    memory_available_bytes: int | None = None
    cpu_idle_s: float | None = None


def read_local_host(root: Path = Path("/")) -> LocalHost:
    """Probe this machine.

    :param root: the folder that holds /proc, /etc and /dev.
    """
    sysctls = {
        name: int(text)
        for name, sysctl in SYSCTLS.items()
        if (text := _read(root / "proc/sys" / sysctl.path)).isdigit()
    }
    meminfo = _read(root / "proc/meminfo")
    return LocalHost(
        hostname=platform.node(),
        kernel=platform.release(),
        machine_id=_read(root / "etc/machine-id"),
        kvm=(root / "dev/kvm").exists(),
        cpus=os.cpu_count(),
        memory_bytes=_memory_bytes(meminfo, "MemTotal:"),
        memory_available_bytes=_memory_bytes(meminfo, "MemAvailable:"),
        sysctls=MappingProxyType(sysctls),
        can_lock_beyond_limits=has_capability(_read(root / "proc/self/status"), _CAP_SYS_RESOURCE),
        cpu_idle_s=_idle_s(_read(root / "proc/stat")),
    )


def _idle_s(stat: str) -> float | None:
    """Of all CPUs together: user, nice, system, idle and iowait are the first (proc_stat(5))."""
    fields = stat.partition("\n")[0].split()
    if len(fields) < 6 or fields[0] != "cpu":
        return None
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")


def _memory_bytes(meminfo: str, name: str) -> int | None:
    for line in meminfo.splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
