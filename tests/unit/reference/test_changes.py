"""Changes and ratios: recomputed, and held against the print."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.reference.changes import (
    Compared,
    Ratio,
    change_percent,
    compared,
    decimals,
    held,
    ratio,
    signed_percent,
)
from vmtune.reference.loading import reference, references
from vmtune.reference.tables import Figure, Form, Reference

figures = st.decimals(min_value="0.001", max_value=10**9, places=3)


def figure(low: Decimal | int, high: Decimal | int | None = None) -> Figure:
    return Figure("", Decimal(low), Decimal(low if high is None else high))


def test_the_change_column_of_the_coroutine_pool_comes_out_to_the_printed_decimal() -> None:
    table = reference("coroutine-pool-global").tables["iops"]
    changes = [held(table, row) for row in table.rows if row.arm == "new"]
    assert [change and (change.recomputed, change.agrees) for change in changes] == [
        (printed, True)
        for printed in (
            "+3.3%", "+2.9%", "+1.1%", "+1.3%", "+1.4%",
            "-0.3%", "+0.0%", "+0.0%", "+0.0%", "+0.0%",
        )
    ]  # fmt: skip
    assert [change and change.printed for change in changes] == [
        change and change.recomputed for change in changes
    ]


def test_no_row_of_it_depends_on_how_a_half_is_rounded() -> None:
    table = reference("coroutine-pool-global").tables["iops"]
    for old, new in zip(table.rows[::2], table.rows[1::2], strict=True):
        assert old.figure.value is not None and new.figure.value is not None
        exact = (new.figure.value / old.figure.value - 1) * 1000
        assert abs(abs(exact % 1) - Decimal("0.5")) > Decimal("0.01")


def test_a_print_that_does_not_come_out_is_told() -> None:
    table = reference("coroutine-pool-resize").tables["vsz"]
    before, during, after = (held(table, row) for row in table.rows)
    assert before is None
    assert during is not None and after is not None
    assert (during.printed, during.recomputed, during.agrees) == (
        "+ ~100 MB",
        "+1,042,420 KB",
        False,
    )
    assert (after.recomputed, after.agrees) == ("-1,052,672 KB", False)


def test_all_thirty_rows_of_the_dirty_ring_have_their_ratios() -> None:
    each = reference("dirty-ring-reaper")
    for name in ("drop", "memory_update"):
        table = each.tables[name]
        for row in table.rows:
            found = {one.title: one for one in compared(each, table, row)}
            assert list(found) == (["bitmap"] if row.arm == "bitmap" else ["bitmap", "stock"])
            assert all(one.ratio is not None for one in found.values())
    third = compared(each, each.tables["drop"], each.tables["drop"].rows[2])
    assert [(one.base, one.ratio and one.ratio.text) for one in third] == [
        ("bitmap", "0.306"),  # 5.5 by 18
        ("ring 4096, stock", "0.239"),  # 5.5 by 23
    ]


@pytest.mark.parametrize("each", references().values(), ids=lambda each: each.id)
def test_ratios_are_those_of_the_figures(each: Reference) -> None:
    for table in each.tables.values():
        if table.form is not Form.VALUES:
            continue
        for row in table.rows:
            for one in compared(each, table, row):
                if one.ratio is None:
                    continue
                base = next(r for r in table.rows if r.arm == one.base and r.at == row.at)
                assert base.figure.value is not None and row.figure.value is not None
                assert float(one.ratio.low) == pytest.approx(
                    float(row.figure.value) / float(base.figure.value)
                )


def test_effects_become_ratios() -> None:
    each = reference("zero-copy-multifd")
    reduction, sendmsg = each.tables["time_reduction"], each.tables["sendmsg"]
    texts = [
        one.ratio.text
        for table in (reduction, sendmsg)
        for row in table.rows
        for one in compared(each, table, row)
        if one.ratio is not None
    ]
    assert texts == ["0.790 to 0.900", "~0.750", "~0.340", "0.780 to 0.870", "0.0667"]


def test_what_was_never_reached_has_no_ratio_and_stamps_have_none() -> None:
    each = reference("dirty-limit-convergence")
    table = each.tables["total_time"]
    assert compared(each, table, table.rows[-1]) == (
        Compared("auto-converge", "auto-converge", None),
    )
    srcu = reference("srcu-boot-time")
    stamps = srcu.tables["synchronize_srcu"]
    assert [compared(srcu, stamps, row) for row in stamps.rows] == [()] * 8


def test_an_arm_is_its_own_base_exactly() -> None:
    each = reference("dirty-ring-reaper")
    table = each.tables["memory_update"]
    stock = next(row for row in table.rows if row.figure.printed == "48.8K")
    assert compared(each, table, stock)[1].ratio == Ratio(Decimal(1), Decimal(1))


@given(figures, figures)
def test_a_ratio_and_a_change_say_the_same(base: Decimal, value: Decimal) -> None:
    found = ratio(figure(value), figure(base))
    assert found is not None
    percent = change_percent(base, value, 1)
    assert abs((found.low - 1) * 100 - percent) <= Decimal("0.05") + abs(percent) * Decimal("1e-20")
    assert signed_percent(percent)[0] == ("-" if percent < 0 else "+")
    assert decimals(signed_percent(percent)) == 1


@given(st.lists(figures, min_size=2, max_size=2), st.lists(figures, min_size=2, max_size=2))
def test_the_ratio_of_ranges_has_every_ratio_within(
    arm: list[Decimal], base: list[Decimal]
) -> None:
    found = ratio(figure(min(arm), max(arm)), figure(min(base), max(base)))
    assert found is not None
    assert all(found.low <= a / b <= found.high for a in arm for b in base)


def test_rounding_is_to_the_nearest_and_half_way_away_from_zero() -> None:
    assert change_percent(Decimal(1000), Decimal("1000.5"), 1) == Decimal("0.1")
    assert change_percent(Decimal(1000), Decimal("999.5"), 1) == Decimal("-0.1")
    assert signed_percent(change_percent(Decimal(10000), Decimal(9999), 1)) == "+0.0%"
    assert change_percent(Decimal(3), Decimal(4), 0) == 33
    with pytest.raises(ValueError, match="from something"):
        change_percent(Decimal(0), Decimal(4), 0)
    assert ratio(figure(1), figure(0)) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [("22.676", "22.7"), ("1", "1.00"), ("0.0666", "0.0666"), ("0.23913", "0.239"),
     ("1234.5", "1,235"), ("0", "0")],
)  # fmt: skip
def test_ratios_are_told_to_three_figures(value: str, text: str) -> None:
    assert Ratio(Decimal(value), Decimal(value)).text == text
    assert Ratio(Decimal(value), Decimal(value), approximate=True).text == f"~{text}"
