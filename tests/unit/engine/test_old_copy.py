"""A source is asked for the VM's old copy for as long as its libvirt may take to start again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast
from uuid import UUID

import pytest

from tests.support.examples.migrations import make_migration
from vmtune.engine import finalize
from vmtune.errors import HostUnreachable, NotFound, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import VmState

DOWN = HostUnreachable("a: connection refused")
NEVER = 1 << 20


class Source:
    """Answers what it is told to, in turn, and its last answer from then on.

    :param leaving_for: so many looks libvirt still takes the VM for leaving.
    """

    def __init__(self, *says: VmState | VmtuneError, leaving_for: int = 0) -> None:
        self._says = list(says)
        self._leaving_for = leaving_for
        self.looks = 0

    async def vm_state(self, vm: UUID) -> VmState:
        self.looks += 1
        says = self._says.pop(0) if len(self._says) > 1 else self._says[0]
        if isinstance(says, VmtuneError):
            raise says
        return says

    async def outgoing(self) -> Sequence[UUID]:
        return [make_migration().vm] if self.looks <= self._leaving_for else []


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finalize, "RETRY_S", 0.001)
    monkeypatch.setattr(finalize, "STARTS_AGAIN_WITHIN_S", 0.5)


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        (Source(VmState.PAUSED), ["left_behind"]),
        (Source(*[DOWN] * 20, VmState.PAUSED), ["left_behind"]),
        (Source(*[DOWN] * 20, NotFound("gone")), []),
        (Source(VmState.PAUSED, NotFound("gone")), []),
        (Source(VmState.PAUSED, VmState.RUNNING), []),
        (Source(VmState.PAUSED, leaving_for=20), ["left_behind"]),
        (Source(VmState.PAUSED, leaving_for=NEVER), []),
        (Source(DOWN), ["source_silent"]),
        (Source(VmState.PAUSED, DOWN), ["source_silent"]),
    ],
    ids=[
        "paused",
        "back late, and paused",
        "back late, and gone",
        "goes",
        "runs",
        "libvirt lets go late",
        "libvirt never lets go",
        "down",
        "seen once, and down",
    ],
)
async def test_what_is_told_of_the_old_copy(source: Source, codes: list[str]) -> None:
    found = await finalize.find_old_copy(make_migration(), cast(Driver, source))
    assert [problem.code for problem in found] == codes
    for problem in found:
        assert f"virsh destroy {make_migration().vm}" in problem.remedy


async def test_a_silent_source_is_told_with_its_reason() -> None:
    (problem,) = await finalize.find_old_copy(make_migration(), cast(Driver, Source(DOWN)))
    assert str(DOWN) in problem.message
