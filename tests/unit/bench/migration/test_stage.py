"""Small parts of the places where runs run: command lines, logs, and ending in order."""

import asyncio
import itertools
from pathlib import Path
from uuid import UUID

import pytest

from vmtune.bench.migration.command_line import QemuFiles, command_line
from vmtune.bench.migration.libvirt_stage import complaints
from vmtune.bench.migration.stage import finish
from vmtune.bench.model.scenario.migration import Scenario, VmShape
from vmtune.bench.model.scenario.parts import MIB
from vmtune.model.workload import Workload

VM = UUID("5f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e10")
SCENARIO = Scenario(
    "test/one",
    vm=VmShape(96 * MIB, 3),
    workload=Workload(16 * MIB, beat_ms=7),
    values={"dirty_ring_size_entries": 4096},
)


def line(tmp_path: Path, *, kvm: bool, incoming: bool, data: Path | None = None) -> list[str]:
    run = tmp_path / "a,b"
    files = QemuFiles(Path("/q"), data, Path("/k"), run, run / "m.sock", run / "own")
    return command_line(files, SCENARIO, VM, kvm=kvm, incoming=incoming)


def option(words: list[str], name: str) -> list[str]:
    return [value for word, value in itertools.pairwise(words) if word == name]


def test_the_vm_is_the_scenarios(tmp_path: Path) -> None:
    words = line(tmp_path, kvm=True, incoming=False)
    assert words[0] == "/q"
    assert option(words, "-accel") == ["kvm,dirty-ring-size=4096"]
    assert option(words, "-m") == ["96M"]
    assert option(words, "-smp") == ["3"]
    assert option(words, "-cpu") == ["qemu64"]
    assert option(words, "-append") == [SCENARIO.workload.command_line()]
    assert "-incoming" not in words
    assert "debug-threads=on" in option(words, "-name")[0]


def test_the_destination_waits_and_is_the_same_otherwise(tmp_path: Path) -> None:
    source = line(tmp_path, kvm=False, incoming=False)
    assert line(tmp_path, kvm=False, incoming=True) == [*source, "-incoming", "defer"]
    assert "-cpu" not in source


def test_commas_in_paths_are_not_options(tmp_path: Path) -> None:
    words = line(tmp_path, kvm=False, incoming=False)
    serial, beat = option(words, "-chardev")
    assert serial.endswith("/a,,b/serial")
    assert beat.endswith("/a,,b/beat")
    assert all("/a,,b/" in monitor for monitor in option(words, "-qmp"))


def test_firmware_is_taken_from_where_qemu_is_told_to_look(tmp_path: Path) -> None:
    (tmp_path / "qboot.rom").write_bytes(b"")
    words = line(tmp_path, kvm=False, incoming=False, data=tmp_path)
    assert option(words, "-L") == [str(tmp_path)]
    assert option(words, "-bios") == [str(tmp_path / "qboot.rom")]


LOG = """\
2026-11-21 12:00:00.000+0000: starting up libvirt version: 11.3.0, qemu version: 10.0.2
LC_ALL=C \\
PATH=/usr/bin \\
/usr/bin/qemu-system-x86_64 \\
-name guest=bench-1,debug-threads=on \\
-msg timestamp=on
char device redirected to /dev/pts/1 (label charserial0)
2026-11-21T12:00:01Z qemu-system-x86_64: the migration went wrong
2026-11-21 12:00:02.000+0000: shutting down, reason=crashed
"""


def test_of_libvirts_log_only_what_qemu_said_is_told() -> None:
    assert complaints(LOG) == [
        "char device redirected to /dev/pts/1 (label charserial0)",
        "2026-11-21T12:00:01Z qemu-system-x86_64: the migration went wrong",
    ]
    assert complaints("") == []


async def test_what_has_to_be_finished_is_finished_and_then_cancelled() -> None:
    begun, go_on, done = asyncio.Event(), asyncio.Event(), list[str]()

    async def work() -> str:
        begun.set()
        await go_on.wait()
        done.append("done")
        return "result"

    task = asyncio.create_task(finish(work()))
    await begun.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["done"]
    assert await finish(work()) == "result"


async def test_the_error_of_what_is_finished_is_told() -> None:
    async def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await finish(work())
