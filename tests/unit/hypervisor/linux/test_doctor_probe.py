"""How a machine is looked at for the doctor: over a folder with a /proc, /sys and /dev of its
own, and this machine itself."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.qemus.qemu import installed, running
from vmtune.hypervisor.linux.dirty_ring import RingReset
from vmtune.hypervisor.linux.doctor_probe import Probes, examine
from vmtune.hypervisor.linux.kernel_calls import ask_kvm, ask_scatter_gather
from vmtune.model.doctor.facts import KvmSeen, NicSeen, Seen
from vmtune.model.doctor.rules import diagnose
from vmtune.model.versions import Version

GIB = 1 << 30
FILES = {
    "proc/sys/kernel/osrelease": "6.12.38+deb13-amd64\n",
    "proc/sys/kernel/hostname": "rack7\n",
    "proc/sys/vm/max_map_count": "65530\n",
    "proc/sys/vm/unprivileged_userfaultfd": "1\n",
    "proc/sys/net/core/optmem_max": "131072\n",
    "proc/cpuinfo": "".join(f"processor\t: {n}\nmodel name\t: x\n\n" for n in range(8)),
    "proc/self/status": "CapEff:\t0000000000000000\n",
    "proc/80/comm": "virtqemud\n",
    "proc/80/status": "Name:\tvirtqemud\nCapEff:\t0000000001000000\n",
    "proc/91/comm": "qemu-system-x86\n",
    "proc/91/cmdline": "qemu-system-x86_64\0-m\0size=4194304k\0-smp\x003,sockets=3\0",
    "proc/91/status": "Name:\tqemu\nUid:\t64055\t64055\t64055\t64055\nCapEff:\t0000000000000000\n",
    "proc/91/limits": "Max locked memory         65536                65536                bytes\n",
    "proc/91/maps": "a\nb\nc\n",
    "proc/92/comm": "bash\n",
    "sys/module/srcutree/parameters/srcu_max_nodelay": "1000\n",
    "sys/module/srcutree/parameters/srcu_max_nodelay_phase": "1000\n",
    "sys/module/srcutree/parameters/srcu_retry_check_delay": "5\n",
    "proc/91/attr/current": "libvirt-91 (enforce)\n",
    "sys/module/apparmor/parameters/enabled": "Y\n",
    "sys/class/net/eth0/operstate": "up\n",
    "sys/class/net/eth0/speed": "25000\n",
    "sys/class/net/eth0/device/vendor": "0x15b3\n",
    "sys/class/net/lo/operstate": "unknown\n",
    "sys/class/net/br0/operstate": "up\n",
    "sys/class/net/eth1/operstate": "down\n",
    "sys/class/net/eth1/device/vendor": "0x15b3\n",
    "dev/userfaultfd": "",
}  # fmt: skip


def machine(root: Path, **changes: str | None) -> Probes:
    """A healthy machine's files; *changes* by path with ``__`` for ``/``, None for none."""
    given = {**FILES, **{name.replace("__", "/"): text for name, text in changes.items()}}
    for name, text in given.items():
        if text is not None:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
    versions = {"qemu-system-x86_64": Version(10, 1), "libvirtd": Version(11, 3)}
    return Probes(
        root,
        kvm=lambda path: KvmSeen(present=True, dirty_ring_bytes=1 << 20),
        ring_reset=lambda path: RingReset(ends_early=False),
        gathers={"eth0": True}.get,
        which=lambda name: f"/usr/bin/{name}",
        version=versions.get,
    )


def test_all_is_read_and_nothing_is_wrong_on_a_healthy_machine(tmp_path: Path) -> None:
    seen = examine(machine(tmp_path))
    assert diagnose("rack7", seen).findings == ()
    assert seen.skipped_checks == ()
    assert seen.hostname == "rack7"
    assert seen.kernel == Seen("6.12.38+deb13-amd64", "/proc/sys/kernel/osrelease")
    assert seen.cpus == Seen(8, "/proc/cpuinfo")
    assert seen.nics == (NicSeen("eth0", 25_000, True),)
    assert seen.can_raise_memlock == Seen(True, "CapEff of /proc/80/status")
    assert seen.srcu["srcu_retry_check_delay"] == "5"
    (qemu,) = seen.qemus
    assert (qemu.pid, qemu.vcpus, qemu.maps, qemu.memory_bytes) == (91, 3, 3, 4 * GIB)
    assert (qemu.memlock_bytes, qemu.may_lock, qemu.root) == (65536, False, False)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"proc__sys__kernel__osrelease": "5.19.0-rc2-amd64",
          "sys__module__srcutree__parameters__srcu_max_nodelay": None}, "srcu_slow_boot"),
        ({"proc__sys__vm__max_map_count": "4096"}, "map_count_low"),
        ({"proc__sys__net__core__optmem_max": "10240"}, "host_optmem_low"),
        ({"proc__sys__vm__unprivileged_userfaultfd": "0"}, "userfaultfd_denied"),
        ({"proc__91__maps": "m\n" * 60_000}, "maps_nearly_used_up"),
        ({"sys__class__net__eth0__speed": "1000"}, "nic_slow"),
        ({"proc__91__attr__current": "unconfined\n"}, "qemus_unconfined"),
        ({"proc__91__attr__current": "unconfined_u:unconfined_r:unconfined_t:s0\0",
          "sys__module__apparmor__parameters__enabled": None,
          "sys__fs__selinux__enforce": "1"}, "qemus_unconfined"),
        ({"proc__80__status": "CapEff:\t0000000000000000", "proc__91__comm": "gone"},
         "daemon_cannot_raise_memlock"),
    ],
)  # fmt: skip
def test_a_planted_file_is_found(tmp_path: Path, changes: dict[str, str | None], code: str) -> None:
    found = diagnose("x", examine(machine(tmp_path, **changes))).findings
    assert [finding.code for finding in found] == [code]


def test_what_is_missing_is_told_and_is_no_finding(tmp_path: Path) -> None:
    probes = replace(machine(tmp_path), root=tmp_path / "empty", gathers=lambda nic: None)
    seen = examine(probes)
    assert diagnose("x", seen).findings == ()
    told = {skipped_checks.what: skipped_checks.why for skipped_checks in seen.skipped_checks}
    assert told["vm.max_map_count"] == "/proc/sys/vm/max_map_count: No such file or directory"
    assert {"the kernel's version", "net.core.optmem_max", "network cards"} <= set(told)


def test_a_kernel_that_empties_rings_in_part_is_found(tmp_path: Path) -> None:
    probes = replace(machine(tmp_path), ring_reset=lambda path: RingReset(ends_early=True))
    found = diagnose("x", examine(probes)).findings
    assert [finding.code for finding in found] == ["dirty_ring_unsafe"]
    (tmp_path / "proc/91/cmdline").write_text("qemu\0-accel\0kvm,dirty-ring-size=4096\0")
    found = diagnose("x", examine(probes)).findings
    assert [finding.code for finding in found] == ["vm_dirty_ring_unsafe"]
    assert (found[0].evidence["pid"], found[0].evidence["entries"]) == (91, 4096)


def test_that_it_could_not_be_tried_is_told(tmp_path: Path) -> None:
    probes = replace(machine(tmp_path), ring_reset=lambda path: RingReset(None, "no such VM"))
    seen = examine(probes)
    assert diagnose("x", seen).findings == ()
    assert [(each.what, each.why) for each in seen.skipped_checks] == [
        ("how the kernel empties dirty rings", "no such VM")
    ]


def test_what_is_no_number_is_told(tmp_path: Path) -> None:
    seen = examine(machine(tmp_path, proc__sys__vm__max_map_count="many"))
    assert seen.max_map_count is None
    assert "'many', no number" in seen.skipped_checks[0].why


def test_vcpus_are_counted_by_their_threads_where_these_have_names(tmp_path: Path) -> None:
    names = {f"proc__91__task__{n}__comm": f"CPU {n}/KVM" for n in range(5)}
    (qemu,) = examine(machine(tmp_path, **names, proc__91__task__9__comm="IO iothread1")).qemus
    assert qemu.vcpus == 5


@pytest.mark.parametrize(
    ("option", "memory"),
    [("2048", 2 * GIB), ("4G", 4 * GIB), ("size=1g,slots=2", GIB), ("what", None)],
)
def test_guest_memory_is_read_as_qemu_reads_it(
    tmp_path: Path, option: str, memory: int | None
) -> None:
    (qemu,) = examine(machine(tmp_path, proc__91__cmdline=f"qemu\0-m\0{option}\0")).qemus
    assert (qemu.memory_bytes, qemu.vcpus) == (memory, 1)


def test_kvm_that_is_not_there_cannot_be_opened_or_is_no_kvm(tmp_path: Path) -> None:
    assert ask_kvm(tmp_path / "kvm") == KvmSeen(present=False)
    (tmp_path / "kvm").write_text("")
    assert ask_kvm(tmp_path / "kvm").why_not == "it is not KVM: " + os.strerror(errno.ENOTTY)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert ask_kvm(tmp_path / "loop").why_not == os.strerror(errno.ELOOP)


def test_this_machine_is_seen(tmp_path: Path) -> None:
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        pytest.skip("/dev/kvm cannot be used here")
    build = installed()
    if build.why_not:
        pytest.skip(build.why_not)
    with running(build, tmp_path) as qemu:
        seen = examine()
        mine = next(each for each in seen.qemus if each.pid == qemu.pid)
    assert (mine.vcpus, mine.memory_bytes) == (1, 64 << 20)
    assert mine.maps is not None
    assert mine.maps > 100
    assert seen.kernel == Seen(os.uname().release, "/proc/sys/kernel/osrelease")
    assert seen.cpus is not None
    assert seen.cpus.value == len(list(Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology")))
    assert seen.kvm is not None
    assert seen.kvm.why_not == ""
    assert seen.kvm.dirty_ring_bytes is not None
    # A ring's entry has 16 bytes (linux/kvm.h), and 65,536 are the most that QEMU takes.
    assert seen.kvm.dirty_ring_bytes in (0, 65536 * 16)
    assert build.label.endswith(str(seen.qemu_versions[0][1]))
    assert ask_scatter_gather("lo") is True
    assert ask_scatter_gather("no-such-card") is None
    assert ask_scatter_gather("x" * 99) is None
