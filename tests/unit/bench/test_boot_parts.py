"""The boot benchmark's parts: figures, initramfs, the kernel's cache, firmware, command line."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.boot import linux as boot_linux
from vmtune.bench.boot.firmware import FirmwareFiles, find_firmware
from vmtune.bench.boot.initramfs import Entry, archive, initramfs
from vmtune.bench.boot.linux import kernel_version, linux_kernel
from vmtune.bench.boot.payload import BootGuestFiles
from vmtune.bench.boot.qemu import command_line, lay_out
from vmtune.bench.boot.reduce import reduce_boot
from vmtune.bench.machine.srcutree import srcutree
from vmtune.bench.model.metrics.boot import BOOT_HEADLINE, BOOT_LIMIT, BOOT_METRICS, BOOT_SHARE
from vmtune.bench.model.runs.boot_record import BootEnd, BootMark, BootMarkName, BootRecord
from vmtune.bench.model.scenario.boot import BootScenario
from vmtune.bench.model.scenario.matrix_cells import Accelerator, BootCell, BootGuest, Firmware
from vmtune.bench.model.scenario.parts import MIB
from vmtune.errors import SetupError

pytestmark = pytest.mark.integration

MARKS = tuple(
    BootMark(name, at, updates)
    for name, at, updates in zip(
        BootMarkName, (100.0, 101.0, 400.0, 500.0, 900.0), (9, 9, 30, 31, 32), strict=True
    )
)


def test_every_metric_of_a_whole_boot() -> None:
    record = BootRecord(BootEnd.USER_SPACE, 900.0, MARKS, {"kvm_set_user_memory": 32}, cpu_ms=800.0)
    assert reduce_boot(record) == {
        "boot_to_userspace_ms": 900,
        "boot_to_kernel_ms": 500,
        "boot_to_guest_ms": 100,
        "boot_firmware_ms": 300,
        "boot_loading_ms": 100,
        "boot_kernel_ms": 400,
        "boot_elapsed_ms": 900,
        "boot_cpu_ms": 800,
        "booted": 1,
        "memory_region_updates": 32,
        "memory_region_updates_by_guest": 23,
    }
    assert list(reduce_boot(record)) == [metric.name for metric in BOOT_METRICS]


def test_a_boot_that_was_given_up_has_its_limit_and_not_its_time() -> None:
    given_up = reduce_boot(BootRecord(BootEnd.GIVEN_UP, 3000.0, MARKS[:2]))
    assert given_up == {"boot_to_guest_ms": 100, BOOT_LIMIT: 3000, BOOT_SHARE: 0}
    died = reduce_boot(BootRecord(BootEnd.DIED, 50.0))
    assert died == {BOOT_LIMIT: 50}


@given(st.sets(st.sampled_from(MARKS)), st.sampled_from(BootEnd), st.none() | st.integers(32))
def test_no_span_without_both_ends_and_none_negative(
    marks: set[BootMark], end: BootEnd, updates: int | None
) -> None:
    counted = None if updates is None else {"kvm_set_user_memory": updates}
    found = reduce_boot(BootRecord(end, 900.0, tuple(marks), counted))
    assert all(value >= 0 for value in found.values())
    reached = {mark.name for mark in marks}
    both = {BootMarkName.KERNEL, BootMarkName.USER_SPACE} <= reached
    assert ("boot_kernel_ms" in found) == both
    assert ("memory_region_updates" in found) == (updates is not None)


def test_the_table() -> None:
    names = [metric.name for metric in BOOT_METRICS]
    assert len(set(names)) == len(names)
    assert {*BOOT_HEADLINE, BOOT_LIMIT, BOOT_SHARE} <= set(names)
    for metric in BOOT_METRICS:
        assert bool(metric.begins) == bool(metric.ends)
        assert metric.missing
        assert metric.name.endswith(metric.unit.value if metric.unit.value == "ms" else "")


# --- The initramfs ------------------------------------------------------------

names = st.text("abcdefghij", min_size=1, max_size=12)


def read_newc(data: bytes) -> list[tuple[str, int, bytes, tuple[int, int]]]:
    """What a newc archive holds, read as the kernel's document says."""
    found, at = [], 0
    while True:
        assert data[at : at + 6] == b"070701"
        numbers = [int(data[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        size, length = numbers[6], numbers[11]
        name = data[at + 110 : at + 110 + length - 1].decode()
        assert data[at + 110 + length - 1] == 0
        begin = (at + 110 + length + 3) // 4 * 4
        if name == "TRAILER!!!":
            assert begin == len(data)
            return found
        found.append((name, numbers[1], data[begin : begin + size], (numbers[9], numbers[10])))
        at = (begin + size + 3) // 4 * 4


@given(st.lists(st.builds(Entry, names, st.integers(0, 0xFFFF), st.binary(max_size=40),
                          st.tuples(st.integers(0, 255), st.integers(0, 255)))))  # fmt: skip
def test_an_archive_holds_what_was_put_into_it(entries: list[Entry]) -> None:
    packed = archive(tuple(entries))
    assert read_newc(packed) == [(e.name, e.mode, e.data, e.device) for e in entries]


def test_the_initramfs_has_a_program_and_a_console() -> None:
    held = {name: (mode, data, device) for name, mode, data, device in read_newc(initramfs())}
    assert stat.S_ISCHR(held["dev/console"][0])
    assert held["dev/console"][2] == (5, 1)
    assert held["init"][0] & 0o111
    assert held["init"][1].startswith(b"\x7fELF")


# --- The kernel and its cache ---------------------------------------------------


def image(version: str) -> bytes:
    """Enough of a bzImage to have a version."""
    head = bytearray(0x220)
    head[0x202:0x206] = b"HdrS"
    head[0x20E:0x210] = (0x20).to_bytes(2, "little")
    return bytes(head) + version.encode() + b"\0rest"


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=80))
def test_a_kernels_version(version: str) -> None:
    assert kernel_version(image(version)) == version


@given(st.binary(max_size=1200))
def test_what_is_no_kernel_has_no_version(data: bytes) -> None:
    assert kernel_version(data) == ""


def test_an_own_kernel_goes_before(tmp_path: Path) -> None:
    folder = tmp_path / "linux"
    folder.mkdir()
    (folder / "vmlinuz").write_bytes(image("6.99 (me) #1"))
    kernel = asyncio.run(linux_kernel(tmp_path))
    assert (kernel.path, kernel.version) == (folder / "vmlinuz", "6.99 (me) #1")
    (folder / "vmlinuz").write_bytes(b"text")
    with pytest.raises(SetupError, match="is not a Linux kernel"):
        asyncio.run(linux_kernel(tmp_path))


def test_a_damaged_kernel_and_what_a_killed_fetch_left_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "linux"
    (folder / "fetching-killed").mkdir(parents=True)
    whole = image("6.1.0 (Debian)")
    kept = folder / boot_linux._name(whole)
    kept.write_bytes(whole)
    assert asyncio.run(linux_kernel(tmp_path)).version == "6.1.0 (Debian)"
    assert not (folder / "fetching-killed").exists()
    kept.write_bytes(whole[:-1])
    monkeypatch.setenv("PATH", str(tmp_path))  # nothing to fetch one with
    with pytest.raises(SetupError) as caught:
        asyncio.run(linux_kernel(tmp_path))
    assert not kept.exists()
    (problem,) = caught.value.problems
    assert "linux-image-cloud-amd64" in problem.message
    assert "apt-get (of the package apt) is not installed" in problem.message
    assert str(folder / "vmlinuz") in problem.remedy


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def a_package(folder: Path, version: str) -> None:
    """A Debian package with a kernel, made by dpkg-deb itself."""
    tree = folder / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "boot").mkdir()
    (tree / "boot" / "vmlinuz-6.1.0-9-cloud-amd64").write_bytes(image(version))
    (tree / "DEBIAN" / "control").write_text(
        "Package: linux-image-6.1.0-9-cloud-amd64\nVersion: 6.1.0-9\nArchitecture: amd64\n"
        "Maintainer: nobody <nobody@localhost>\nDescription: for a test\n"
    )
    subprocess.run(["dpkg-deb", "--build", str(tree), str(folder / "made.deb")],
                   check=True, capture_output=True)  # fmt: skip


def test_the_kernel_is_fetched_once_and_never_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_package(tmp_path, "6.1.0-9 (Debian) #1")
    fakes = tmp_path / "bin"
    fakes.mkdir()
    program(fakes, "apt-cache", 'echo "  Depends: linux-image-6.1.0-9-cloud-amd64"')
    program(fakes, "apt-get", f'echo "$@" >>{tmp_path}/asked; cp {tmp_path}/made.deb k.deb')
    monkeypatch.setenv("PATH", f"{fakes}:{os.environ['PATH']}")
    cache = tmp_path / "cache"
    first, second = asyncio.run(linux_kernel(cache)), asyncio.run(linux_kernel(cache))
    assert first == second
    assert first.version == "6.1.0-9 (Debian) #1"
    asked = (tmp_path / "asked").read_text()
    assert asked == "-q download linux-image-6.1.0-9-cloud-amd64\n"
    assert sorted(p.name for p in (cache / "linux").iterdir()) == ["lock", first.path.name]


@pytest.mark.parametrize(
    ("apt_cache", "apt_get", "reason"),
    [
        ("true", "true", "apt knows no package linux-image-cloud-amd64"),
        ("echo 'E: No packages found' >&2; exit 100", "true", "No packages found"),
        ("echo '  Depends: linux-image-6'", "echo 'E: Failed to fetch' >&2; exit 100",
         "Failed to fetch"),
        ("echo '  Depends: linux-image-6'", "true", "has fetched 0 packages"),
    ],
)  # fmt: skip
def test_why_no_kernel_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apt_cache: str, apt_get: str, reason: str
) -> None:
    fakes = tmp_path / "bin"
    fakes.mkdir()
    program(fakes, "apt-cache", apt_cache)
    program(fakes, "apt-get", apt_get)
    monkeypatch.setenv("PATH", f"{fakes}:{os.environ['PATH']}")
    with pytest.raises(SetupError, match=reason):
        asyncio.run(linux_kernel(tmp_path))
    assert [p.name for p in (tmp_path / "linux").iterdir()] == ["lock"]


async def test_cancelling_ends_what_fetches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes, began = tmp_path / "bin", tmp_path / "began"
    fakes.mkdir()
    os.mkfifo(began)
    program(fakes, "apt-cache", "echo '  Depends: linux-image-6'")
    program(fakes, "apt-get", f"echo $$ >{began}; exec sleep 600")
    monkeypatch.setenv("PATH", f"{fakes}:{os.environ['PATH']}")
    task = asyncio.create_task(linux_kernel(tmp_path))
    pid = int(await asyncio.to_thread(began.read_text))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert [p.name for p in (tmp_path / "linux").iterdir()] == ["lock"]


# --- Firmware -------------------------------------------------------------------


def test_seabios_says_its_version(tmp_path: Path) -> None:
    (tmp_path / "bios-256k.bin").write_bytes(b"x\x001.16.3-debian-1.16.3-2\0x 12.2.0-14 \0")
    found = find_firmware(Firmware.SEABIOS, tmp_path)
    assert found.words == "SeaBIOS 1.16.3-debian-1.16.3-2"
    assert found.code == tmp_path / "bios-256k.bin"


def test_seabios_may_be_qemus_own(tmp_path: Path) -> None:
    assert find_firmware(Firmware.SEABIOS, None, (tmp_path,)) == FirmwareFiles("SeaBIOS", None)


def test_ovmf_is_found_or_named(tmp_path: Path) -> None:
    pairs = tuple((tmp_path / f"code{n}", tmp_path / f"vars{n}") for n in (1, 2))
    with pytest.raises(SetupError) as caught:
        find_firmware(Firmware.OVMF, ovmf_pairs=pairs)
    assert caught.value.problems[0].remedy == "install the package ovmf"
    for path in (pairs[0][0], *pairs[1]):  # of the first there is but half
        path.write_bytes(b"efi")
    found = find_firmware(Firmware.OVMF, ovmf_pairs=pairs)
    assert (found.code, found.variables) == pairs[1]
    assert found.words.startswith("OVMF code2 ")


# --- QEMU's command line ----------------------------------------------------------


def words(scenario: BootScenario, firmware: FirmwareFiles, folder: Path) -> list[str]:
    guest = BootGuestFiles("6.1", b"kernel", "panic=-1", b"cpio")
    files = lay_out(Path("/usr/bin/qemu"), None, folder, guest, firmware)
    return command_line(files, scenario, guest, firmware)


def cell(accelerator: Accelerator) -> BootCell:
    return BootCell(BootGuest.LINUX, Firmware.OVMF, accelerator, 2, 256 * MIB)


def test_flash_is_a_copy_and_regions_are_counted_on_demand(tmp_path: Path) -> None:
    store = tmp_path / "VARS.fd"
    store.write_bytes(b"empty")
    folder = tmp_path / "run,1"
    folder.mkdir()
    firmware = FirmwareFiles("OVMF", Path("/CODE.fd"), store)
    ring = {"dirty_ring_size_entries": 4096}
    line = words(BootScenario(cell(Accelerator.KVM), values=ring), firmware, folder)
    assert (folder / "variables").read_bytes() == b"empty"
    assert stat.S_ISFIFO((folder / "serial").stat().st_mode)
    told = " ".join(line)
    assert "-accel kvm,dirty-ring-size=4096" in told
    assert f"if=pflash,format=raw,unit=1,file={tmp_path}/run,,1/variables" in told
    assert "-trace kvm_set_user_memory" in told
    assert "-m 256M -smp 2" in told


def test_uncounted_regions_are_not_traced(tmp_path: Path) -> None:
    scenario = BootScenario(cell(Accelerator.TCG), count_regions=False)
    line = words(scenario, FirmwareFiles("SeaBIOS", None), tmp_path)
    assert "kvm_set_user_memory" not in line
    assert "-bios" not in line


def test_srcu_parameters(tmp_path: Path) -> None:
    (tmp_path / "srcu_max_nodelay").write_text("1000\n")
    assert srcutree(tmp_path) == {"srcu_max_nodelay": "1000"}
    assert srcutree(tmp_path / "none") == {}


def test_bridges_and_devices_are_on_the_command_line(tmp_path: Path) -> None:
    firmware = FirmwareFiles("firmware", None)
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        folder.mkdir()
    plain = words(BootScenario(cell(Accelerator.KVM)), firmware, folders[0])
    assert plain[plain.index("-machine") + 1] == "pc"
    assert "-device" not in plain
    more = replace(cell(Accelerator.KVM), acpi=False, bridges=2, devices=70)
    line = words(BootScenario(more), firmware, folders[1])
    assert line[line.index("-machine") + 1] == "pc,acpi=off"
    devices = [line[at + 1] for at, word in enumerate(line) if word == "-device"]
    assert sum(each.startswith("pci-bridge,") for each in devices) == 2
    buses = Counter(
        each.partition(",bus=")[2].partition(",")[0]
        for each in devices
        if each.startswith("ivshmem-plain,")
    )
    assert buses == {"bridge2": 31, "bridge1": 31, "pci.0": 8}
    assert sum(word.startswith("memory-backend-ram,") for word in line) == 70
