"""Settings of the lab and its VM: what is refused, by which field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vmtune.errors import InvalidInput
from vmtune.lab import DiskSettings, LabSettings, VmSettings
from vmtune.model.workload import Workload


def test_defaults_are_usable() -> None:
    assert LabSettings().daemon == Path("/usr/sbin/libvirtd")
    assert VmSettings().workload.region_bytes < VmSettings().memory_bytes


def test_an_unpacked_libvirt_brings_its_own_daemon() -> None:
    settings = LabSettings(libvirt_root=Path("/opt/libvirt-9"))
    assert settings.daemon == Path("/opt/libvirt-9/usr/sbin/libvirtd")


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"name_a": "Upper"}, "name_a"),
        ({"name_a": "a/b"}, "name_a"),
        ({"name_a": ""}, "name_a"),
        ({"name_b": "localhost"}, "name_b"),
        ({"name_a": "x", "name_b": "x"}, "name_b"),
        ({"address_a": "10.99.0.1"}, "address_a"),
        ({"address_b": "10.99.0.300/24"}, "address_b"),
        ({"address_b": "10.99.0.1/24"}, "address_b"),
        ({"address_b": "10.98.0.2/24"}, "address_b"),
        ({"machines": True, "migration_address_a": "10.98.0.1"}, "migration_address_a"),
        ({"machines": True, "migration_address_b": "10.97.0.2/24"}, "migration_address_b"),
        (
            {"machines": True, "address_a": "10.98.1.1/16", "address_b": "10.98.1.2/16"},
            "migration_address_a",
        ),
        ({"hosts": 3}, "hosts"),
        ({"hosts": 4, "machines": True}, "hosts"),
        ({"hosts": 3, "machines": True, "name_c": "vmtune-a"}, "name_c"),
        ({"hosts": 3, "machines": True, "address_c": "10.99.0.2/24"}, "address_c"),
        (
            {"hosts": 3, "machines": True, "migration_address_c": "10.9.0.3/24"},
            "migration_address_c",
        ),
        ({"device_a": "ens1f0"}, "device_b"),
        ({"device_b": "ens1f1"}, "device_a"),
        ({"device_a": "ens1f0", "device_b": "ens1f0"}, "device_b"),
        ({"device_a": "a/b", "device_b": "ens1f0"}, "device_a"),
        ({"device_a": "-a", "device_b": "ens1f0"}, "device_a"),
        ({"hosts": 3, "machines": True, "device_a": "x", "device_b": "y"}, "device_a"),
        ({"folder": Path("relative")}, "folder"),
        ({"folder": Path("/" + "x" * 90)}, "folder"),
        ({"folder": Path("/run/with space")}, "folder"),
        ({"qemu": Path("qemu")}, "qemu"),
        ({"libvirtd": Path("libvirtd")}, "libvirtd"),
        ({"libvirt_root": Path("libvirt")}, "libvirt_root"),
    ],
)
def test_lab_refuses(values: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        LabSettings(**values)
    assert [problem.field for problem in refused.value.problems] == [field]


def test_without_machines_a_migration_network_is_not_looked_at() -> None:
    assert not LabSettings(migration_address_a="none").machines


@pytest.mark.parametrize(("text", "machines"), [("yes", True), ("1", True), ("no", False)])
def test_machines_by_the_environment(text: str, machines: bool) -> None:
    assert LabSettings.from_variables({"VMTUNE_LAB_MACHINES": text}).machines is machines


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"name": "has space"}, "name"),
        ({"memory_bytes": 100}, "memory_bytes"),
        ({"vcpus": 0}, "vcpus"),
        ({"workload": Workload(region_bytes=512 << 20)}, "workload.region_bytes"),
        ({"workload": Workload(region_bytes=8192), "vcpus": 3}, "workload.region_bytes"),
        ({"listener": Path("relative")}, "listener"),
        ({"listener": Path("/" + "x" * 100)}, "listener"),
        ({"dirty_ring_entries": 1000}, "dirty_ring_entries"),
        ({"dirty_ring_entries": 4096, "kvm": False}, "dirty_ring_entries"),
        ({"iothreads": -1}, "iothreads"),
        ({"disks": (DiskSettings(size_bytes=100),)}, "disks[0].size_bytes"),
        ({"disks": (DiskSettings(queues=0),)}, "disks[0].queues"),
        ({"disks": (DiskSettings(queue_size=100),)}, "disks[0].queue_size"),
        ({"disks": (DiskSettings(iothread=1),)}, "disks[0].iothread"),
        ({"disks": (DiskSettings(ide=True, queues=1),)}, "disks[0].ide"),
        ({"disks": (DiskSettings(),) * 17}, "disks"),
    ],
)
def test_vm_refuses(values: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        VmSettings(**values)
    assert field in [problem.field for problem in refused.value.problems]


def test_a_region_may_have_as_few_pages_as_there_are_vcpus() -> None:
    assert VmSettings(workload=Workload(region_bytes=8193), vcpus=3).vcpus == 3


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        LabSettings(name_a="A", address_b="nowhere", qemu=Path("qemu"))
    fields = [problem.field for problem in refused.value.problems]
    assert fields == ["name_a", "address_b", "qemu"]


def test_variables_change_the_defaults() -> None:
    given = {
        "VMTUNE_LAB_NAME_A": "x-a",
        "VMTUNE_LAB_FOLDER": "/run/x",
        "VMTUNE_LAB_LIBVIRT_ROOT": "/opt/libvirt",
        "VMTUNE_LAB_QEMU": "",
        "VMTUNE_LAB_OTHER": "y",
        "VMTUNE_LAB_ENV": "z",
    }
    expected = LabSettings(name_a="x-a", folder=Path("/run/x"), libvirt_root=Path("/opt/libvirt"))
    assert LabSettings.from_variables(given) == expected
    assert LabSettings.from_variables({}) == LabSettings()
    with pytest.raises(InvalidInput, match="not an absolute path"):
        LabSettings.from_variables({"VMTUNE_LAB_FOLDER": "x"})


def test_the_emulator_is_the_one_on_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "qemu-system-x86_64"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert LabSettings().qemu == program
    program.unlink()
    assert LabSettings().qemu == Path("/usr/bin/qemu-system-x86_64")
