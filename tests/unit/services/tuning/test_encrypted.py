"""What TLS sends by the recorded migrations, against what the guest dirties."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.support.examples.samples import make_samples
from tests.support.simulated.fakes import VM
from tests.support.simulated.world import World, world
from vmtune.model.findings.table import Finding
from vmtune.model.migration.record import MigrationState, Totals
from vmtune.model.tunables.tunable import Value

MIB = 1 << 20
TLS: dict[str, Value] = {"tls": True, "tls_creds": "tls0"}
FOUR: dict[str, Value] = {**TLS, "multifd": True, "multifd_channels": 4}


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


def recorded(
    it: World,
    sent_mib: int,
    wanted: Mapping[str, Value],
    dirtied: int = 0,
    vm: UUID = VM,
    **changes: Any,
) -> None:
    """One that completed after a second.

    :param dirtied: pages of 4 KiB a second, as one of its samples has them.
    """
    store = it.store.migrations
    calm = replace(make_samples(1)[0], throttle_percent=0, dirty_limit_throttle_us=0)
    record = store.begin(vm=vm, vm_name="vm", source="a", destination="b", wanted=wanted)
    for state in (MigrationState.PREPARING, MigrationState.STARTING, MigrationState.ACTIVE):
        store.update(record.id, state=state)
    store.add_samples(
        record.id,
        [replace(calm, dirty_pages_per_s=dirtied, page_size_bytes=4096, **changes)],
    )
    totals = Totals(1010, 10, 0, sent_mib * MIB, 4)
    store.update(record.id, state=MigrationState.COMPLETED, totals=totals)


async def slower(it: World, values: Mapping[str, Value]) -> list[Finding]:
    planned = await it.plans.plan(VM, destination="b", values=values, without_profile=True)
    return [each for each in planned.plan.findings if each.code == "tls_slower_than_guest"]


async def test_a_guest_that_dirties_more_than_tls_sent_is_told(it: World) -> None:
    recorded(it, 80, TLS, vm=uuid4())
    recorded(it, 60, TLS, vm=uuid4())
    recorded(it, 500, {}, dirtied=100 * 256)
    (told,) = await slower(it, TLS)
    assert told.evidence == {
        "sends_bytes": 80 * MIB, "dirties_bytes": 100 * MIB, "records": 2, "channels": 1,
    }  # fmt: skip
    assert "80 MiB a second" in told.message
    assert await slower(it, {}) == []


@pytest.mark.parametrize(
    ("values", "wanted", "changes"),
    [
        (FOUR, TLS, {}),  # more channels: nothing is known of them
        (TLS, {**TLS, "max_bandwidth_bytes_per_s": 80 * MIB}, {}),  # held by its limit
        (TLS, {}, {}),  # in the clear
        (TLS, TLS, {"throttle_percent": 20}),  # of a guest that is slowed down
        (TLS, TLS, {"dirty_pages_per_s": 80 * 256}),
    ],
)
async def test_what_says_nothing_of_it_is_no_finding(
    it: World, values: Mapping[str, Value], wanted: Mapping[str, Value], changes: dict[str, Any]
) -> None:
    recorded(it, 80, wanted, vm=uuid4())
    pages = changes.pop("dirty_pages_per_s", 100 * 256)
    recorded(it, 500, {}, dirtied=pages, **changes)
    assert await slower(it, values) == []


async def test_a_guest_that_never_migrated_is_no_finding(it: World) -> None:
    recorded(it, 80, TLS, vm=uuid4())
    assert await slower(it, TLS) == []
