"""Found changes are kept, and what people decided about them stays."""

from __future__ import annotations

import statistics
from uuid import UUID

import pytest

from tests.support.benchmarks.measured import PLACE, noisy, put
from vmtune.bench.model.trend.change import Triage
from vmtune.bench.services.comparisons.exporting import history_csv
from vmtune.bench.services.comparisons.history import HistoryService
from vmtune.bench.services.trends import TrendService
from vmtune.errors import NotFound
from vmtune.storage import Store
from vmtune.storage.repositories.audit_log import AuditFilter

NEWER = {**PLACE, "qemu": {"version": "10.1.0"}}


@pytest.fixture
def trends(store: Store) -> TrendService:
    return TrendService(store, HistoryService(store))


async def test_a_change_is_kept_and_its_triage_stays(store: Store, trends: TrendService) -> None:
    put(store, "old", noisy(1000, 20, 1))
    put(store, "new", noisy(1500, 10, 2), after=60)
    await trends.look()
    (found,) = await trends.changes((), 10)
    assert (found.worse, found.triage, found.kind.value) == (True, Triage.OPEN, "step")
    assert store.tallies.now().untriaged == 1
    await trends.triage(found.id, Triage.KNOWN, "the new kernel", "ann")
    put(store, "newer", noisy(1500, 10, 3), after=120)
    await trends.look()
    (again,) = await trends.changes((), 10)
    assert (again.id, again.triage, again.note) == (found.id, Triage.KNOWN, "the new kernel")
    assert again.triaged_by == "ann"
    assert store.tallies.now().untriaged == 0
    (setup,) = (await trends.history.history("q/busy", "total_time_ms")).strands
    (shift,) = setup.changes or ()
    assert shift.found == again
    assert await trends.changes((Triage.OPEN,), 10) == ()


async def test_a_decision_while_it_is_looked_for_stays(store: Store, trends: TrendService) -> None:
    """The look began before it, and stores what it found after it."""
    put(store, "old", noisy(1000, 20, 1))
    put(store, "new", noisy(1500, 10, 2), after=60)
    await trends.look()
    (found,) = await trends.changes((), 10)
    await trends.triage(found.id, Triage.KNOWN, "the new kernel", "ann")
    store.found_changes.keep(type(found)(**{**_fields(found), "text": "1.4 times"}))
    (kept,) = await trends.changes((), 10)
    assert (kept.text, kept.triage, kept.note) == ("1.4 times", Triage.KNOWN, "the new kernel")


async def test_what_is_no_longer_found_is_dropped_unless_it_was_triaged(
    store: Store, trends: TrendService
) -> None:
    put(store, "old", noisy(1000, 20, 1))
    put(store, "new", noisy(1500, 10, 2), after=60)
    await trends.look()
    (found,) = await trends.changes((), 10)
    store.found_changes.keep(
        type(found)(**{**_fields(found), "id": UUID(int=9), "run": UUID(int=8)})
    )
    put(store, "newer", noisy(1500, 10, 3), after=120)
    await trends.look()
    assert [each.id for each in await trends.changes((), 10)] == [found.id]


def _fields(record: object) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__slots__}  # type: ignore[attr-defined]


async def test_a_decision_needs_a_change(trends: TrendService) -> None:
    with pytest.raises(NotFound, match="no change"):
        await trends.triage(UUID(int=1), Triage.KNOWN, "", "ann")


async def test_triage_is_in_the_audit_log(store: Store, trends: TrendService) -> None:
    put(store, "old", noisy(1000, 20, 1))
    put(store, "new", noisy(1500, 10, 2), after=60)
    await trends.look()
    (found,) = await trends.changes((), 10)
    await trends.triage(found.id, Triage.ACCEPTED, "as it should be", "ann")
    newest = store.audit.list(AuditFilter(), limit=1).items[0]
    (change,) = newest.changes
    assert (change.what, change.key) == ("change", str(found.id))


@pytest.mark.parametrize("away", [-4, 0, 4])
async def test_a_cause_is_looked_for_within_five_runs(store: Store, away: int) -> None:
    """The environment becomes another some runs before or after the values do."""
    values = [*noisy(1000, 20, 1), *noisy(1500, 20, 2)]
    put(store, "a", values[: 20 + away])
    put(store, "b", values[20 + away :], environment=NEWER, fingerprint="there", after=60)
    (setup,) = (await HistoryService(store).history("q/busy", "total_time_ms")).strands
    (shift,) = setup.changes or ()
    assert shift.environment == ("qemu.version: 10.0.2 before, 10.1.0 since",)
    assert abs(shift.environment_after - away) <= 1


async def test_a_cause_far_away_is_none(store: Store) -> None:
    values = [*noisy(1000, 20, 1), *noisy(1500, 20, 2)]
    put(store, "a", values[:10])
    put(store, "b", values[10:], environment=NEWER, fingerprint="there", after=60)
    (setup,) = (await HistoryService(store).history("q/busy", "total_time_ms")).strands
    (shift,) = setup.changes or ()
    assert shift.environment == ()


async def test_ramps_spreads_and_signs_are_told_as_such(store: Store) -> None:
    steady = noisy(1000, 60, 5)
    ramp = [v * (1 + 0.5 * min(1, max(0, (n - 15) / 30))) for n, v in enumerate(steady)]
    put(store, "ramp", ramp, scenario="q/ramp")
    level = statistics.median(steady[:30])
    wide = [*steady[:30], *(level * (v / level) ** 5 for v in reversed(steady[:30]))]
    put(store, "wide", wide, scenario="q/wide")
    put(store, "sign", [*steady[:50], *(v * 1.2 for v in steady[50:53])], scenario="q/sign")
    history = HistoryService(store).history
    ((ramped,), (spread,), (hinted,)) = [
        (await history(name, "total_time_ms")).strands for name in ("q/ramp", "q/wide", "q/sign")
    ]
    (shift,) = ramped.changes or ()
    assert (shift.kind.value, shift.worse) == ("ramp", True)
    assert shift.until is not None and shift.until > shift.since
    assert "gradually" in shift.text
    (wider,) = spread.changes or ()
    assert (wider.kind.value, wider.worse) == ("spread", False)
    assert "the level stayed" in wider.text
    assert hinted.changes == ()
    assert hinted.sign is not None
    assert hinted.sign.ratio == pytest.approx(1.2, rel=0.1)
    assert "provisional" in hinted.sign.text


async def test_a_history_is_written_as_csv(store: Store) -> None:
    put(store, "a", [1000.0, 1001.5, 999.25])
    setup = await HistoryService(store).setup("q/busy", "total_time_ms")
    file = history_csv("q/busy", "total_time_ms", setup)
    lines = file.content.decode().splitlines()
    assert lines[0] == "time,run,environment,at_limit,total_time_ms"
    assert lines[2].startswith("2026-11-01T00:01:00.000+00:00,")
    assert lines[2].endswith(",here,0,1001.5")
    with pytest.raises(NotFound, match="no setup"):
        await HistoryService(store).setup("q/busy", "total_time_ms", "00000000")
