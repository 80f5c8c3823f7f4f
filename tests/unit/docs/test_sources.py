"""docs/sources.md has a line for what the five sources name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.perf.__main__ import programs
from vmtune.client.cli import COMMANDS
from vmtune.reference.files import scenario_files
from vmtune.reference.loading import reference

PAGE = (Path(__file__).parents[3] / "docs/sources.md").read_text("utf-8")
NAMED = {
    "coroutine-pool-resize": (
        "SafeStack", "25 %", "mmap", "mprotect", "64 a thread", "128 for all", "atomic", "15 s",
        "peak", "at once", "iothread", "thread ends", "minimum", "empty pool", "global pool",
        "CONFIG_COROUTINE_POOL", "set up", "IOPS", "VSZ", "RSS", "100 MB", "16 jobs", "libaio",
        "direct",
    ),
    "coroutine-pool-global": (
        "failed to allocate memory for stack", "failed to set up stack guard page",
        "vm.max_map_count", "two memory maps", "tens of thousands", "batches", "hard maximum",
        "+3.3 %", "ten rows", "configuration",
    ),
    "dirty-ring-reaper": (
        "constant second", "six run levels", "tenth", "five calm rounds", "pointer", "full ring",
        "round's own", "size of one ring", "big lock", "0.8", "20 ms", "100 ms", "simplest",
        "into a table", "migrates longer", "memory update", "65,536", "bitmap", "30 GiB",
        "traced", "all vCPUs emptied", "does not exist",
    ),
    "srcu-boot-time": (
        "KVM_SET_USER_MEMORY_REGION", "kvm_region_add", "kvm_swap_active_memslots", "irq_srcu",
        "SRCU_INTERVAL", "SRCU_MAX_INTERVAL", "SRCU_MAX_NODELAY_PHASE", "SRCU_MAX_NODELAY",
        "if (!jbase)", "first diff", "srcu_gp_end", "srcu_get_delay", "live patching", "6,000",
        "9,000", "10,000 calls", "IORT", "one call", "ACPI", "UEFI", "aarch64", "CONFIG_HZ",
        "CONFIG_PREEMPTION", "boot times", "time stamps", "5.19-rc1", "square",
        "always has readers", "workqueues", "5.18's way", "depend on `CONFIG_HZ`",
    ),
    "zero-copy-multifd": (
        "zero-copy-send", "multifd", "compression", "TLS", "locked", "ENOBUFS", "flush",
        "header", "15 times", "one stress thread", "pinned", "10 to 21 %", "25 %", "66 %",
        "13 to 22 %", "8 channels", "512 GiB", "100 Gbit/s", "memory bandwidth", "fails",
        "E810-C", "28 vCPUs",
    ),
}  # fmt: skip
"""Mechanisms, parameters, tables and remedies, by source."""


def section(name: str) -> str:
    """The rows of one source's table."""
    (found,) = [part for part in PAGE.split("\n## ") if f"`{name}`" in part.split("\n|")[0]]
    return found


@pytest.mark.parametrize("name", NAMED)
def test_what_a_source_names_has_a_line(name: str) -> None:
    rows = [line for line in section(name).splitlines() if line.startswith("| ")]
    text = "\n".join(row.strip("| ").split(" | ")[0] for row in rows).lower()
    assert [term for term in NAMED[name] if term.lower() not in text] == []


@pytest.mark.parametrize("name", NAMED)
def test_every_row_says_what_there_is_of_it(name: str) -> None:
    rows = [line for line in section(name).splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 5
    for row in rows:
        left, right = (cell.strip() for cell in row.strip("| ").split(" | "))
        assert left and right, row


@pytest.mark.parametrize("name", NAMED)
def test_every_file_that_repeats_its_matrix_is_named(name: str) -> None:
    for file in reference(name).scenarios:
        assert re.search(rf"\b{file}\b", section(name)), file


def test_the_commands_and_files_that_it_names_exist() -> None:
    for words in re.findall(r"`(vmtune [^`]+)`", PAGE):
        first, *rest = words.split()[1:]
        assert any(command.split()[0] == first for command in COMMANDS), words
        if rest[:1] == ["campaign"]:
            assert rest[1] in scenario_files(), words
    for name in re.findall(r"`make bench NAME=(\w+)`", PAGE):
        assert name in programs(), name
