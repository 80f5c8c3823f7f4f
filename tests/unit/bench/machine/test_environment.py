"""The fingerprint: the same after a reboot, another for whatever changes how fast a run is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vmtune.bench.machine import environment as env
from vmtune.bench.machine.environment import (
    Subject,
    conditions,
    differences,
    fingerprint,
    qemu_version,
    read_environment,
)

CPU = """processor	: {n}
vendor_id	: GenuineIntel
cpu family	: 6
model		: 106
model name	: Intel(R) Xeon(R) Gold 6338 CPU @ {ghz}GHz
stepping	: 6
microcode	: 0xd0003d1
cpu MHz		: {mhz}
physical id	: 0
siblings	: 2
cpu cores	: 2
flags		: fpu vme sse2 constant_tsc
bogomips	: {bogo}

"""
FILES = {
    "proc/cpuinfo": "".join(CPU.format(n=n, ghz="2.00", mhz="2000.0", bogo="4000") for n in (0, 1)),
    "proc/meminfo": "MemTotal:       65800000 kB\nMemFree:  100 kB\nMemAvailable:   5000 kB\n",
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz-6.1 root=UUID=12 ro isolcpus=2-3 quiet -- mitigations=x",
    "proc/loadavg": "0.50 0.25 0.10 1/200 4242\n",
    "proc/uptime": "100.0 50.0\n",
    "proc/pressure/cpu": "some avg10=2.50 avg60=1.21 avg300=0.57 total=1\nfull avg10=9 total=0\n",
    "proc/sys/kernel/osrelease": "6.1.0-13-amd64\n",
    "proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC Debian 6.1.55-1\n",
    "proc/sys/kernel/random/boot_id": "aaaa\n",
    "proc/sys/kernel/numa_balancing": "1\n",
    "proc/sys/net/core/optmem_max": "20480\n",
    "proc/sys/net/core/wmem_max": "212992\n",
    "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
    "proc/sys/net/ipv4/tcp_mem": "188\t251\t377\n",
    "proc/sys/vm/max_map_count": "65530\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "intel_pstate\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "2000000\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0\n",
    "sys/devices/system/cpu/cpuidle/current_driver": "intel_idle\n",
    "sys/devices/system/cpu/smt/control": "on\n",
    "sys/devices/system/cpu/vulnerabilities/meltdown": "Mitigation: PTI\n",
    "sys/devices/system/cpu/vulnerabilities/mds": "Not affected\n",
    "sys/devices/system/node/online": "0-1\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/kernel/mm/transparent_hugepage/defrag": "always defer [madvise] never\n",
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "0\n",
    "sys/kernel/mm/ksm/run": "0\n",
    "sys/module/kvm_intel/parameters/nested": "Y\n",
    "sys/module/kvm/parameters/halt_poll_ns": "200000\n",
    "sys/module/kvm/parameters/min_timer_period_us": "200\n",
    "dev/kvm": "",
}
VOLATILE = {
    "proc/cpuinfo": "".join(CPU.format(n=n, ghz="2.10", mhz="3100", bogo="4001") for n in (0, 1)),
    "proc/meminfo": "MemTotal:       65800128 kB\nMemFree:  900 kB\nMemAvailable:   4 kB\n",
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz-6.1.bak root=UUID=12 ro isolcpus=2-3 debug",
    "proc/loadavg": "9.50 4.25 0.10 1/200 1\n",
    "proc/uptime": "5.0 1.0\n",
    "proc/pressure/cpu": "some avg10=70 total=1\n",
    "proc/sys/kernel/random/boot_id": "bbbb\n",
    "proc/sys/net/ipv4/tcp_mem": "189\t252\t378\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "800000\n",
    "sys/module/kvm/parameters/min_timer_period_us": "300\n",
}
CHANGES = {
    "cpu.count": ("proc/cpuinfo", CPU.format(n=0, ghz="2.00", mhz="1", bogo="1")),
    "cpu.microcode": ("proc/cpuinfo", FILES["proc/cpuinfo"].replace("0xd0003d1", "0xd0003e7")),
    "cpu.model": ("proc/cpuinfo", FILES["proc/cpuinfo"].replace("6338", "6348")),
    "cpu.virtual": ("proc/cpuinfo", FILES["proc/cpuinfo"].replace("sse2", "hypervisor")),
    "cpu.governor": ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave"),
    "cpu.frequency_driver": (
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
        "acpi-cpufreq",
    ),
    "cpu.no_turbo": ("sys/devices/system/cpu/intel_pstate/no_turbo", "1"),
    "cpu.idle_driver": ("sys/devices/system/cpu/cpuidle/current_driver", "none"),
    "cpu.smt": ("sys/devices/system/cpu/smt/control", "off"),
    "kernel.release": ("proc/sys/kernel/osrelease", "6.1.0-14-amd64"),
    "kernel.build": ("proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian 6.1.55-1"),
    "kernel.boot_options.isolcpus": ("proc/cmdline", "isolcpus=1 quiet"),
    "kernel.boot_options.mitigations": ("proc/cmdline", "mitigations=off isolcpus=2-3"),
    "kernel.clock": ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet"),
    "kvm.nested": ("sys/module/kvm_intel/parameters/nested", "N"),
    "kvm.halt_poll_ns": ("sys/module/kvm/parameters/halt_poll_ns", "0"),
    "memory.total_bytes": ("proc/meminfo", "MemTotal: 131600000 kB"),
    "memory.nodes": ("sys/devices/system/node/online", "0"),
    "memory.thp.enabled": ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never"),
    "memory.thp.defrag": ("sys/kernel/mm/transparent_hugepage/defrag", "[always] madvise"),
    "memory.hugepages.hugepages-2048kB": (
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        "512",
    ),
    "memory.ksm": ("sys/kernel/mm/ksm/run", "1"),
    "mitigations.meltdown": ("sys/devices/system/cpu/vulnerabilities/meltdown", "Vulnerable"),
    "mitigations.mds": ("sys/devices/system/cpu/vulnerabilities/mds", "Vulnerable"),
    "sysctls.kernel.numa_balancing": ("proc/sys/kernel/numa_balancing", "0"),
    "sysctls.net.core.optmem_max": ("proc/sys/net/core/optmem_max", "131072"),
    "sysctls.net.core.wmem_max": ("proc/sys/net/core/wmem_max", "4194304"),
    "sysctls.net.ipv4.tcp_rmem": ("proc/sys/net/ipv4/tcp_rmem", "4096 131072 33554432"),
    "sysctls.vm.max_map_count": ("proc/sys/vm/max_map_count", "262144"),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        _write(tmp_path, name, text)
    return tmp_path


def _write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a QEMU that says what it is told to."""

    def make(says: str) -> Path:
        path = tmp_path_factory.mktemp("bin") / "qemu"
        path.write_text(f"#!/bin/sh\necho '{says}'\n")
        path.chmod(0o755)
        return path

    return make


def look(root: Path, program: Path = Path("/nowhere"), **subject: Any) -> env.Environment:
    return read_environment(Subject(program, **{"kvm": True, "address": "", **subject}), root)


def test_a_reboot_changes_nothing(root: Path) -> None:
    before = look(root)
    for name, text in VOLATILE.items():
        _write(root, name, text)
    assert differences(before, look(root)) == ()
    assert fingerprint(before) == fingerprint(look(root))


@pytest.mark.parametrize("field", CHANGES)
def test_what_matters_is_told(root: Path, field: str) -> None:
    before = look(root)
    _write(root, *CHANGES[field])
    after = look(root)
    told = {d.field: d for d in differences(before, after)}
    assert field in told
    assert told[field].first != told[field].second
    assert fingerprint(before) != fingerprint(after)


def test_it_has_what_was_asked_for(root: Path) -> None:
    seen = look(root)
    assert seen["cpu"] == {
        "count": 2, "vendor": "GenuineIntel", "model": "Intel(R) Xeon(R) Gold 6338 CPU",
        "family": "6", "model_number": "106", "stepping": "6", "microcode": "0xd0003d1",
        "cores_per_socket": "2", "threads_per_socket": "2", "sockets": 1, "virtual": False,
        "governor": "performance", "frequency_driver": "intel_pstate", "no_turbo": "0",
        "idle_driver": "intel_idle", "smt": "on",
    }  # fmt: skip
    assert seen["kernel"]["boot_options"] == {"isolcpus": "2-3"}
    assert seen["memory"]["thp"] == {"enabled": "madvise", "defrag": "madvise"}
    assert seen["mitigations"] == {"meltdown": "Mitigation: PTI"}
    kvm = {"device": True, "module": "kvm_intel", "nested": "Y", "halt_poll_ns": "200000"}
    assert seen["kvm"] == kvm
    assert seen["network"] == {"kind": "unix socket"}


def test_the_accelerator_is_part_of_it(root: Path) -> None:
    kvm, tcg = look(root), look(root, kvm=False)
    assert (kvm["accelerator"], tcg["accelerator"]) == ("kvm", "tcg")
    assert "kvm" not in tcg


def test_libvirt_is_part_of_it_where_it_runs_the_vms(root: Path) -> None:
    assert "libvirt" not in look(root)
    assert look(root, libvirt="11.3.0")["libvirt"] == "11.3.0"


def test_a_machine_that_tells_nothing_has_an_environment_too(tmp_path: Path) -> None:
    seen = look(tmp_path)
    assert seen == {"accelerator": "kvm", "cpu": {"count": 0}, "network": {"kind": "unix socket"}}
    assert conditions(tmp_path) == {}


def test_blocks_of_memory_go_before_what_is_left_of_them(root: Path) -> None:
    base = "sys/devices/system/memory"
    _write(root, f"{base}/block_size_bytes", "8000000\n")
    for number, state in enumerate(("online", "online", "offline")):
        _write(root, f"{base}/memory{number}/state", state)
    assert look(root)["memory"]["total_bytes"] == 2 * 0x8000000


def test_two_builds_of_one_version_are_told_apart(
    root: Path, program: Callable[[str], Path]
) -> None:
    says = "QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)"
    one, other = program(says), program(says + "\n")
    first, second = look(root, one)["qemu"], look(root, other)["qemu"]
    assert first["version"] == second["version"] == "10.0.2 (Debian 1:10.0.2+ds-2)"
    assert first["digest"] != second["digest"]
    assert first["path"] == str(one)
    assert look(root, one)["qemu"] == first
    assert "qemu" not in look(root, Path("/nowhere"))


def test_a_program_that_is_replaced_is_looked_at_again(
    root: Path, program: Callable[[str], Path]
) -> None:
    path = program("QEMU emulator version 10.0.2")
    assert look(root, path)["qemu"]["version"] == "10.0.2"
    path.write_text("#!/bin/sh\necho 'QEMU emulator version 10.1.0'\n")
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert look(root, path)["qemu"]["version"] == "10.1.0"


@given(st.text())
def test_whatever_a_qemu_says_is_a_version(said: str) -> None:
    assert qemu_version(said)


def test_conditions_are_of_the_moment_and_not_in_the_fingerprint(root: Path) -> None:
    assert conditions(root) == {
        "load_1min": 0.5,
        "load_5min": 0.25,
        "memory_available_bytes": 5000 * 1024,
        "cpu_pressure_percent": 2.5,
    }


def test_this_machine_has_one(tmp_path: Path) -> None:
    qemu = shutil.which("qemu-system-x86_64") or "/nowhere"
    subject = Subject(Path(qemu), kvm=Path("/dev/kvm").exists())
    seen = read_environment(subject)
    assert seen["cpu"]["count"] == os.cpu_count()
    assert seen["kernel"]["release"] == os.uname().release
    assert seen["network"]["kind"] == "loopback"
    assert seen["network"]["mtu"] >= 1500
    assert fingerprint(seen) == fingerprint(read_environment(subject))
    assert json.loads(json.dumps(seen)) == seen
    assert conditions()["load_1min"] >= 0


NOT_ROOT = "" if os.geteuid() == 0 else "only root may enter a network namespace"


@pytest.fixture
def empty_namespace() -> Iterator[Path]:
    """A network namespace whose loopback is down."""
    ready = "echo; exec sleep 60"
    command = ["unshare", "--net", "sh", "-c", ready]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        try:
            yield Path(f"/proc/{process.pid}/ns/net")
        finally:
            process.kill()


@pytest.mark.skipif(bool(NOT_ROOT), reason=NOT_ROOT or "never")
def test_the_network_is_that_of_the_namespace(empty_namespace: Path) -> None:
    here = Subject(Path("/nowhere"), kvm=False)
    there = Subject(Path("/nowhere"), kvm=False, network_namespace=empty_namespace)
    assert read_environment(here)["network"]["kind"] == "loopback"
    assert read_environment(there)["network"] == {"kind": "unknown"}
    # The loopback of this thread's own namespace is as it was.
    assert read_environment(here)["network"]["kind"] == "loopback"
    # Some of the network's sysctls are a namespace's own, and all of this thread's were there.
    assert read_environment(there)["sysctls"]["vm.swappiness"]


def test_a_namespace_that_is_gone_is_an_unknown_network() -> None:
    gone = Subject(Path("/nowhere"), kvm=False, network_namespace=Path("/nowhere"))
    assert read_environment(gone)["network"] == {"kind": "unknown"}


leaves = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-2, 2) | st.text(max_size=3)
environments = st.dictionaries(
    st.text(max_size=3),
    leaves | st.lists(leaves, max_size=2) | st.dictionaries(st.text(max_size=2), leaves),
    max_size=4,
)


@given(environments, environments)
def test_fingerprints_differ_where_something_does(one: dict[str, Any], two: dict[str, Any]) -> None:
    found = differences(one, two)
    mirrored = tuple(env.Difference(d.field, d.second, d.first) for d in found)
    assert differences(two, one) == mirrored
    assert [d.field for d in found] == sorted({d.field for d in found})
    if found:
        assert fingerprint(one) != fingerprint(two)
    if fingerprint(one) == fingerprint(two):
        assert found == ()


@given(environments)
@example({"": {"0": 1}, "0": 2})
def test_the_order_of_the_keys_is_of_no_matter(one: dict[str, Any]) -> None:
    turned = {
        key: dict(reversed(value.items())) if isinstance(value, dict) else value
        for key, value in reversed(one.items())
    }
    assert fingerprint(turned) == fingerprint(one)
    assert differences(one, turned) == ()
    assert (fingerprint(one) == "") == (not one)


def test_true_is_not_one() -> None:
    (found,) = differences({"a": {"b": True}}, {"a": {"b": 1}})
    assert (found.field, found.first, found.second) == ("a.b", True, 1)
    assert differences({"a": {"b": 1}}, {"a": {}})[0].second is None


def test_where_the_program_is_makes_no_difference(
    root: Path, program: Callable[[str], Path]
) -> None:
    here = look(root, program("QEMU emulator version 10.0.2"))
    there = {**here, "qemu": {**here["qemu"], "path": "/opt/qemu"}}
    assert fingerprint(here) == fingerprint(there)
    assert differences(here, there) == ()
    without = {**here, "qemu": {k: v for k, v in here["qemu"].items() if k != "path"}}
    assert fingerprint(without) == fingerprint(here)
