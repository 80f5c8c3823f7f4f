"""Migrations by whether they kept their downtime limit."""

from typing import Any
from uuid import UUID, uuid4

from vmtune.model.migration.record import MigrationState, Totals
from vmtune.storage import Store


def test_migrations_are_filtered_by_whether_their_downtime_exceeded_its_limit(store: Store) -> None:
    def completed(limit_ms: int | None, downtime_ms: int) -> UUID:
        wanted = {} if limit_ms is None else {"downtime_limit_ms": limit_ms}
        begun = store.migrations.begin(
            vm=uuid4(), vm_name="guest", source="a", destination="z", wanted=wanted
        )
        for state in (MigrationState.PREPARING, MigrationState.STARTING):
            store.migrations.update(begun.id, state=state)
        totals = Totals(9000, downtime_ms, None, 1 << 20, 2)
        store.migrations.update(begun.id, state=MigrationState.COMPLETED, totals=totals)
        return begun.id

    kept, first, unlimited, second = (
        completed(limit_ms, downtime_ms)
        for limit_ms, downtime_ms in ((694, 694), (200, 694), (None, 694), (693, 694))
    )
    running = store.migrations.begin(vm=uuid4(), vm_name="guest", source="a", destination="z")

    def listed(exceeded: bool | None, **more: Any) -> list[UUID]:
        page = store.migrations.list(downtime_exceeded=exceeded, **more)
        return [each.id for each in page.items]

    assert listed(True) == [second, first]
    assert listed(False) == [running.id, unlimited, kept]
    assert listed(None) == [running.id, second, unlimited, first, kept]
    page = store.migrations.list(downtime_exceeded=True, limit=1)
    assert [each.id for each in page.items] == [second]
    assert listed(True, after=page.next) == [first]
