"""Changing how disks are copied while they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from vmtune.errors import CommandRefused, TooLate
from vmtune.hypervisor.qemu.allowlist import check
from vmtune.hypervisor.qemu.copy_jobs import help_copies

OURS, LIBVIRTS = "vmtune-copy-disk0", "drive-virtio-disk0"


class Jobs:
    """A monitor of a QEMU with some jobs."""

    def __init__(self, states: Mapping[str, str], refuses: str = "") -> None:
        self._states, self._refuses = states, refuses
        self.sent: list[tuple[str, Mapping[str, Any]]] = []

    async def execute(self, command: str, arguments: Mapping[str, Any] | None = None) -> Any:
        check(command, arguments, ())
        if command == "query-jobs":
            return [{"id": id, "status": status} for id, status in self._states.items()]
        if command == "block-job-change" and self._refuses:
            raise CommandRefused(self._refuses)
        self.sent.append((command, arguments or {}))
        return {}


@pytest.mark.parametrize("job", [OURS, LIBVIRTS])
async def test_the_copies_that_run_are_changed_and_no_others(job: str) -> None:
    monitor = Jobs({job: "running", "drive-other": "running", f"{job}x": "concluded"})
    await help_copies(monitor, [job, f"{job}x"], 5, synchronous=True)
    assert monitor.sent == [
        ("block-job-set-speed", {"device": job, "speed": 5}),
        ("block-job-change", {"id": job, "type": "mirror", "copy-mode": "write-blocking"}),
    ]


async def test_what_is_not_named_stays() -> None:
    monitor = Jobs({OURS: "ready"})
    await help_copies(monitor, [OURS], None, synchronous=False)
    assert monitor.sent == []
    await help_copies(monitor, [OURS], 0, synchronous=False)
    assert monitor.sent == [("block-job-set-speed", {"device": OURS, "speed": 0})]


async def test_it_is_too_late_once_nothing_is_copied() -> None:
    with pytest.raises(TooLate):
        await help_copies(Jobs({OURS: "concluded"}), [OURS], 5, synchronous=False)


async def test_an_older_qemu_is_told_with_what_helps_instead() -> None:
    monitor = Jobs({OURS: "running"}, "The command block-job-change has not been found")
    with pytest.raises(CommandRefused) as refused:
        await help_copies(monitor, [OURS], None, synchronous=True)
    assert refused.value.problems[0].code == "copy_mode_fixed"
    other = Jobs({OURS: "running"}, "Job is busy")
    with pytest.raises(CommandRefused, match="Job is busy"):
        await help_copies(other, [OURS], None, synchronous=True)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("block-job-set-speed", {"device": "backup0", "speed": 1}),
        ("block-job-set-speed", {"device": OURS, "speed": -1}),
        ("block-job-change", {"id": "backup0", "type": "mirror", "copy-mode": "write-blocking"}),
        ("block-job-change", {"id": OURS, "type": "mirror", "copy-mode": "background"}),
    ],
)
def test_other_jobs_are_left_alone(command: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(CommandRefused):
        check(command, arguments, ())
