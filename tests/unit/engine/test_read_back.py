"""Reading a VM on a host that is not done with its arrival."""

from collections.abc import Collection, Mapping
from typing import cast
from uuid import UUID

import pytest

from tests.support.fakes import VM
from vmtune.engine import read_back as arrived
from vmtune.engine.read_back import read_arrived
from vmtune.errors import CommandRefused, NotFound, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Reading


class Host:
    """Refuses so often, and then answers. A real one cannot be made to."""

    def __init__(self, *refusals: VmtuneError) -> None:
        self._refusals = list(refusals)

    async def read(self, vm: UUID, names: Collection[str]) -> Mapping[str, Reading]:
        if self._refusals:
            raise self._refusals.pop(0)
        return {name: Reading(3) for name in names}


async def read(*refusals: VmtuneError) -> Mapping[str, Reading]:
    return await read_arrived(cast(Driver, Host(*refusals)), VM, ["announce_rounds"])


async def test_it_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrived, "_RETRY_S", 0.001)
    found = await read(CommandRefused("not yet"), CommandRefused("not yet"))
    assert found == {"announce_rounds": Reading(3)}


async def test_not_where_it_is_not() -> None:
    with pytest.raises(NotFound):
        await read(NotFound("gone"))


async def test_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrived, "_ANSWERS_WITHIN_S", -1)
    with pytest.raises(CommandRefused, match="not yet"):
        await read(CommandRefused("not yet"))
