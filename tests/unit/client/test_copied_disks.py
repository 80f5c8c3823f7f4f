"""Disks that are copied, in the words of the command line."""

from __future__ import annotations

from typing import Any

from tests.support.examples import api_documents as docs
from vmtune.client.commands.tuning.plan import lines as plan_lines
from vmtune.client.views.copied_disks import of_record
from vmtune.client.views.progress import Progression, describe

MIB = 1 << 20
DISK: dict[str, Any] = {
    "target": "vda",
    "path": "/images/a",
    "copied_bytes": 1024 * MIB,
    "total_bytes": 2048 * MIB,
    "bytes_per_s": 100 * MIB,
    "written_bytes_per_s": 0,
    "left_ms": 10_240,
    "converges": True,
    "ready_ms": None,
    "ready": False,
    "source_image": "kept",
    "source_image_reason": "",
}
READY = DISK | {"target": "vdb", "ready_ms": 900, "ready": True, "left_ms": None, "converges": None}
BEHIND = DISK | {"left_ms": None, "converges": False, "written_bytes_per_s": 120 * MIB}


def event(*disks: dict[str, Any], left_ms: int | None = 10_240) -> dict[str, Any]:
    return {"phase": "disks", "share": 0.25, "disks": list(disks), "disks_left_ms": left_ms}


def test_the_phase_of_disks_comes_before_the_memorys() -> None:
    assert describe(event(DISK, READY)) == (
        "copying disks, about 10 s left, vda 1 GiB of 2 GiB at 100 MiB/s, "
        "vdb has caught up, then the memory"
    )
    shown = Progression()
    shown.advance(event(DISK))
    assert (shown.share, shown.figures[:13]) == (0.25, "copying disks")
    memory = {"phase": "memory", "disks": [READY], "iteration": 2, "remaining_bytes": 5}
    assert describe(memory | {"throughput_bytes_per_s": 1}).endswith("1 disk copied")


def test_what_would_help_a_copy_that_does_not_catch_up() -> None:
    said = (
        "vda does not catch up: the guest writes 120 MiB/s to it, and 100 MiB/s are copied. "
        "It needs more bandwidth, or copy_synchronous_writes"
    )
    assert describe(event(BEHIND, left_ms=None)).endswith(said)
    assert of_record(BEHIND, running=True).endswith(said)


def test_a_disk_of_a_record() -> None:
    assert of_record(DISK, running=True) == (
        "1 GiB of 2 GiB copied, 100 MiB/s, about 10 s left: /images/a"
    )
    assert of_record(READY, running=False) == (
        "1 GiB of 2 GiB copied, caught up after 900 ms: /images/a"
    )


def test_a_plan_lists_what_is_copied() -> None:
    disk = {"target": "vda", "path": "/images/a", "format": "raw"}
    sizes = {"allocated_bytes": 1024 * MIB, "capacity_bytes": 2048 * MIB}
    shown = list(plan_lines({**docs.plan(clean=False), "disks": [disk | sizes]}))
    assert "copies disk vda: /images/a, 1 GiB of 2 GiB" in shown
    assert not any("copies" in line for line in plan_lines(docs.plan(clean=False)))


def test_what_has_become_of_the_sources_image() -> None:
    gone = DISK | {"ready_ms": 900, "left_ms": None, "source_image": "removed"}
    assert of_record(gone, running=False).endswith(": /images/a; source's image removed")
    kept = gone | {"source_image": "kept", "source_image_reason": "web2 names it"}
    assert of_record(kept, running=False).endswith("; source's image kept: web2 names it")
