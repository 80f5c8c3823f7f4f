"""fio, loading a QEMU, and what is seen of both meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vmtune.bench.block.fio_json import MAX_CHARACTERS, read_fio
from vmtune.bench.machine.cpu_times import QemuCpu, process_clock
from vmtune.bench.model.runs.run import HostSide
from vmtune.bench.model.scenario.block import CpuMark, LoadPhase, ProcessSample
from vmtune.bench.qemu_process import DIES_WITH_PARENT
from vmtune.errors import InvalidInput
from vmtune.hypervisor.linux.cpus import on_all
from vmtune.hypervisor.linux.qemu_process import QemuProcess

LOOK_EVERY_S = 0.025
MAPS_EVERY_S = 0.25
_STARTS_WITHIN_S = 30.0
"""What fio may take in addition to its ramp and its runtime."""
_ENDS_WITHIN_S = 10.0
"""What fio may take to end after SIGTERM, or after QEMU has died."""
_MAX_SAID = 4000
_WITH_ITS_PARENT = (
    *DIES_WITH_PARENT,
    # The parent may have ended before the kernel was asked.
    *("sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"'),
)
"""Run what follows the parent's number, killed by the kernel when the parent ends."""


class Watch:
    """Samples one QEMU, on one timeline that begins with this object's creation.

    :param pid: of QEMU.
    :param without_vcpus: CPU time is that of all other threads. :meth:`close` it then.
    """

    def __init__(self, pid: int, without_vcpus: bool = False) -> None:
        self.processes: list[ProcessSample] = []
        self.cpu: list[CpuMark] = []
        self._origin = time.monotonic()
        self._pid = pid
        self._process = QemuProcess(pid)
        self._threads = QemuCpu(pid, HostSide.SOURCE) if without_vcpus else None

    def at_ms(self) -> float:
        """Now."""
        return (time.monotonic() - self._origin) * 1000

    def mark(self) -> float:
        """Note the CPU time that it has used; when that was."""
        at_ms = self.at_ms()
        if self._threads is not None:
            sample = self._threads.sample(at_ms, migrating=False)
            if sample is not None:
                self.cpu.append(CpuMark(at_ms, sample.other_ms))
            return at_ms
        with contextlib.suppress(OSError):  # it has ended
            used_ns = time.clock_gettime_ns(process_clock(self._pid))
            self.cpu.append(CpuMark(at_ms, used_ns / 1e6))
        return at_ms

    def close(self) -> None:
        """Close what it reads."""
        if self._threads is not None:
            self._threads.close()

    async def look(self, phase: LoadPhase) -> None:
        """Note its maps and its memory. Where it has many maps, that takes a while."""
        sample = await asyncio.to_thread(self._sample, phase)
        if sample is not None:
            self.processes.append(sample)

    def _sample(self, phase: LoadPhase) -> ProcessSample | None:
        at_ms, maps, memory = self.at_ms(), self._process.maps(), self._process.memory_bytes()
        if maps is None or memory is None:
            return None
        return ProcessSample(at_ms, phase, maps.total, maps.stacks, *memory)


@dataclass(frozen=True, slots=True)
class Load:
    """What became of a load. Times are on the watch's timeline.

    :param measured_ms: when what fio counts began and ended.
    :param document: fio's JSON; None where there is none.
    :param overdue: it had to be ended.
    """

    begun_ms: float
    ended_ms: float
    measured_ms: tuple[float, ...] | None
    document: Mapping[str, Any] | None  # any JSON: fio's
    said: str
    status: int
    overdue: bool = False


async def load(
    command: Sequence[str],
    folder: Path,
    output: Path,
    lasts_s: float,
    watch: Watch,
    alive: Callable[[], bool],
    on_progress: Callable[[], None],
) -> Load:
    """Run fio to its end, and sample QEMU meanwhile. Cancelled, it ends fio.

    :param folder: where fio may leave files; *output* is the file that its JSON goes to.
    :param lasts_s: its ramp and its runtime.
    :param alive: whether QEMU is.
    :param on_progress: called several times a second.
    """
    errors = folder / "fio.err"
    begun_ms = watch.mark()
    process = _start(command, folder, errors)
    try:
        tasks = _Tasks(process.pid, begun_ms + lasts_s * 1000)
        overdue = await _until_it_ends(process, lasts_s, watch, tasks, alive, on_progress)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
    ended_ms = watch.mark()
    document, said, runtime_ms = await asyncio.to_thread(_result, output, errors)
    stopped_ms = tasks.fewer_ms or ended_ms
    measured = (max(begun_ms, stopped_ms - runtime_ms), stopped_ms) if runtime_ms else None
    return Load(begun_ms, ended_ms, measured, document, said, process.returncode, overdue)


def _start(command: Sequence[str], folder: Path, errors: Path) -> subprocess.Popen[bytes]:
    with errors.open("wb") as stderr:
        return subprocess.Popen(
            on_all([*_WITH_ITS_PARENT, str(os.getpid()), *command]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            cwd=folder,
            # A Ctrl-C is for the benchmark, which ends fio itself.
            start_new_session=True,
        )


class _Tasks:
    """fio's threads: when the first of its jobs has ended. What fio itself says comes some
    hundreds of milliseconds later (fio 3.33).

    :param not_before_ms: no job ends earlier. At its start fio has other threads for a moment, one
        for each processor, which come and go.
    """

    def __init__(self, pid: int, not_before_ms: float) -> None:
        self._folder = f"/proc/{pid}/task"
        self._not_before_ms = not_before_ms
        self._most = 0
        self.fewer_ms: float | None = None

    def look(self, at_ms: float) -> None:
        """Count them."""
        try:
            count = len(os.listdir(self._folder))
        except OSError:
            count = 0
        if at_ms < self._not_before_ms:
            self._most = count
        elif count < self._most and self.fewer_ms is None:
            self.fewer_ms = at_ms


async def _until_it_ends(
    process: subprocess.Popen[bytes],
    lasts_s: float,
    watch: Watch,
    tasks: _Tasks,
    alive: Callable[[], bool],
    on_progress: Callable[[], None],
) -> bool:
    """Whether it had to be ended."""
    overdue = False
    deadline = time.monotonic() + lasts_s + _STARTS_WITHIN_S
    looked = 0.0
    while process.poll() is None:
        tasks.look(watch.mark())
        now = time.monotonic()
        if not alive():
            deadline = min(deadline, now + _ENDS_WITHIN_S)
        if now > deadline:
            if overdue:
                break
            overdue, deadline = True, now + _ENDS_WITHIN_S
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)  # upon which it reports what it has
        if now - looked >= MAPS_EVERY_S:
            looked = now
            await watch.look(LoadPhase.DURING)
            on_progress()
        await asyncio.sleep(LOOK_EVERY_S)
    return overdue


def _result(output: Path, errors: Path) -> tuple[Mapping[str, Any] | None, str, int]:
    """fio's JSON, its messages, and for how many milliseconds it counted."""
    said = errors.read_text(errors="replace")
    try:
        with output.open(errors="replace") as file:
            report = read_fio(file.read(MAX_CHARACTERS + 1))
    except (OSError, InvalidInput):
        return None, _short(said), 0
    return report.document, _short(report.messages or said), report.runtime_ms


def _short(text: str) -> str:
    return text.strip()[-_MAX_SAID:]
