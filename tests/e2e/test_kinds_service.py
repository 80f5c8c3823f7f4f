"""Blocks and boots through the real service, CLI and QEMU, and that nothing is left of them."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live import Service, wait_for
from tests.support.qemu import installed
from vmtune.bench.report import from_document
from vmtune.bench.run_folder import processes_of
from vmtune.client.cli import run as vmtune
from vmtune.client.http import Document

NO_QEMU = installed().why_not or ("" if shutil.which("fio") else "fio is not installed")
pytestmark = pytest.mark.skipif(bool(NO_QEMU), reason=NO_QEMU or "never")


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    """A folder with a path short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="vt-") as name:
        yield Path(name)
        assert processes_of(Path(name)) == []


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, base: Path) -> Iterator[Service]:
    changed = {"VMTUNE_BENCH_DIR": str(base / "b"), "VMTUNE_BENCH_SCRATCH_DIR": str(base / "s")}
    os.environ.update(changed)
    made = Service(tmp_path_factory.mktemp("kinds"))
    try:
        made.start()
        yield made
    finally:
        made.stop()
        for name in changed:
            del os.environ[name]


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
    order = ("bench", "campaign", str(file), "--detach", "--json")
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
    assert (cell.comparisons[0].metric, cell.comparisons[0].size) == ("iops", 1)
    assert "Requests per second (primary)" in cli(service, capsys, "compare", id)[1]
    assert processes_of(base) == []
