"""What a QEMU is asked, by its release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from vmtune.errors import CommandRefused
from vmtune.hypervisor.qemu.probe import QemuProbe
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.versions import Version


class Monitor:
    """Answers what it is given, refuses the rest, and remembers."""

    def __init__(self, **answers: Mapping[str, Any]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    async def execute(self, command: str, arguments: Mapping[str, Any] | None = None) -> Any:
        self.asked.append(command)
        name = command.replace("-", "_")
        if name not in self._answers:
            raise CommandRefused(f"The command {command} has not been found")
        return self._answers[name]


KVM_ON, KVM_OFF = {"enabled": True, "present": True}, {"enabled": False, "present": True}
BOTH = ["kvm", "tcg"]


@pytest.mark.parametrize(
    ("version", "monitor", "kvm", "asked"),
    [
        ("10.2", Monitor(query_kvm=KVM_ON), True, ["query-kvm"]),
        (
            "11.0",
            Monitor(query_accelerators={"enabled": "kvm", "present": BOTH}),
            True,
            ["query-accelerators"],
        ),
        (
            "11.1",
            Monitor(query_accelerators={"enabled": "tcg", "present": BOTH}, query_kvm=KVM_ON),
            False,
            ["query-accelerators"],
        ),
        ("11.1", Monitor(query_kvm=KVM_OFF), False, ["query-accelerators", "query-kvm"]),
    ],
)
async def test_how_it_is_asked_for_kvm(
    version: str, monitor: Monitor, kvm: bool, asked: list[str]
) -> None:
    """``query-kvm`` is deprecated since QEMU 11."""
    probe = QemuProbe(monitor, BUILT_IN)  # type: ignore[arg-type] # what it needs
    major, minor = map(int, version.split("."))
    assert await probe._has_kvm(Version(major, minor)) is kvm
    assert monitor.asked == asked
