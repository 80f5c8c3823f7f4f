"""fio in a guest, by a real guest agent. It runs on this machine, in the guest's place: what it
does with its socket, with programs and with their output is the same."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from vmtune.bench.block.guest import run_in_guest
from vmtune.bench.block.live_order import GuestOrder, check_guest
from vmtune.bench.block.reduce import reduce_block
from vmtune.bench.migration.order import RunProgress
from vmtune.bench.model.metrics.block import LOAD_SHARE, METRICS
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.block import BlockScenario, LoadPhase
from vmtune.bench.model.scenario.block_target import LiveTarget
from vmtune.bench.model.scenario.matrix_cells import BlockCell, IoPattern, NodeKind
from vmtune.bench.run_folder import processes_of
from vmtune.errors import CommandRefused, HostUnreachable, SetupError
from vmtune.hypervisor.qemu.guest_agent import GuestAgent
from vmtune.hypervisor.qmp.agent_socket import SocketChannel

AGENT = shutil.which("qemu-ga", path=os.pathsep.join((os.environ["PATH"], "/usr/sbin")))
pytestmark = pytest.mark.skipif(
    AGENT is None or shutil.which("fio") is None,
    reason="qemu-ga or fio is not installed (vmtune/lab/bootstrap.sh --tests)",
)
READS = BlockScenario(
    BlockCell(NodeKind.VM, IoPattern.RANDREAD, 4096, 4, 2),
    size_bytes=1 << 20,
    runtime_s=1,
    ramp_s=0,
    target=LiveTarget(UUID(int=1), device="/dev/vdb"),
)
LONG = replace(READS, runtime_s=60, name="")


@pytest.fixture
def guest() -> Iterator[Path]:
    """The folder of an agent, with its socket and a disk; nothing runs for it afterwards."""
    with tempfile.TemporaryDirectory(prefix="vt-", dir="/var/tmp") as name:
        folder = Path(name)
        (folder / "disk").write_bytes(bytes(1 << 20))
        command = [
            str(AGENT), "-m", "unix-listen", "-p", str(folder / "agent.sock"),
            "-f", str(folder / "pid"), "-t", str(folder), "-l", str(folder / "log"),
        ]  # fmt: skip
        with subprocess.Popen(command) as agent:
            try:
                while not (folder / "agent.sock").exists():
                    assert agent.poll() is None, "qemu-ga has ended"
                    time.sleep(0.01)
                yield folder
            finally:
                agent.terminate()
        assert processes_of(folder) == []


def agent_of(guest: Path, name: str = "agent.sock") -> GuestAgent:
    return GuestAgent(SocketChannel(guest / name))


def order(guest: Path, scenario: BlockScenario = READS, device: str = "") -> GuestOrder:
    target = LiveTarget(UUID(int=1), device=device or str(guest / "disk"))
    return GuestOrder(replace(scenario, target=target), agent_of(guest), os.getpid(), "10.0.2")


async def test_a_measurement(guest: Path) -> None:
    """Beside what an earlier client has left half-said."""
    with socket.socket(socket.AF_UNIX) as earlier:
        earlier.connect(str(guest / "agent.sock"))
        earlier.sendall(b'{"execute": "guest-pi')
    given = order(guest)
    result = await run_in_guest(given, lambda _: None)
    await given.agent.close()
    assert (result.state, result.failure) == (RunState.COMPLETED, "")
    found = reduce_block(result.record)
    # The guest's fio would be in the one, and the other is of the run's state.
    assert set(METRICS) - set(found) == {"qemu_cpu_us_per_io", LOAD_SHARE}
    assert found["iops"] > 0
    assert result.record.fio is not None
    options = result.record.fio["jobs"][0]["job options"]
    assert options["filename"] == str(guest / "disk")
    assert {sample.phase for sample in result.record.processes} == set(LoadPhase)


async def test_what_cannot_be_read_is_a_result_and_never_made(guest: Path) -> None:
    given = order(guest, device=str(guest / "none"))
    result = await run_in_guest(given, lambda _: None)
    await given.agent.close()
    assert result.state is RunState.FAILED
    assert result.failure.startswith("fio ended with status 2")
    assert not [path for path in os.listdir(guest) if path == "none"]


async def test_cancelled_it_interrupts_fio_in_the_guest(guest: Path) -> None:
    loading = asyncio.Event()

    def told(progress: RunProgress) -> None:
        if progress.process is not None and progress.process.phase is LoadPhase.DURING:
            loading.set()

    given = order(guest, LONG)
    task = asyncio.create_task(run_in_guest(given, told))
    await loading.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await given.agent.close()
    await asyncio.to_thread(_until_fio_has_ended, guest)


def _until_fio_has_ended(guest: Path) -> None:
    deadline = time.monotonic() + 30
    while _fio_of(guest):
        assert time.monotonic() < deadline, "fio runs on in the guest"
        time.sleep(0.05)


def _fio_of(guest: Path) -> list[int]:
    """fio's process: the agent's own command line names the folder as well."""
    return [pid for pid in processes_of(guest) if b"--name=load" in _command_line(pid)]


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


async def test_a_guest_without_fio(guest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmtune.hypervisor.qemu.guest_agent.PROGRAMS", ("none-such",))
    agent = agent_of(guest)
    with pytest.raises(CommandRefused, match="none-such"):
        await agent.run("none-such", [], 5, lambda: None)
    await agent.close()


async def test_nothing_but_fio_is_run(guest: Path) -> None:
    agent = agent_of(guest)
    for command, path in (("guest-exec", "sh"), ("guest-shutdown", ""), ("guest-file-open", "/x")):
        with pytest.raises(CommandRefused, match="does not have guests do"):
            await agent.execute(command, {"path": path})
    await agent.close()


async def test_no_agent(guest: Path) -> None:
    given = replace(order(guest), agent=agent_of(guest, "none.sock"))
    with pytest.raises(HostUnreachable, match="no guest agent answers"):
        await run_in_guest(given, lambda _: None)


async def test_an_agent_that_takes_no_programs_is_said_to(
    guest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = order(guest)

    async def refuses(*_: object) -> None:
        raise CommandRefused("Command guest-exec has been disabled")

    monkeypatch.setattr(GuestAgent, "execute", refuses)
    with pytest.raises(SetupError, match="has been disabled") as caught:
        await run_in_guest(given, lambda _: None)
    assert "install fio in the guest" in caught.value.problems[0].remedy


@pytest.fixture
def mortal() -> Iterator[subprocess.Popen[bytes]]:
    """A process in QEMU's place."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


async def test_a_qemu_that_ends_meanwhile_is_a_result(
    guest: Path, mortal: subprocess.Popen[bytes]
) -> None:
    given = replace(order(guest, LONG), pid=mortal.pid)

    def told(progress: RunProgress) -> None:
        if progress.process is not None and progress.process.phase is LoadPhase.DURING:
            mortal.kill()
            mortal.wait()
            for fio in _fio_of(guest):  # goes with its guest
                os.kill(fio, signal.SIGKILL)

    result = await run_in_guest(given, told)
    await given.agent.close()
    assert (result.state, result.record.qemu_ended) == (RunState.FAILED, "ended")
    assert result.failure.startswith("QEMU has ended")


async def test_before_it_is_ordered_the_agent_and_fio_are_looked_for(
    guest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = agent_of(guest)
    await check_guest(agent)
    await agent.close()
    with pytest.raises(HostUnreachable) as silent:
        await check_guest(agent_of(guest, "none.sock"))
    assert "install and start qemu-guest-agent" in silent.value.problems[0].remedy
    monkeypatch.setattr("vmtune.bench.block.live_order.FIO", "none-such")
    monkeypatch.setattr("vmtune.hypervisor.qemu.guest_agent.PROGRAMS", ("none-such",))
    agent = agent_of(guest)
    with pytest.raises(SetupError, match="none-such") as missing:
        await check_guest(agent)
    await agent.close()
    (problem,) = missing.value.problems
    assert (problem.code, "install fio" in problem.remedy) == ("no_fio_in_guest", True)
