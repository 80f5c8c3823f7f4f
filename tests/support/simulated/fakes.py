"""Fake QEMUs and hosts that answer what real ones were recorded to answer."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any
from uuid import UUID

from vmtune.testing.fake.driver import FakeDriver
from vmtune.testing.fake.qemu import FakeQemu, Network

RECORDINGS = Path(__file__).parents[2] / "data/qmp"
OLDEST, NEWEST = "7.2.22", "10.0.2"
RECORDED = (OLDEST, NEWEST, "11.1.3")
"""Releases whose replies are there; the fake is the newest that Debian 12 and 13 install."""
VM = UUID("5f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e10")


@functools.cache
def recording(version: str) -> dict[str, Any]:
    """Every recorded reply of a QEMU, by command."""
    return {p.stem: json.loads(p.read_text()) for p in (RECORDINGS / version).glob("*.json")}


def fake_qemu(version: str = NEWEST, uuid: UUID = VM, **settings: Any) -> FakeQemu:
    """A running fake QEMU; *settings* are those of FakeQemu."""
    return FakeQemu(recording(version), uuid, **settings)


def fake_pair(version: str = NEWEST, **settings: Any) -> tuple[FakeDriver, FakeDriver]:
    """Two hosts: the first has the VM, the second a QEMU that waits for it. The fake QEMUs
    are ``driver.fakes``; *settings* are those of the source's FakeQemu."""
    network: Network = {}
    source = fake_qemu(version, network=network, **settings)
    waiting = fake_qemu(version, network=network, incoming=True)
    return FakeDriver([source], "a"), FakeDriver([waiting], "b")


def only(driver: FakeDriver) -> FakeQemu:
    """The one QEMU of a fake host."""
    (qemu,) = driver.fakes.values()
    return qemu
