"""``vmtune bench block`` and ``boot`` against the real application, without QEMUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.served.api import Api
from tests.unit.client.conftest import Vmtune
from vmtune.client.commands.bench.alone import Wanted, listed
from vmtune.client.commands.bench.live import plan_lines
from vmtune.client.views.progress import RunProgression


@pytest.fixture(autouse=True)
def fio(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A fio that only says its version."""
    program = tmp_path / "bin" / "fio"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho fio-3.33\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")


def test_one_combination_is_one_run(real: Api, vmtune: Vmtune) -> None:
    ran = vmtune("bench", "block", "--iodepth", "64", "--set", "iothread_poll_max_ns=0")
    assert ran.code == 0, ran.err
    load, memory = ran.out.split("\n\n")
    heads, row = load.splitlines()
    assert heads.split()[:4] == ["SCENARIO", "QEMU", "RESULT", "IOPS"]
    assert row.split()[:4] == ["block/null-co-randread-4k-64-1", "system", "completed", "30,001"]
    assert "30 us" in row and "60 us" in row and "80 us" in row
    assert [line.split()[-4] if "maps" in line else "" for line in memory.splitlines()][1] == "maps"
    (run,) = vmtune("bench", "runs", "--json").document["items"]
    assert (run["kind"], run["values"]) == ("block", {"iothread_poll_max_ns": 0})
    table = vmtune("bench", "runs").out
    assert "IOPS" in table and "DOWNTIME" not in table
    assert "fio-3.33" in vmtune("bench", "show", run["id"]).out


def test_disks_are_loaded_by_a_guest(real: Api, vmtune: Vmtune) -> None:
    ran = vmtune("bench", "block", "--guest-driver", "--iodepth", "64", "--numjobs", "4",
                 "--queues", "4", "--iothreads", "2", "--vcpus", "2", "--interrupts",
                 "--json")  # fmt: skip
    assert ran.code == 0, ran.err
    (run,) = ran.document["items"]
    assert run["scenario"].startswith("block/null-co-randread-4k-64-4-4queues-2iothreads.")
    setup = vmtune("bench", "show", run["id"], "--json").document["setup"]
    assert setup["driver"] == {"vcpus": 2, "interrupts": True}
    for option in (
        ("--queues", "2"),
        ("--disks", "2"),
        ("--iothreads", "2"),
        ("--interrupts",),
        ("--no-kvm",),
    ):
        refused = vmtune("bench", "block", *option)
        assert refused.code != 0
        assert f"{option[0].replace('no-', '')} needs --guest-driver" in refused.err
    refused = vmtune("bench", "block", "--guest-driver", "--iodepth", "1025")
    assert "places" in refused.err


def test_iothreads_are_compared_as_cells(real: Api, vmtune: Vmtune) -> None:
    ran = vmtune("bench", "block", "--guest-driver", "--disks", "2", "--iothreads", "1,2",
                 "--blocks", "1", "--name", "threads", "--no-kvm")  # fmt: skip
    assert ran.code == 0, ran.err
    assert "threads/null-co-randread-4k-1-1-2disks " in ran.out
    assert "threads/null-co-randread-4k-1-1-2disks-2iothreads " in ran.out


def test_a_boot_is_one_run(real: Api, vmtune: Vmtune) -> None:
    ran = vmtune("bench", "boot", "--accelerator", "tcg", "--json")
    assert ran.code == 0, ran.err
    (run,) = ran.document["items"]
    assert run["scenario"] == "boot/project-seabios-tcg-1-512m"
    shown = vmtune("bench", "show", run["id"]).out
    assert "user space" in shown and "SeaBIOS 1.16.2" in shown
    assert "TO USER SPACE" in vmtune("bench", "runs").out


def test_lists_are_a_campaign_compared_cell_by_cell(real: Api, vmtune: Vmtune) -> None:
    ran = vmtune("bench", "block", "--iodepth", "1,64", "--node", "null-co", "--blocks", "1",
                 "--name", "mine", "--seed", "3")  # fmt: skip
    assert ran.code == 0, ran.err
    assert "no verdict, only values: it has one arm only" in ran.err
    assert (
        "mine/null-co-randread-4k-1-1 " in ran.out and "mine/null-co-randread-4k-64-1 " in ran.out
    )
    assert "Medians" not in ran.out  # of one run each
    campaign = vmtune("bench", "campaign", "show", "mine", "--json").document
    assert (campaign["kind"], campaign["total"], campaign["seed"]) == ("block", 3, 3)
    told = vmtune("compare", "mine").out
    assert "compared with nothing" in told and "in all cells: system" in told
    document = vmtune("bench", "boot", "--accelerator", "tcg", "--vcpus", "1,2", "--blocks", "1",
                      "--json").document  # fmt: skip
    assert len(document["items"]) == 2
    assert document["campaign"]["name"] == "boot"


def test_whether_to_use_kvm_is_asked_of_runs_and_campaigns() -> None:
    chosen = Wanted("block", {"iodepth": [1]}, {"iodepth": "iodepth"}, {}, ["system"], kvm=False)
    assert chosen.run["kvm"] is chosen.campaign["kvm"] is False
    left = Wanted("block", {"iodepth": [1]}, {"iodepth": "iodepth"}, {}, ["system"])
    assert "kvm" not in {**left.run, **left.campaign}


def test_several_qemus_are_its_arms() -> None:
    both = Wanted("block", {"iodepth": [1]}, {"iodepth": "iodepth"}, {"runtime_s": 1},
                  listed(["old,system"]))  # fmt: skip
    assert not both.single
    assert both.campaign == {
        "name": "block",
        "arms": [
            {"name": "old", "qemu": "old", "values": {}},
            {"name": "system", "qemu": "", "values": {}},
        ],
        "blocks": 6,
        "block": {"iodepth": [1], "runtime_s": 1},
    }


def live(lists: dict[str, list[object]], **target: str) -> Wanted:
    usual: dict[str, list[object]] = {
        "rw": ["randread"], "block_size_bytes": ["4Ki"], "iodepth": [1], "numjobs": [1],
    }  # fmt: skip
    return Wanted("block", usual | lists, {}, {"target": {"vm": "x", **target}}, ["system"])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (live({}, node="disk0"), "its node disk0, read-only, by NBD"),
        (live({"rw": ["randrw"]}), "a temporary null-co node, writable, by NBD"),
        (live({}, device="/dev/vdb"), "fio reads /dev/vdb; nothing is written"),
        (live({"iodepth": [1, 16], "numjobs": [4]}, node="d"),
         "randread of 4Ki, up to 64 requests in flight, for 12 s, 12 times"),
        (live({}), "web1 on rack1, running: measured as it is"),
    ],
)  # fmt: skip
def test_before_a_running_vm_is_loaded_it_is_said_with_what(asked: Wanted, said: str) -> None:
    vm = {"name": "web1", "host": "rack1", "state": "running"}
    assert said in "\n".join(plan_lines(asked, vm))


def test_several_loads_of_a_running_vm_are_a_campaign_of_one_arm() -> None:
    asked = live({"nodes": ["vm"], "iodepth": [1, 8]}, node="disk0")
    assert asked.campaign["arms"] == [{"name": "vm", "qemu": "", "values": {}}]
    assert asked.campaign["block"]["target"] == {"vm": "x", "node": "disk0"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--vm", "web1", "--qemu", "old"),
            "--qemu: a running VM is measured with its current values",
        ),
        (("--vm", "web1", "--set", "iothread_poll_max_ns=0"), "--set: a running VM"),
        (("--vm", "web1", "--main-loop"), "--iothread"),
        (("--vm", "web1", "--node", "a", "--in-guest", "/dev/vdb"), "give only one"),
        (("--vm", "web1", "--node", "a,b"), "one node of a VM"),
        (("--in-guest", "/dev/vdb"), "--in-guest needs --vm"),
        (("--vm", "none"), "no VM is named none"),
    ],
)
def test_what_a_running_vm_cannot_be_measured_with(
    real: Api, vmtune: Vmtune, words: tuple[str, ...], said: str
) -> None:
    ran = vmtune("bench", "block", *words)
    assert ran.code != 0
    assert said in ran.err
    assert vmtune("bench", "runs", "--json").document["items"] == []


def test_a_file_of_a_matrix_is_a_campaign(real: Api, vmtune: Vmtune) -> None:
    told = vmtune("bench", "campaign", "srcu-boot", "--dry-run", "--json")
    if told.code:  # it says what this machine lacks for it
        assert "KVM" in told.err or "is not installed" in told.err
    else:
        assert told.document["forecast"]["runs"] == 61


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("block", "--iodepth", "many"), "not whole numbers"),
        (("block", "--iodepth", "0"), "iodepth"),
        (("block", "--node", "ram"), "null-co"),
        (("block", "--set", "multifd=on"), "multifd"),
        (("block", "--qemu", "none"), "bench_qemus"),
        (("boot", "--firmware", "ovmf"), "linux"),
        (("boot", "--memory", "1Mi"), "memory_bytes"),
    ],
)
def test_what_cannot_be_is_refused(
    real: Api, vmtune: Vmtune, words: tuple[str, ...], said: str
) -> None:
    ran = vmtune("bench", *words)
    assert ran.code == 1
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert vmtune("bench", "runs", "--json").document["items"] == []


def test_ordered_and_left(real: Api, vmtune: Vmtune) -> None:
    ran = vmtune("bench", "block", "--no-wait")
    assert ran.code == 0 and "started run" in ran.out
    assert "started campaign" in vmtune("bench", "block", "--no-wait", "--blocks", "1").out


def test_what_a_qemu_takes_is_told_while_it_runs() -> None:
    shown = RunProgression()
    shown.advance({"share": 0.5, "phase": "loading", "maps": 1174, "rss_bytes": 40 << 20})
    assert (shown.stage, shown.figures) == ("loading", "QEMU has 1,174 maps, 40 MiB in memory")
