"""This machine, as /proc and /sys show it: only what is the same after a reboot.

No frequencies of the moment, no bogomips, no free memory, no uptime. What cannot be read is
left out: a container, another architecture or a hypervisor hides much of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Facts = dict[str, Any]  # any JSON: a branch of the environment

SYSCTLS = (
    "kernel.numa_balancing",
    "kernel.sched_rt_runtime_us",
    "net.core.busy_poll",
    "net.core.default_qdisc",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "vm.compaction_proactiveness",
    "vm.dirty_background_ratio",
    "vm.dirty_ratio",
    "vm.max_map_count",
    "vm.nr_overcommit_hugepages",
    "vm.overcommit_memory",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
)
"""What migrations and the memory of VMs depend on. Not net.ipv4.tcp_mem: the kernel computes
it anew at each boot from the memory that is free then."""

_BOOT_WORDS = frozenset(
    {
        "mitigations", "isolcpus", "nohz_full", "rcu_nocbs", "idle", "nosmt", "preempt",
        "numa_balancing", "iommu", "intel_iommu", "amd_iommu", "hugepages", "hugepagesz",
        "default_hugepagesz", "transparent_hugepage", "intel_pstate", "amd_pstate",
        "processor.max_cstate", "intel_idle.max_cstate",
    }
)  # fmt: skip
"""Words of the kernel's command line that change how fast it is; others may change at will."""

_KVM_PARAMETERS = (
    "nested", "halt_poll_ns", "eager_page_split", "tdp_mmu", "nx_huge_pages", "ept", "npt", "pml",
)  # fmt: skip
_MEMORY_STEP_BYTES = 64 << 20
_MHZ = re.compile(r" @ .*Hz$")


def cpu(cpuinfo: str) -> Facts:
    """/proc/cpuinfo: what all CPUs agree on; where they differ, each value once."""
    blocks = [_colons(block) for block in cpuinfo.split("\n\n")]
    listed = [block for block in blocks if "processor" in block]
    names = {
        "vendor": ("vendor_id", "CPU implementer"),
        "model": ("model name", "CPU part"),
        "family": ("cpu family", "CPU architecture"),
        "model_number": ("model", "CPU variant"),
        "stepping": ("stepping", "CPU revision"),
        "microcode": ("microcode",),
        "cores_per_socket": ("cpu cores",),
        "threads_per_socket": ("siblings",),
    }
    facts: Facts = {"count": len(listed)}
    for name, keys in names.items():
        facts[name] = _agreed(block[key] for block in listed for key in keys if key in block)
    sockets = {block["physical id"] for block in listed if "physical id" in block}
    facts["sockets"] = len(sockets) or None
    if any("flags" in block for block in listed):
        # Only x86 has a flag for a hypervisor.
        facts["virtual"] = any("hypervisor" in block.get("flags", "").split() for block in listed)
    return known(facts)


def _colons(block: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in block.splitlines() if ":" in line)
    return {key.strip(): _MHZ.sub("", value.strip()) for key, _, value in pairs}


def _agreed(values: Iterable[str]) -> str | None:
    return ", ".join(sorted(set(values))) or None


def total_memory_bytes(meminfo: str) -> int | None:
    """/proc/meminfo's total, rounded: some pages more or less are taken at each boot."""
    for line in meminfo.splitlines():
        name, _, value = line.partition(":")
        if name == "MemTotal" and value.split()[:1] and value.split()[0].isdigit():
            step = _MEMORY_STEP_BYTES
            return (int(value.split()[0]) * 1024 + step // 2) // step * step
    return None


def chosen(text: str) -> str:
    """The word in brackets of ``always [madvise] never``; else all of the text."""
    match = re.search(r"\[(\S+)\]", text)
    return match[1] if match else text.strip()


def boot_options(command_line: str) -> Facts:
    """The words of /proc/cmdline that matter here, by name."""
    found: Facts = {}
    for word in command_line.split():
        name, _, value = word.partition("=")
        if name == "--":
            break  # what follows is for the first process
        if name in _BOOT_WORDS:
            found[name] = ", ".join(filter(None, (found.get(name), value or "on")))
    return found


def known(facts: Mapping[str, Any]) -> Facts:  # any JSON
    """*facts* without what could not be read."""
    return {name: value for name, value in facts.items() if value not in (None, "", {})}


class Files:
    """Small files below a root; what is missing or refused reads as empty.

    :param root: where /proc and /sys are looked for.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def text(self, path: str) -> str:
        """A file's text without the white space around it."""
        try:
            return (self._root / path).read_text(errors="replace").strip()
        except OSError:
            return ""

    def texts(self, pattern: str) -> dict[str, str]:
        """Every file that a pattern names: its text by its path, in order."""
        try:
            found = sorted(self._root.glob(pattern))
        except OSError:
            return {}
        paths = [str(path.relative_to(self._root)) for path in found]
        return {path: text for path in paths if (text := self.text(path))}

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        return (self._root / path).exists()


def read_kernel(files: Files) -> Facts:
    """Its release, its build and how it was started."""
    return known(
        {
            "release": files.text("proc/sys/kernel/osrelease"),
            "build": files.text("proc/sys/kernel/version"),
            "boot_options": boot_options(files.text("proc/cmdline")),
            "clock": files.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        }
    )


def read_cpu(files: Files) -> Facts:
    """The CPUs and how their speed is governed."""
    base = "sys/devices/system/cpu"
    governors = files.texts(f"{base}/cpu[0-9]*/cpufreq/scaling_governor")
    drivers = files.texts(f"{base}/cpu[0-9]*/cpufreq/scaling_driver")
    return cpu(files.text("proc/cpuinfo")) | known(
        {
            "governor": _agreed(governors.values()),
            "frequency_driver": _agreed(drivers.values()),
            "boost": files.text(f"{base}/cpufreq/boost"),
            "no_turbo": files.text(f"{base}/intel_pstate/no_turbo"),
            "idle_driver": files.text(f"{base}/cpuidle/current_driver"),
            "idle_governor": files.text(f"{base}/cpuidle/current_governor"),
            "smt": files.text(f"{base}/smt/control"),
            "isolated": files.text(f"{base}/isolated"),
        }
    )


def read_memory(files: Files) -> Facts:
    """How much there is, of which nodes, and what the kernel does with its pages."""
    thp = "sys/kernel/mm/transparent_hugepage"
    pools = files.texts("sys/kernel/mm/hugepages/hugepages-*/nr_hugepages")
    return known(
        {
            "total_bytes": _online_bytes(files) or total_memory_bytes(files.text("proc/meminfo")),
            "nodes": files.text("sys/devices/system/node/online"),
            "thp": known(
                {
                    name: chosen(files.text(f"{thp}/{path}"))
                    for name, path in {
                        "enabled": "enabled",
                        "defrag": "defrag",
                        "shmem": "shmem_enabled",
                        "khugepaged_defrag": "khugepaged/defrag",
                    }.items()
                }
            ),
            "hugepages": {path.split("/")[-2]: count for path, count in pools.items()},
            "ksm": files.text("sys/kernel/mm/ksm/run"),
        }
    )


def _online_bytes(files: Files) -> int | None:
    """All blocks of memory that are online: the same at each boot, unlike MemTotal."""
    base = "sys/devices/system/memory"
    try:
        size = int(files.text(f"{base}/block_size_bytes"), 16)
    except ValueError:
        return None
    states = files.texts(f"{base}/memory[0-9]*/state").values()
    return size * sum(state == "online" for state in states) or None


def read_sysctls(files: Files) -> Facts:
    """Those of SYSCTLS that there are, each as one line."""

    def read(name: str) -> str:
        return " ".join(files.text(f"proc/sys/{name.replace('.', '/')}").split())

    return known({name: read(name) for name in SYSCTLS})


def read_mitigations(files: Files) -> Facts:
    """What the kernel does about each weakness of the CPU that it has."""
    found = files.texts("sys/devices/system/cpu/vulnerabilities/*")
    return {path.split("/")[-1]: text for path, text in found.items() if text != "Not affected"}


def read_kvm(files: Files) -> Facts:
    """KVM's module for this CPU and how it is set; empty without KVM."""
    if not files.exists("dev/kvm"):
        return {}
    parameters = files.texts("sys/module/kvm*/parameters/*")
    modules = sorted(
        name
        for name in ("kvm_amd", "kvm_intel", "kvm_hv", "kvm_pr", "kvm_pvm")
        if files.exists(f"sys/module/{name}")
    )
    found = {path.split("/")[-1]: value for path, value in parameters.items()}
    return {
        "device": True,
        **known({"module": ", ".join(modules)}),
        **{name: found[name] for name in _KVM_PARAMETERS if name in found},
    }
