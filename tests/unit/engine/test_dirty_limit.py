"""The dirty limit is lifted where a migration with it does not complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast
from uuid import UUID

import pytest

from tests.support.examples.migrations import make_migration
from tests.unit.engine.test_copied_disks import Both, ImageHost
from tests.unit.engine.test_end_state import FAILED, LEFT
from vmtune.engine import end_state
from vmtune.engine.end_state import Evidence
from vmtune.engine.finalize import finalize
from vmtune.engine.notes import Hosts
from vmtune.errors import CommandRefused, NotFound, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.migration.record import MigrationFields
from vmtune.model.plan.outcome import Outcome
from vmtune.model.tunables.built_in import BUILT_IN


class Limited(ImageHost):
    """Counts how often its limit was lifted."""

    lifted = 0
    why_not: VmtuneError | None = None

    async def lift_dirty_limit(self, vm: UUID) -> None:
        self.lifted += 1
        if self.why_not is not None:
            raise self.why_not


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_state, "RETRY_S", 0.001)
    monkeypatch.setattr(end_state, "AGREES_WITHIN_S", 0.05)


async def _nothing(vm: UUID, driver: Driver) -> Sequence[Outcome]:
    return ()


async def failed(source: Limited, **wanted: object) -> MigrationFields:
    hosts = cast(Hosts, Both(source, ImageHost(LEFT)))
    return await finalize(make_migration(wanted=wanted), hosts, Evidence(), BUILT_IN, _nothing)


async def test_it_is_lifted_where_it_was_asked_for() -> None:
    source, other = Limited(FAILED), Limited(FAILED)
    fields = await failed(source, dirty_limit=True)
    await failed(other, auto_converge=True)
    assert (source.lifted, other.lifted) == (1, 0)
    assert not fields.get("problems")


@pytest.mark.parametrize(
    ("why_not", "codes"), [(CommandRefused("not now"), ["still_limited"]), (NotFound("gone"), [])]
)
async def test_what_may_still_be_held_back_is_told(why_not: VmtuneError, codes: list[str]) -> None:
    source = Limited(FAILED)
    source.why_not = why_not
    fields = await failed(source, dirty_limit=True)
    assert [problem.code for problem in fields.get("problems", ())] == codes
