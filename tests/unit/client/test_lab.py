"""``vmtune lab vm``: its options, and the VM that they make."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.client.conftest import Vmtune
from vmtune.lab import LabSettings, LabVm, VmSettings
from vmtune.model.workload import Workload

MIB = 1 << 20


@pytest.fixture
def defined(monkeypatch: pytest.MonkeyPatch) -> list[tuple[VmSettings, str]]:
    """What the lab was asked for."""
    asked = []

    def define_vm(settings: LabSettings, vm: VmSettings, *, host: str) -> LabVm:
        asked.append((vm, host))
        return LabVm(vm.name, "uuid", host, "uri", "tcg", settings.folder / "serial.log")

    monkeypatch.setattr("vmtune.admin.commands.lab.define_vm", define_vm)
    return asked


def test_what_is_not_given_is_the_labs_default(
    vmtune: Vmtune, defined: list[tuple[VmSettings, str]]
) -> None:
    assert vmtune("lab", "vm").code == 0
    assert defined == [(VmSettings(), "a")]


def test_every_option_reaches_the_vm(
    vmtune: Vmtune, defined: list[tuple[VmSettings, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/var")
    ran = vmtune(
        *("lab", "vm", "--name", "x", "--host", "b", "--memory", "256Mi", "--region", "64Mi"),
        *("--stride", "1", "--idle", "200ms", "--dirty-rate", "1.5GB/s", "--zero", "20%"),
        *("--random", "30", "--beat", "5ms", "--ring", "3", "--skew", "80", "--listener", "ears"),
        *("--vcpus", "4", "--iothreads", "2", "--dirty-ring", "4096"),
    )
    assert (ran.code, ran.err) == (0, "")
    work = Workload(
        region_bytes=64 * MIB,
        stride_bytes=1,
        dirty_mb_per_s=1500,
        zero_percent=20,
        random_percent=30,
        idle_ms=200,
        beat_ms=5,
        cpu_ring=3,
        skew_percent=80,
    )
    vm = VmSettings(
        name="x",
        memory_bytes=256 * MIB,
        vcpus=4,
        workload=work,
        listener=Path("/var/ears"),
        iothreads=2,
        dirty_ring_entries=4096,
    )
    assert defined == [(vm, "b")]


def test_a_guest_that_checks_its_memory(
    vmtune: Vmtune, defined: list[tuple[VmSettings, str]]
) -> None:
    assert vmtune("lab", "vm", "--check").code == 0
    ((vm, _),) = defined
    assert vm.workload.check == 1


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--dirty-rate", "1500kB/s"), "--dirty-rate"),
        (("--dirty-rate", "fast"), "--dirty-rate"),
        (("--zero", "60", "--random", "50"), "random_percent"),
        (("--ring", "2"), "cpu_ring"),
        (("--check", "--zero", "20%"), "check"),
        (("--beat", "-1"), "beat_ms"),
        (("--region", "1Gi"), "workload.region_bytes"),
    ],
)
def test_what_is_wrong_is_named(
    vmtune: Vmtune,
    defined: list[tuple[VmSettings, str]],
    options: tuple[str, ...],
    named: str,
) -> None:
    ran = vmtune("lab", "vm", *options)
    assert ran.code == 1
    assert named in ran.err
    assert defined == []
