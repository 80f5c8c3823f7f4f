"""Own figures next to published ones: every published figure has an entry, and each entry holds."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from docs.generator import published
from docs.generator.markdown import prose
from vmtune.errors import InvalidInput
from vmtune.reference.loading import reference, references
from vmtune.reference.results import Cell, ReferenceVerdict, cells, own_figures, read_results
from vmtune.reference.tables import Measured, Reference, Table

TABLES = [
    pytest.param(each, table, id=f"{each.id} {table.name}")
    for each in references().values()
    for table in each.tables.values()
]
POOL = "coroutine-pool-global"


def stored(name: str) -> Any:
    return json.loads((files("vmtune.reference") / "measured" / f"{name}.json").read_text("utf-8"))


def found(name: str, table: str) -> list[Cell]:
    of = reference(name)
    return list(cells(of, of.tables[table]))


@pytest.mark.parametrize(("each", "table"), TABLES)
def test_every_published_figure_has_a_verdict_with_its_reason(
    each: Reference, table: Table
) -> None:
    shown = cells(each, table)
    assert [cell.row for cell in shown] == list(table.rows)
    for cell in shown:
        assert cell.text.strip()
        if cell.own is not None:
            assert cell.own.figure.printed
            assert cell.own.measurement.command and cell.own.measurement.how
        elif cell.verdict is ReferenceVerdict.NOT_YET:
            assert cell.text.startswith("not measured yet: ")
            assert cell.text.endswith(f"; run: {cell.repeat.command}")
        else:
            assert cell.verdict is ReferenceVerdict.NOT_HERE
            assert cell.repeat.measured is Measured.NO
            assert cell.repeat.why in cell.text


@pytest.mark.parametrize(("each", "table"), TABLES)
def test_the_page_has_a_line_for_every_published_figure(each: Reference, table: Table) -> None:
    page = published.page()
    part = page.split(f"{{ #{each.id}-{table.name} }}")[1].split("\n#")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")][2:]
    assert len(lines) == len(table.rows)
    for line, cell in zip(lines, cells(each, table), strict=True):
        assert f"| {prose(cell.row.figure.printed)} |" in line
        assert prose(cell.text) in line


def test_the_page_sums_up_every_source() -> None:
    page = published.page()
    for each in references().values():
        count = sum(len(table.rows) for table in each.tables.values())
        assert re.search(rf"^\| \[{each.id}]\(#{each.id}\) \| {count} \|", page, re.M)


def test_all_figures_that_ship_are_of_published_ones() -> None:
    for (name, table), rows in own_figures().items():
        shown = [cell for cell in found(name, table) if cell.own is not None]
        assert len(shown) == len(rows)


def test_where_the_figures_were_recorded_they_stand() -> None:
    """Of a measurement that names a page, the page has the figures."""
    for rows in own_figures().values():
        for arm, _, own in rows:
            if not own.measurement.recorded:
                continue
            page = Path(own.measurement.recorded).read_text("utf-8").replace(",", "")
            numbers = [n for n in re.findall(r"[\d.]*\d", own.figure.printed.replace(",", ""))]
            if own.measurement.key != "srcu":  # computed from what the page has
                assert all(number in page for number in numbers), (arm, numbers)


def test_an_effect_here_is_compared_with_the_published_one() -> None:
    before, after = found("coroutine-pool-resize", "iops")
    assert before.verdict is ReferenceVerdict.VALUE
    assert after.verdict is ReferenceVerdict.SAME
    assert after.text == "before: 5.05 to 5.95 here, ~1.62 published: same direction, other size"
    by_depth = {
        cell.row.at["iodepth"]: cell
        for cell in found(POOL, "iops")
        if cell.row.arm == "new" and cell.row.at["block_size_bytes"] == 4096
    }
    assert by_depth[1].verdict is ReferenceVerdict.SAME
    assert by_depth[8].verdict is ReferenceVerdict.NEITHER


def test_ratios_of_medians_say_so() -> None:
    during = found("coroutine-pool-resize", "vsz")[1]
    assert during.text.startswith("before fio: 2.62 (of medians) here, 1.22 published")
    assert during.verdict is ReferenceVerdict.SAME


def test_where_a_value_of_0_left_a_difference_its_direction_counts() -> None:
    cell = next(
        each
        for each in found("dirty-ring-reaper", "drop")
        if each.own and each.row.arm == "ring 65536, optimised"
    )
    assert "stock: -14.4 to -2.1 s here, 0.270 published: same direction" in cell.text
    assert "bitmap: -9.3 to +12.6 s here, 0.333 published: no direction" in cell.text
    assert cell.verdict is ReferenceVerdict.SAME


def test_a_base_that_was_not_measured_gives_no_ratio() -> None:
    cell = next(
        each
        for each in found("srcu-boot-time", "cost_of_8000")
        if each.row.arm == "5.19-rc1 without the block"
    )
    assert cell.verdict is ReferenceVerdict.VALUE
    assert "not measured here" in cell.text


def _changed(change: Callable[[Any], None]) -> Any:
    raw = copy.deepcopy(stored(POOL))
    change(raw)
    return raw


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda raw: raw["tables"]["iops"][-1].update(arm="newer"), "not_published"),
        (lambda raw: raw["tables"]["iops"][-1]["at"].update(iodepth=2), "not_published"),
        (lambda raw: raw["tables"]["iops"].append(raw["tables"]["iops"][-1]), "not_published"),
        (lambda raw: raw["tables"].update(bandwidth=[]), "unknown_table"),
        (lambda raw: raw["tables"]["iops"][-1].update(measurement="x"), "unknown_measurement"),
        (
            lambda raw: [
                raw["tables"]["iops"][-1].pop(part) for part in ("ratios", "value", "low", "high")
            ],
            "missing",
        ),
        (lambda raw: raw["tables"]["iops"][-1]["ratios"]["old"].update(low=3), "no_interval"),
        (lambda raw: raw["tables"]["iops"][-1]["ratios"]["old"].update(low=0), "no_ratio"),
        (
            lambda raw: raw["tables"]["iops"][-1]["ratios"].update(new={"low": 1, "high": 1}),
            "unknown_base",
        ),
        (lambda raw: raw["measurements"]["guest_matrix"].pop("how"), "missing"),
    ],
)
def test_a_damaged_file_is_refused(change: Callable[[Any], None], code: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        read_results(_changed(change), POOL)
    assert code in {problem.code for problem in wrong.value.problems}


def test_a_file_of_no_reference_is_refused() -> None:
    with pytest.raises(InvalidInput) as wrong:
        read_results(stored(POOL), "dirty-ring")
    assert "unknown_reference" in {problem.code for problem in wrong.value.problems}
