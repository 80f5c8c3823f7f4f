from __future__ import annotations

import os
from pathlib import Path

import pytest

from vmtune.hypervisor.linux.local_host import read_local_host
from vmtune.hypervisor.linux.qemu_process import UNLIMITED_BYTES, QemuProcess
from vmtune.model.host.facts import MemoryMaps


@pytest.fixture
def process(tmp_path: Path) -> QemuProcess:
    (tmp_path / "7").mkdir()
    return QemuProcess(7, tmp_path)


def command_line(process: QemuProcess, *arguments: str) -> None:
    (process._folder / "cmdline").write_text("\0".join(("qemu", *arguments)) + "\0")


@pytest.mark.parametrize(
    ("arguments", "entries"),
    [
        ((), 0),
        (("-accel", "kvm"), 0),
        (("-accel", "kvm,dirty-ring-size=4096"), 4096),
        (("--accel", "accel=kvm,kernel-irqchip=on,dirty-ring-size=0x1000"), 4096),
        (("-accel", "kvm,dirty-ring-size=1024", "-accel", "tcg"), 1024),
        (("-accel", "tcg,dirty-ring-size=1024"), 0),
        (("-machine", "q35,accel=kvm"), 0),
        (("-name", "guest=-accel,,kvm"), 0),
        (("-accel", "kvm,dirty-ring-size=lots"), None),
    ],
)
def test_the_dirty_ring_is_on_the_command_line(
    process: QemuProcess, arguments: tuple[str, ...], entries: int | None
) -> None:
    command_line(process, *arguments)
    assert process.dirty_ring_size_entries() == entries


def test_a_doubled_comma_stands_for_one(process: QemuProcess) -> None:
    command_line(process, "-name", "guest=a,,b,debug-threads=on")
    assert process.option("name") == [{"guest": "a,b", "debug-threads": "on"}]


@pytest.mark.parametrize(
    ("limit", "bytes_"), [("8388608", 8388608), ("unlimited", UNLIMITED_BYTES)]
)
def test_the_locked_memory_limit(process: QemuProcess, limit: str, bytes_: int) -> None:
    line = f"Max locked memory         {limit}              unlimited            bytes\n"
    (process._folder / "limits").write_text("Limit   Soft Limit\n" + line)
    assert process.locked_memory_limit_bytes() == bytes_


@pytest.mark.parametrize(("mask", "may"), [("0000000000004000", True), ("0", False)])
def test_the_lock_capability(process: QemuProcess, mask: str, may: bool) -> None:
    (process._folder / "status").write_text(f"Name:\tqemu\nCapPrm:\tff\nCapEff:\t{mask}\n")
    assert process.may_lock_memory() is may


def test_what_cannot_be_seen_is_none(tmp_path: Path) -> None:
    process = QemuProcess(8, tmp_path)
    assert process.arguments() is None
    assert process.option("accel") is None
    assert process.dirty_ring_size_entries() is None
    assert process.locked_memory_limit_bytes() is None
    assert process.may_lock_memory() is None


def test_a_real_process_can_be_seen() -> None:
    process = QemuProcess(os.getpid())
    assert process.arguments()
    assert process.locked_memory_limit_bytes() is not None
    assert process.may_lock_memory() is not None


def test_a_host_is_read_from_proc(tmp_path: Path) -> None:
    for path, text in {
        "proc/sys/vm/max_map_count": "65530\n",
        "proc/sys/net/core/optmem_max": "131072\n",
        "proc/meminfo": "MemTotal:  1024 kB\nMemFree:  1 kB\nMemAvailable:  512 kB\n",
        "proc/stat": "cpu  10 0 5 700 50 0 0 0 0 0\ncpu0 5 0 2 350 25 0 0 0 0 0\n",
        "proc/self/status": "CapEff:\t0000000001000000\n",
        "etc/machine-id": "abc\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    host = read_local_host(tmp_path)
    assert host.sysctls == {"vm_max_map_count": 65530, "net_core_optmem_max_bytes": 131072}
    assert host.memory_bytes == 1 << 20
    assert host.memory_available_bytes == 1 << 19
    assert host.cpu_idle_s == 750 / os.sysconf("SC_CLK_TCK")
    assert host.machine_id == "abc"
    assert host.can_lock_beyond_limits is True
    assert host.kvm is False


def test_a_host_that_hides_proc_is_unknown_not_zero(tmp_path: Path) -> None:
    host = read_local_host(tmp_path)
    assert host.sysctls == {}
    assert host.memory_bytes is None
    assert host.memory_available_bytes is None
    assert host.cpu_idle_s is None
    assert host.can_lock_beyond_limits is None


GUARD = "{0:x}-{1:x} ---p 00000000 00:00 0 \n"
PLAIN = "{0:x}-{1:x} rw-p 00000000 00:00 0 \n"
LIBRARY = "{0:x}-{1:x} r-xp 00000000 08:01 1234 /usr/lib/libc.so.6\n"


def listed(*maps: tuple[str, int, int]) -> str:
    return "".join(line.format(begin, end) for line, begin, end in maps)


def test_stacks_of_coroutines_are_known_among_the_maps(process: QemuProcess) -> None:
    base, page, mib = 0x7F0000000000, 0x1000, 0x100000

    def guarded(at: int, size: int) -> list[tuple[str, int, int]]:
        return [(GUARD, at, at + page), (PLAIN, at + page, at + page + size)]

    text = listed(
        (LIBRARY, base - mib, base),
        *guarded(base, mib),
        *guarded(base + mib + page, mib),
        # A thread's stack has another size,
        *guarded(base + 8 * mib, 8 * mib),
        # what has no guard page is none,
        (PLAIN, base + 20 * mib, base + 21 * mib),
        # and neither is what lies somewhere else, or may not be written.
        (GUARD, base + 30 * mib, base + 30 * mib + page),
        (PLAIN, base + 31 * mib + page, base + 32 * mib + page),
        (GUARD, base + 33 * mib, base + 33 * mib + page),
        (LIBRARY, base + 33 * mib + page, base + 34 * mib + page),
    )
    (process._folder / "maps").write_text(text)
    assert process.maps() == MemoryMaps(total=12, stacks=2)


@pytest.mark.parametrize("text", [None, "", "no map at all\n"])
def test_maps_that_cannot_be_seen(process: QemuProcess, text: str | None) -> None:
    if text is not None:
        (process._folder / "maps").write_text(text)
    assert process.maps() is None


@pytest.mark.parametrize(
    ("statm", "pages"),
    [
        ("372000 9900 4000 800 0 30000 0\n", (372000, 9900)),
        ("0 0 0 0 0 0 0\n", None),  # it has ended
        ("", None),
    ],
)
def test_memory_is_counted_in_pages(
    process: QemuProcess, statm: str, pages: tuple[int, int] | None
) -> None:
    (process._folder / "statm").write_text(statm)
    page = os.sysconf("SC_PAGE_SIZE")
    expected = None if pages is None else (pages[0] * page, pages[1] * page)
    assert process.memory_bytes() == expected


def test_memory_that_cannot_be_seen(process: QemuProcess) -> None:
    assert process.memory_bytes() is None
