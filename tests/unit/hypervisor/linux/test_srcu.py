"""Timing updates of a VM's memory map on this machine."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vmtune.errors import SetupError
from vmtune.hypervisor.linux.srcu import config_hz, measure_srcu

needs_kvm = pytest.mark.skipif(
    not os.access("/dev/kvm", os.R_OK | os.W_OK) or os.uname().machine != "x86_64",
    reason="/dev/kvm cannot be used here, or this is no x86-64",
)


@needs_kvm
@pytest.mark.parametrize("vcpus", [1, 2])
def test_updates_are_timed_while_vcpus_spin(vcpus: int) -> None:
    before = len(os.listdir("/proc/self/fd"))
    cost = measure_srcu(vcpus, updates=40, longest_s=5)
    assert cost.vcpus == vcpus
    assert 1 <= cost.add.count == cost.delete.count <= 20
    assert cost.idle_add.count == cost.idle_delete.count == 2
    for times in (cost.add, cost.delete, cost.idle_add, cost.idle_delete):
        assert 0 < times.median_us <= times.p90_us <= times.p99_us <= times.most_us
    assert cost.grace_period_us < cost.add.median_us + cost.delete.median_us
    assert len(os.listdir("/proc/self/fd")) == before


@needs_kvm
def test_a_slow_kernel_is_given_up_in_time() -> None:
    cost = measure_srcu(1, updates=10_000_000, longest_s=0.3)
    assert 1 <= cost.add.count < 5_000_000


def test_where_there_is_no_kvm_it_says_so(tmp_path: Path) -> None:
    for kvm in (tmp_path / "none", tmp_path):
        with pytest.raises(SetupError) as refused:
            measure_srcu(1, updates=2, kvm=kvm)
        (problem,) = refused.value.problems
        assert problem.code == "srcu_not_measured"
        assert "/dev/kvm" in problem.remedy
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="Inappropriate ioctl"):
        measure_srcu(1, updates=2, kvm=tmp_path / "file")


def test_the_program_needs_nothing_of_vmtune() -> None:
    program = Path(__file__).parents[4] / "vmtune/hypervisor/linux/srcu_program.py"
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(program), "/nowhere/kvm", "2", "1", "1"],
        capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert '"asked": false' in done.stdout


def test_the_ticks_are_read_from_the_kernels_configuration(tmp_path: Path) -> None:
    assert config_hz(tmp_path) is None
    boot = tmp_path / "boot"
    boot.mkdir()
    (boot / f"config-{os.uname().release}").write_text("CONFIG_HZ_300=y\nCONFIG_HZ=300\n")
    assert config_hz(tmp_path) == 300
    (tmp_path / "proc").mkdir()
    packed = tmp_path / "proc/config.gz"
    packed.write_bytes(gzip.compress(b"CONFIG_HZ=1000\n"))
    assert config_hz(tmp_path) == 1000
    packed.write_bytes(b"no gzip")
    assert config_hz(tmp_path) == 300
