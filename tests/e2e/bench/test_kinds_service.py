"""Blocks and boots through the real service, CLI and QEMU, and that nothing is left of them: of
QEMUs that are started for it, of a VM that runs, and in its guest."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.perf.pools.pool_model import Monitor
from tests.support.hosts.live import Service, wait_for
from tests.support.qemus.qemu import RunningQemu, installed, running
from vmtune.bench.report.report import from_document
from vmtune.bench.run_folder import processes_of
from vmtune.client.cli import run as vmtune
from vmtune.client.connection.http import Document

NO_QEMU = installed().why_not or ("" if shutil.which("fio") else "fio is not installed")
pytestmark = pytest.mark.skipif(bool(NO_QEMU), reason=NO_QEMU or "never")


def cli(service: Service, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """What a command exits with, and prints."""
    capsys.readouterr()
    code = vmtune([*words, "--socket", str(service.client.socket_path)])
    return code, capsys.readouterr().out


def newest(service: Service) -> Document:
    (row,) = service.client.get("/runs?limit=1")["items"]
    return row


def test_a_load_is_one_run(
    service: Service, base: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out = cli(service, capsys, "bench", "block", "--node", "raw", "--size", "16Mi",
                    "--rw", "randwrite", "--runtime", "1", "--ramp", "0")  # fmt: skip
    assert code == 0, out
    assert "IOPS" in out and "DURING THE LOAD" in out
    row = newest(service)
    assert (row["kind"], row["state"]) == ("block", "completed")
    assert row["scenario"].startswith("block/raw-randwrite-4k-1-1.")
    assert row["metrics"]["iops"] > 0
    run = service.client.get(f"/runs/{row['id']}")
    assert run["record"]["block"]["fio"]["fio version"].startswith("fio-")
    looks = service.client.get(f"/runs/{row['id']}/processes")["items"]
    assert len(looks) == run["lengths"]["processes"] > 2
    assert {look["phase"] for look in looks} == {"before", "during", "after"}
    file = tmp_path / "run.csv.gz"
    assert cli(service, capsys, "bench", "export", row["id"], str(file))[0] == 0
    assert file.stat().st_size > 1000
    assert not list((base / "s").glob("*")), "its scratch file is gone"


def test_a_boot_is_one_run(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = cli(service, capsys, "bench", "boot", "--accelerator", "tcg", "--json")
    assert code == 0, out
    (record,) = json.loads(out)["items"]
    assert (record["kind"], record["scenario"]) == ("boot", "boot/project-seabios-tcg-1-512m")
    reached = [mark["name"] for mark in record["record"]["boot"]["marks"]]
    assert reached[0] == "guest" and reached[-1] == "user space"
    assert record["metrics"]["boot_to_userspace_ms"] > record["metrics"]["boot_to_guest_ms"] > 0
    shown = cli(service, capsys, "bench", "show", record["id"])[1]
    assert "user space" in shown and "Boot to user space" in shown


def test_a_matrix_of_two_arms_is_a_campaign_that_survives_a_sudden_death(
    service: Service, base: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text("""
        name = "tiny-blocks"
        blocks = 1
        arms = [{name = "one"}, {name = "two", values = {iothread_poll_max_ns = 0}}]
        [block]
        size_bytes = "16Mi"
        iodepth = [4]
        runtime_s = 1
        ramp_s = 0
    """)
    order = ("bench", "campaign", str(file), "--no-wait", "--json")
    code, out = cli(service, capsys, *order)
    assert code == 0, out
    id = json.loads(out)["id"]

    def look() -> Document:
        return service.client.get(f"/campaigns/{id}")

    wait_for(lambda: len(processes_of(base / "b")) >= 1, "a run to be in its middle")
    service.kill()
    service.start()
    wait_for(lambda: bool(look()["ended"]), "the campaign to end", within_s=120)
    record = look()
    assert (record["state"], record["done"], record["total"]) == ("completed", 3, 3)
    assert (record["kind"], record["primary_metric"]) == ("block", "iops")
    report = from_document(service.client.get("/comparisons", {"campaign": id}))
    (cell,) = report.cells
    assert cell.name == "tiny-blocks/null-co-randread-4k-4-1"
    assert (cell.primary.metric, cell.primary.size) == ("iops", 1)
    assert "Requests per second (primary)" in cli(service, capsys, "compare", id)[1]
    assert processes_of(base) == []


AGENT = shutil.which("qemu-ga", path=os.pathsep.join((os.environ["PATH"], "/usr/sbin")))
QUICKLY = ("--runtime", "1", "--ramp", "0")


class Vm:
    """A VM that runs, with a disk, and a channel on which no agent answers yet.

    :param own: another monitor than the service's, to see what is there.
    """

    def __init__(self, qemu: RunningQemu, folder: Path) -> None:
        self.qemu, self.folder = qemu, folder
        self.own = folder / "own"
        self.agent = folder / "agent"

    def exports(self) -> list[str]:
        with Monitor(self.own) as monitor:
            return [each["id"] for each in monitor.execute("query-block-exports")]

    def is_clean(self) -> bool:
        """No export, no server and no node of vmtune's."""
        with Monitor(self.own) as monitor:
            nodes = [each["node-name"] for each in monitor.execute("query-named-block-nodes")]
        return self.exports() == [] and "vmtune-node" not in nodes


@pytest.fixture(scope="module")
def vm(service: Service, base: Path) -> Iterator[Vm]:
    folder = base / "v"
    folder.mkdir()
    extra = (
        *("-qmp", f"unix:{folder}/own,server=on,wait=off", "-device", "virtio-serial"),
        *("-chardev", f"socket,id=agent,path={folder}/agent,server=on,wait=off"),
        *("-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0"),
    )
    with running(installed(), folder, "web1", uuid4(), extra=extra) as qemu:
        service.client.post("/hosts", {"name": "rack1", "uri": f"qmp+unix://{folder}"})
        (folder / "agent").rename(folder / "unanswered")
        yield Vm(qemu, folder)


def test_a_vm_that_runs_is_loaded_and_left_as_it_was(
    service: Service, vm: Vm, base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A node of its own, and a null node that is made for it; it says first what it will do."""
    order = ("bench", "block", "--vm", "web1", *QUICKLY)
    assert vmtune([*order, "--socket", str(service.client.socket_path)]) == 1
    said = capsys.readouterr().err
    assert "a temporary null-co node, read-only, by NBD" in said and "confirm with --yes" in said
    code, out = cli(service, capsys, *order, "--node", "disk1", "--iodepth", "4", "--yes")
    assert code == 0, out
    assert "VM web1" in out and "DURING THE LOAD" in out
    row = newest(service)
    assert (row["state"], row["qemu"]) == ("completed", "")
    uuid = service.client.get("/vms")["items"][0]["uuid"]
    assert row["vm"] == {
        "uuid": uuid, "name": "web1", "host": "rack1", "node": "disk1", "device": "",
    }  # fmt: skip
    assert row["metrics"]["iops"] > 0 and row["metrics"]["maps_before"] > 100
    run = service.client.get(f"/runs/{row['id']}")
    assert run["environment"]["qemu"]["version"].startswith(run["record"]["block"]["qemu"])
    assert "VM web1 of rack1 (its node disk1)" in cli(
        service, capsys, "bench", "show", row["id"])[1]  # fmt: skip
    assert vm.is_clean()

    code, _ = cli(service, capsys, *order, "--rw", "randwrite", "--yes")
    assert code == 0
    assert newest(service)["metrics"]["iops"] > 0
    assert vm.is_clean() and vm.qemu.process.poll() is None
    assert not list((base / "l").glob("*"))

    assert vmtune([*order, "--node", "disk9", "--yes", "--socket",
                   str(service.client.socket_path)]) == 1  # fmt: skip
    said = capsys.readouterr().err
    assert "no block node 'disk9'" in said and "there are disk0" in said


def test_a_service_that_is_killed_removes_its_export_when_it_starts_again(
    service: Service, vm: Vm, base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = ("bench", "block", "--vm", "web1", "--node", "disk1", "--runtime", "60", "--yes")
    code, out = cli(service, capsys, *long, "--no-wait", "--json")
    assert code == 0, out
    run = json.loads(out)["id"]
    wait_for(lambda: len(processes_of(base / "l")) > 0, "fio to load it")
    service.kill()
    wait_for(lambda: processes_of(base / "l") == [], "fio to go by the kernel's hand")
    assert vm.exports() == ["vmtune-export"], "nobody is left who could remove it"
    service.start()

    def record() -> Document:
        return service.client.get(f"/runs/{run}")

    wait_for(lambda: bool(record()["ended"]), "the run to be known as interrupted")
    assert record()["state"] == "interrupted"
    wait_for(vm.is_clean, "the export to go")
    assert not list((base / "l").glob("*"))
    # The VM is nobody's again: another server can be had, and another run.
    assert cli(service, capsys, *long[:6], *QUICKLY, "--yes")[0] == 0


@pytest.fixture
def agent(vm: Vm) -> Iterator[None]:
    """qemu-ga on this machine, in the place of the guest's."""
    if AGENT is None:
        pytest.skip("qemu-ga is not installed (vmtune/lab/bootstrap.sh --tests)")
    command = [AGENT, "-m", "unix-listen", "-p", str(vm.agent), "-f", str(vm.folder / "pid"),
               "-t", str(vm.folder), "-l", str(vm.folder / "log")]  # fmt: skip
    with subprocess.Popen(command) as process:
        try:
            wait_for(vm.agent.exists, "the agent to listen")
            yield
        finally:
            process.terminate()
    vm.agent.unlink(missing_ok=True)


def test_in_a_guest_without_an_agent(
    service: Service, vm: Vm, capsys: pytest.CaptureFixture[str]
) -> None:
    order = ("bench", "block", "--vm", "web1", "--in-guest", "/dev/vdb", "--yes", *QUICKLY)
    capsys.readouterr()
    assert vmtune([*order, "--socket", str(service.client.socket_path)]) == 1
    said = capsys.readouterr().err
    assert "no guest agent answers" in said and "install and start qemu-guest-agent" in said


def test_in_a_guest(
    service: Service, vm: Vm, agent: None, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = vm.folder / "disk"
    disk.write_bytes(bytes(1 << 20))
    order = ("bench", "block", "--vm", "web1", "--in-guest", str(disk), "--yes", *QUICKLY)
    code, out = cli(service, capsys, *order)
    assert code == 0, out
    row = newest(service)
    assert (row["state"], row["vm"]["device"]) == ("completed", str(disk))
    assert row["metrics"]["iops"] > 0 and row["metrics"]["maps_during"] > 100
    assert "qemu_cpu_us_per_io" not in row["metrics"]
    assert vm.exports() == []
