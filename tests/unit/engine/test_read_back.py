"""Reading a VM on a host that is not done with its arrival."""

from collections.abc import Collection, Mapping
from typing import cast
from uuid import UUID

import pytest

from tests.support.simulated.fakes import VM
from vmtune.engine import read_back as arrived
from vmtune.engine.read_back import read_arrived
from vmtune.errors import CommandRefused, NotFound, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Reading


class Host:
    """Refuses so often, or knows no value, and then answers. A real one cannot be made to."""

    def __init__(self, *first: VmtuneError | Reading) -> None:
        self._first = list(first)

    async def read(self, vm: UUID, names: Collection[str]) -> Mapping[str, Reading]:
        first = self._first.pop(0) if self._first else Reading(3)
        if isinstance(first, VmtuneError):
            raise first
        return dict.fromkeys(names, first)


async def read(*first: VmtuneError | Reading) -> Mapping[str, Reading]:
    return await read_arrived(cast(Driver, Host(*first)), VM, ["announce_rounds"])


async def test_it_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrived, "_RETRY_S", 0.001)
    found = await read(CommandRefused("not yet"), CommandRefused("not yet"))
    assert found == {"announce_rounds": Reading(3)}


STILL_ARRIVING = Reading(None, why_unknown="libvirt lets nobody ask it yet")


async def test_it_is_asked_again_while_its_monitor_is_not_lent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arrived, "_RETRY_S", 0.001)
    found = await read(STILL_ARRIVING, STILL_ARRIVING)
    assert found == {"announce_rounds": Reading(3)}


async def test_what_stays_unknown_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrived, "_ANSWERS_WITHIN_S", -1)
    assert await read(STILL_ARRIVING) == {"announce_rounds": STILL_ARRIVING}


async def test_not_where_it_is_not() -> None:
    with pytest.raises(NotFound):
        await read(NotFound("gone"))


async def test_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrived, "_ANSWERS_WITHIN_S", -1)
    with pytest.raises(CommandRefused, match="not yet"):
        await read(CommandRefused("not yet"))
