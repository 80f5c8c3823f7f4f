"""Whatever comes in QEMU's place, a driver says that it does not understand it, or gives what it
always gives: nothing else is raised."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.simulated.fakes import RECORDED, VM, recording
from vmtune.errors import VmtuneError
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.testing.fake.driver import FakeDriver
from vmtune.testing.fake.qemu import FakeQemu

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=5), parts),
    max_leaves=5,
)


class MangledQemu(FakeQemu):
    """Some of its answers are not, or not wholly, what QEMU says."""

    draw: Any = None  # any: hypothesis's

    def answer(self, command: str, arguments: Mapping[str, Any]) -> Any:  # any JSON
        reply = super().answer(command, arguments)
        return self.mangled(reply) if self.draw(st.integers(0, 3)) == 0 else reply

    def mangled(self, reply: Any) -> Any:  # any JSON
        """*reply* with one part, or all of it, replaced or left out."""
        if not reply or not isinstance(reply, list | dict) or self.draw(st.booleans()):
            return self.draw(JUNK)
        keys = list(range(len(reply))) if isinstance(reply, list) else sorted(reply)
        key = self.draw(st.sampled_from(keys))
        whole = dict(enumerate(reply)) if isinstance(reply, list) else dict(reply)
        if self.draw(st.booleans()):
            del whole[key]
        else:
            whole[key] = self.mangled(whole[key])
        return list(whole.values()) if isinstance(reply, list) else whole


async def ask(driver: FakeDriver, question: str) -> None:
    match question:
        case "list_vms":
            await driver.list_vms()
        case "read":
            await driver.read(VM, list(BUILT_IN))
        case "outgoing":
            await driver.outgoing()
        case _:
            await getattr(driver, question)(VM)


QUESTIONS = ["list_vms", "vm_facts", "read", "migration", "vm_state", "dirty_rates", "outgoing"]


@settings(max_examples=150)
@given(data=st.data(), version=st.sampled_from(RECORDED))
def test_no_answer_makes_a_driver_raise_anything_else(data: st.DataObject, version: str) -> None:
    qemu = MangledQemu(recording(version), VM, ring_entries=4096)
    qemu.draw = data.draw

    async def trial() -> None:
        driver = FakeDriver([qemu])
        for question in data.draw(st.lists(st.sampled_from(QUESTIONS), min_size=1, max_size=3)):
            try:
                await ask(driver, question)
            except VmtuneError as error:
                assert error.problems[0].message
        await driver.close()

    asyncio.run(trial())
