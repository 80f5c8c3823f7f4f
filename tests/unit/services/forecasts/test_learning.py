"""Forecasts that are corrected by a service's own records."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.stores.databases import empty_database
from vmtune.errors import SetupError
from vmtune.forecast.held import MODEL, Figures, Happened, KeptForecast
from vmtune.forecast.learnt import FEWEST
from vmtune.forecast.prospect import Prospect
from vmtune.forecast.ranges import Range
from vmtune.model.migration.forecast_basis import Basis, Figure
from vmtune.services.forecasts.learning import Computed, Learning, corrected, corrected_by
from vmtune.storage import Store

AT = datetime(2026, 11, 21, tzinfo=UTC)
SAID = Range(800.0, 1000.0, 1200.0)
COMPUTED = Computed((0.0,) * 13, dict.fromkeys(Figure, SAID))
PROSPECT = Prospect(True, SAID, SAID, SAID, SAID, SAID, None)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    url = empty_database(tmp_path / "vmtune.db")
    with Store.open(url) as opened:
        yield opened


def held(store: Store, count: int, happened: Happened, *, model: int = MODEL) -> None:
    for number in range(count):
        vm = UUID(int=model * 1000 + number)
        id = store.migrations.begin(vm=vm, vm_name="vm", source="a", destination="b").id
        made = KeptForecast(Basis.BEFORE, AT, Figures(True, SAID), COMPUTED.document(), model=model)
        store.forecasts.keep(id, made)
        store.forecasts.settle(id, lambda _: happened, AT)


async def test_what_happened_corrects_the_next_forecast(store: Store) -> None:
    held(store, FEWEST, Happened(True, 2000.0, 500.0, None))
    learnt = await Learning(store).corrections()
    assert set(learnt) == {Figure.TOTAL, Figure.SILENCE}
    found = corrected(PROSPECT, COMPUTED, learnt, UUID(int=5))
    assert found.total_ms is not None and found.silence_ms is not None
    assert found.total_ms.likely == pytest.approx(2000)
    assert found.silence_ms.likely == pytest.approx(500)
    assert found.sent_bytes == SAID  # of it nothing is known
    assert corrected_by(COMPUTED, learnt) == {Figure.TOTAL: FEWEST, Figure.SILENCE: FEWEST}
    assert corrected_by(None, learnt) == {}


async def test_too_few_and_another_model_tell_nothing(store: Store) -> None:
    held(store, FEWEST - 1, Happened(True, 2000.0))
    held(store, FEWEST, Happened(True, 2000.0), model=99)
    assert await Learning(store).corrections() == {}


async def test_without_the_database_what_is_known_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object) -> object:
        raise SetupError("the database is locked")

    monkeypatch.setattr(store.forecasts, "to_learn_from", locked)
    assert await Learning(store).corrections() == {}
