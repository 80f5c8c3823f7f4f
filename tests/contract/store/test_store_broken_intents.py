"""Migrations by whether they kept their intent."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

from vmtune.model.migration.intent import Intent
from vmtune.model.migration.record import MigrationState, Totals
from vmtune.model.migration.stated_intent import StatedIntent
from vmtune.storage import Store


def test_migrations_are_filtered_by_whether_they_kept_their_intent(store: Store) -> None:
    def completed(broken: bool | None) -> UUID:
        stated = None if broken is None else StatedIntent(Intent(500), {}, (), "", broken=broken)
        begun = store.migrations.begin(
            vm=uuid4(), vm_name="guest", source="a", destination="z", intent=stated
        )
        for state in (MigrationState.PREPARING, MigrationState.STARTING):
            store.migrations.update(begun.id, state=state)
        totals = Totals(9000, 9, None, 1 << 20, 2)
        store.migrations.update(begun.id, state=MigrationState.COMPLETED, totals=totals)
        return begun.id

    kept, broken, none = (completed(each) for each in (False, True, None))

    def listed(which: bool | None) -> list[UUID]:
        return [each.id for each in store.migrations.list(intent_broken=which).items]

    assert listed(True) == [broken]
    assert listed(False) == [none, kept]
    assert listed(None) == [none, broken, kept]
    moves = store.overview.standing(datetime.now(UTC), 5).moves
    assert {move.id: move.intent_broken for move in moves} == {
        kept: False, broken: True, none: False,
    }  # fmt: skip
