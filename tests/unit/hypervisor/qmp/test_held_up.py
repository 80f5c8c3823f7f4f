"""A QEMU that takes no command just now, as at the switchover over a link that is down."""

from __future__ import annotations

import pytest

from tests.support.simulated.fakes import VM, fake_pair, only
from vmtune.errors import OutcomeUnknown
from vmtune.model.host.facts import VmState


async def test_it_is_listed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, _ = fake_pair()
    await driver.list_vms()
    (qemu,) = driver._folder.qemus

    async def hang(*_: object) -> None:
        raise OutcomeUnknown("QEMU did not answer query-status within 30 s")

    monkeypatch.setattr(qemu.monitor, "execute", hang)
    (found,) = await driver.list_vms()
    assert (found.uuid, found.state) == (VM, VmState.OTHER)
    only(driver).die()
    assert await driver.list_vms() == []
