"""The published tables that ship: complete, and read strictly."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

from vmtune.bench.model.metrics.table import METRICS, Direction
from vmtune.engine.reaper import levels
from vmtune.errors import InvalidInput, NotFound
from vmtune.model.tunables.rows.reaper import STOCK_INTERVAL_MS
from vmtune.reference.facts import FACTS, Role
from vmtune.reference.loading import read_reference, reference, references, table_of
from vmtune.reference.tables import PRINTED_UNITS, Form, Reference, Table
from vmtune.units import Unit

SOURCES = (
    "coroutine-pool-resize",
    "coroutine-pool-global",
    "dirty-ring-reaper",
    "srcu-boot-time",
    "zero-copy-multifd",
)
TABLES = [
    pytest.param(each, table, id=f"{each.id} {table.name}")
    for each in references().values()
    for table in each.tables.values()
]


def stored(name: str) -> Any:
    return json.loads((files("vmtune.reference") / "data" / f"{name}.json").read_text("utf-8"))


def test_all_five_sources_ship() -> None:
    assert set(SOURCES) <= set(references())
    assert list(references()) == sorted(references())


@pytest.mark.parametrize("each", references().values(), ids=lambda each: each.id)
def test_a_reference_says_where_it_comes_from(each: Reference) -> None:
    assert each.source.place and each.source.title
    if each.source.checked:
        assert each.source.key
    if each.id in SOURCES:
        assert each.source.date[:4] in ("2021", "2022", "2024")
        assert each.source.checked
    assert each.setup and each.tables


@pytest.mark.parametrize(("each", "table"), TABLES)
def test_a_table_fits_the_metric_that_it_stands_beside(each: Reference, table: Table) -> None:
    assert table.rows
    unit, _ = PRINTED_UNITS[table.unit]
    if table.metric is None:
        assert table.metric_note, "no metric, and no reason"
        return
    metric = METRICS[table.metric]
    if table.form is Form.VALUES:
        assert metric.unit is unit
        assert metric.direction is table.better
    else:  # less of it is better, more less is better still
        assert metric.direction is Direction.LOWER and table.better is Direction.HIGHER


@pytest.mark.parametrize(("each", "table"), TABLES)
def test_every_row_of_a_table_knows_the_same_conditions(each: Reference, table: Table) -> None:
    scales = {
        frozenset(n for n in each.facts_of(r) if FACTS[n].role is Role.WHAT) for r in table.rows
    }
    assert len(scales) == 1


def test_the_coroutine_pool_table_has_its_ten_rows() -> None:
    table = reference("coroutine-pool-global").tables["iops"]
    at = [row.at for row in table.rows if row.arm == "new"]
    assert [(a["block_size_bytes"], a["iodepth"]) for a in at] == [
        (size, depth) for size in (4096, 131072) for depth in (1, 8, 16, 32, 64)
    ]
    first, second = table.rows[:2]
    assert (first.figure.value, second.figure.value) == (113725, 117451)


def test_the_dirty_ring_table_has_its_thirty_rows_twice() -> None:
    each = reference("dirty-ring-reaper")
    drop, speed = each.tables["drop"], each.tables["memory_update"]
    assert len(drop.rows) == len(speed.rows) == 30
    assert [(r.arm, r.at) for r in drop.rows] == [(r.arm, r.at) for r in speed.rows]
    assert speed.rows[6].figure.printed == "48.8K"
    assert speed.rows[6].figure.value == 48800


def test_what_the_controller_takes_from_the_source_is_what_the_source_has() -> None:
    constants = reference("dirty-ring-reaper").constants
    assert [int(us) // 1000 for us in constants["levels_sleep_us"]] == list(levels.SLEEP_MS)
    assert [float(x) for x in constants["levels_ratio_thresholds"]] == list(levels.THRESHOLDS)
    assert constants["levels_calm_rounds"] == (levels.CALM_ROUNDS,)
    assert constants["stock_sleep_ms"] == (STOCK_INTERVAL_MS,)


def test_what_a_source_did_not_print_follows_from_what_it_printed() -> None:
    each = reference("srcu-boot-time")
    stamps: dict[str, list[Any]] = {}
    for row in each.tables["synchronize_srcu"].rows:
        stamps.setdefault(row.arm, []).append(row.figure.value)
    costs = {row.arm: row.figure.value for row in each.tables["cost_of_8000"].rows}
    assert costs == {arm: last - first for arm, (first, last) in stamps.items()}


def test_what_is_not_there_is_told_by_name() -> None:
    with pytest.raises(NotFound) as wrong:
        reference("dirty-ring")
    assert wrong.value.problems[0].field == "id"
    assert "dirty-ring-reaper" in wrong.value.problems[0].remedy
    with pytest.raises(NotFound) as wrong:
        table_of(reference("dirty-ring-reaper"), "iops")
    assert wrong.value.problems[0].remedy == "it has drop, memory_update"


def _row(document: Any) -> Any:
    return document["tables"]["iops"]["rows"][1]


def _table(document: Any) -> Any:
    return document["tables"]["iops"]


@pytest.mark.parametrize(
    ("damage", "field", "code"),
    [
        (lambda d: d.update(id="other"), "id", "other_id"),
        (lambda d: d.update(titel="x"), "titel", "unknown_field"),
        (lambda d: d.pop("source"), "source", "missing"),
        (lambda d: d["source"].pop("place"), "source.place", "missing"),
        (lambda d: d["setup"].update(tool=3), "setup.tool", "invalid_value"),
        (lambda d: d["setup"].update(ram=3), "setup.ram", "unknown_field"),
        (lambda d: _row(d).update(arm="newer"), "tables.iops.rows.1.arm", "unknown_arm"),
        (lambda d: _row(d).pop("value"), "tables.iops.rows.1.value", "missing"),
        (lambda d: _row(d).update(low=1, high=2), "tables.iops.rows.1.value", "missing"),
        (lambda d: _row(d).update(value="many"), "tables.iops.rows.1.value", "invalid_value"),
        (lambda d: _row(d)["at"].update(rw="trim"), "tables.iops.rows.1.at.rw", "invalid_value"),
        (lambda d: _row(d)["at"].update(iodepth=-1), "tables.iops.rows.1.at.iodepth",
         "invalid_value"),
        (lambda d: _row(d)["change"].update(against="?"), "tables.iops.rows.1.change.against",
         "unknown_arm"),
        (lambda d: _table(d)["rows"].append(_row(d)), "tables.iops.rows.20", "duplicate"),
        (lambda d: _table(d).update(unit="IOPS"), "tables.iops.unit", "unknown_unit"),
        (lambda d: _table(d).update(metric="iop"), "tables.iops.metric", "unknown_metric"),
        (lambda d: _table(d).update(metric=None, metric_note=""), "tables.iops.metric_note",
         "missing"),
        (lambda d: _table(d).update(repeats=[]), "tables.iops.repeats", "missing"),
        (lambda d: _table(d)["repeats"][0].update(arms=["new"]), "tables.iops.repeats",
         "missing"),
        (lambda d: _table(d)["repeats"][0].update(measured="some"),
         "tables.iops.repeats.0.measured", "not_a_choice"),
        (lambda d: _table(d)["repeats"][0].pop("command"), "tables.iops.repeats.0.command",
         "missing"),
        (lambda d: _table(d)["repeats"][0].pop("why"), "tables.iops.repeats.0.why", "missing"),
        (lambda d: _table(d).update(better="more"), "tables.iops.better", "not_a_choice"),
        (lambda d: d["arms"]["new"]["bases"].update(old="older"), "arms.new.bases.old",
         "unknown_arm"),
        (lambda d: d["constants"].update(x="many"), "constants.x", "invalid_value"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused(damage: Callable[[Any], Any], field: str, code: str) -> None:
    document = copy.deepcopy(stored("coroutine-pool-global"))
    damage(document)
    with pytest.raises(InvalidInput) as refused:
        read_reference(document, "coroutine-pool-global")
    assert (field, code) in [(each.field, each.code) for each in refused.value.problems]
    assert all(each.message and each.remedy for each in refused.value.problems)


def test_a_range_is_in_order() -> None:
    document = stored("zero-copy-multifd")
    document["tables"]["time_reduction"]["rows"][0].update(low=30)
    with pytest.raises(InvalidInput, match="30 is above 21"):
        read_reference(document, "zero-copy-multifd")


def test_facts_have_the_names_of_tunables_and_values_of_their_kind() -> None:
    assert FACTS["dirty_ring_size_entries"].unit is Unit.ENTRIES
    for fact in FACTS.values():
        for wrong in (None, -1, "", [], True if fact.number else 1.5):
            with pytest.raises(ValueError):  # noqa: PT011 - the message depends on the kind
                fact.accept(wrong)
    link = FACTS["link_bytes_per_s"]
    texts = [link.render(rate) for rate in (12_500_000_000, 1_250_000, 40 << 20)]
    assert texts == ["100 Gbit/s", "10 Mbit/s", "40 MiB/s"]
