"""Which published figure stands beside which own one: by properties, and by example."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vmtune.bench.model.metrics.table import Direction
from vmtune.reference.changes import Ratio
from vmtune.reference.facts import FACTS, Facts, FactValue, Role
from vmtune.reference.loading import reference, references
from vmtune.reference.matching import (
    Agreement,
    EffectMatch,
    Match,
    NoMatch,
    OwnEffect,
    effects,
    match_cell,
    match_effect,
    stand,
)
from vmtune.reference.tables import Reference, Table

GIB = 1 << 30
MIB = 1 << 20
WHAT = [name for name, fact in FACTS.items() if fact.role is Role.WHAT]
SCALE = [name for name, fact in FACTS.items() if fact.role is Role.SCALE]
TABLES = [(each, table) for each in references().values() for table in each.tables.values()]
WITH_EFFECTS = [(each, table) for each, table in TABLES if next(effects(each, table), None)]


def value_of(name: str) -> st.SearchStrategy[FactValue]:
    fact = FACTS[name]
    if fact.switch:
        return st.booleans()
    if fact.number:
        return st.integers(0, 1 << 45)
    return st.sampled_from(fact.choices) if fact.choices else st.sampled_from(("one", "two"))


@st.composite
def own_facts(draw: st.DrawFn, near: Facts | None = None) -> Facts:
    """Facts of an own run: made up, or those of a published figure with some changed."""
    facts = dict(near or {})
    for name in draw(st.sets(st.sampled_from(list(FACTS)), max_size=6)):
        facts[name] = draw(value_of(name))
    for name in draw(st.sets(st.sampled_from(list(FACTS)), max_size=2)):
        facts.pop(name, None)
    return facts


@st.composite
def near_a_cell(draw: st.DrawFn) -> tuple[Reference, Table, Facts]:
    each, table = draw(st.sampled_from(TABLES))
    row = draw(st.sampled_from(table.rows))
    return each, table, draw(own_facts(each.facts_of(row)))


@given(near_a_cell())
def test_what_was_measured_is_the_same_in_every_match(case: tuple[Reference, Table, Facts]) -> None:
    each, table, own = case
    found = match_cell(each, table, own)
    same = [
        row
        for row in table.rows
        if all(own.get(n) == v for n, v in each.facts_of(row).items() if n in WHAT)
    ]
    if isinstance(found, NoMatch):
        assert not same
        assert found.reason
    else:
        assert found.row in same


@given(near_a_cell())
def test_every_difference_is_told_and_nothing_else(case: tuple[Reference, Table, Facts]) -> None:
    each, table, own = case
    found = match_cell(each, table, own)
    assume(isinstance(found, Match))
    assert isinstance(found, Match)
    published = each.facts_of(found.row)
    unused = {n for n, v in own.items() if n not in published and (v is False or v == "none")}
    differing = {n for n in {*published, *own} if published.get(n) != own.get(n)} - unused
    told = {difference.fact: difference for difference in found.differences}
    assert set(told) == differing
    assert len(told) == len(found.differences)
    for name, difference in told.items():
        assert bool(difference.own) == (name in own)
        assert bool(difference.published) == (name in published)
        assert FACTS[name].title in difference.text
        if difference.factor is not None:
            here, there = own[name], published[name]
            assert isinstance(here, int) and isinstance(there, int)
            assert difference.factor == pytest.approx(here / there)


@given(near_a_cell())
def test_no_other_figure_is_nearer(case: tuple[Reference, Table, Facts]) -> None:
    each, table, own = case
    found = match_cell(each, table, own)
    assume(isinstance(found, Match))
    assert isinstance(found, Match)
    assert found.distance >= 0
    for row in table.rows:
        alone = match_cell(each, _only(table, row), own)
        if isinstance(alone, Match):
            assert (found.unknown, found.distance) <= (alone.unknown, alone.distance)


@given(near_a_cell(), st.randoms(use_true_random=False))
def test_the_order_of_the_table_matters_only_between_equals(
    case: tuple[Reference, Table, Facts], random: Any
) -> None:
    each, table, own = case
    rows = list(table.rows)
    random.shuffle(rows)
    one, two = match_cell(each, table, own), match_cell(each, _only(table, *rows), own)
    if isinstance(one, Match):
        assert isinstance(two, Match)
        assert (one.unknown, one.distance) == (two.unknown, two.distance)
    else:
        assert isinstance(two, NoMatch)


@pytest.mark.parametrize(
    ("each", "table"), [pytest.param(e, t, id=f"{e.id} {t.name}") for e, t in TABLES]
)
def test_a_figure_stands_beside_itself(each: Reference, table: Table) -> None:
    for row in table.rows:
        found = match_cell(each, table, each.facts_of(row))
        assert isinstance(found, Match)
        assert (found.unknown, found.distance) == (0, 0)
        # Arms that differ in nothing but what cannot be compared share their place.
        assert {d.fact for d in found.differences} <= {"kernel"}


@pytest.mark.parametrize(
    ("each", "table"), [pytest.param(e, t, id=f"{e.id} {t.name}") for e, t in WITH_EFFECTS]
)
def test_an_effect_stands_beside_itself(each: Reference, table: Table) -> None:
    for effect in effects(each, table):
        found = match_effect(each, table, effect.base, effect.arm)
        assert isinstance(found, EffectMatch)
        assert found.distance == 0
        assert {d.fact for d in found.differences} <= {"kernel"}


@given(st.sampled_from(WITH_EFFECTS), st.data())
def test_an_effect_is_of_the_same_two_arms(case: tuple[Reference, Table], data: Any) -> None:
    each, table = case
    effect = data.draw(st.sampled_from(list(effects(each, table))))
    base, arm = data.draw(own_facts(effect.base)), data.draw(own_facts(effect.arm))
    found = match_effect(each, table, base, arm)
    if isinstance(found, NoMatch):
        assert found.reason
        return
    for published, own in ((found.published.base, base), (found.published.arm, arm)):
        assert all(own[name] == value for name, value in published.items() if name in WHAT)
    assert len(set(found.differences)) == len(found.differences)


def _only(table: Table, *rows: Any) -> Table:
    return type(table)(
        **{name: getattr(table, name) for name in table.__dataclass_fields__} | {"rows": rows}
    )


def lab(reaping: str, **more: FactValue) -> Facts:
    """A run on a small machine, as the drop-duration matrix has it."""
    ring: Facts = {} if reaping == "none" else {"dirty_ring_size_entries": 65536}
    return {
        "reaping": reaping,
        "vcpus": 1,
        "memory_bytes": 512 * MIB,
        "region_bytes": 384 * MIB,
        "zero_copy_send": False,
        "multifd_channels": 1,
        **ring,
        **more,
    }


def test_a_small_machine_finds_its_place_in_the_dirty_ring_table() -> None:
    each = reference("dirty-ring-reaper")
    table = each.tables["drop"]
    reaped = lab("adaptive", reaper_policy="predict", reaper_place="outside QEMU")
    found = match_cell(each, table, reaped)
    assert isinstance(found, Match)
    assert (found.row.arm, found.row.at["vcpus"]) == ("ring 65536, optimised", 2)
    assert [difference.text for difference in found.differences] == [
        "vCPUs: 1 here, 2 there (0.5 times)",
        "VM memory: 512 MiB here, 4 GiB there (0.125 times)",
        "Memory written: 384 MiB here, 3 GiB there (0.125 times)",
        "Channels: 1 here, the source does not say",
        "Measured with: not recorded here, QEMU guestperf there",
        "Reaper policy: predict here, levels there",
        "Reaper runs: outside QEMU here, inside QEMU there",
    ]
    effect = match_effect(each, table, lab("stock"), reaped)
    assert isinstance(effect, EffectMatch)
    assert effect.published.ratio.text == "0.270"
    assert len(effect.differences) == 7
    standing = stand(table, effect, OwnEffect(0.4, 0.31, 0.52))
    assert standing.agreement is Agreement.SAME
    assert standing.text == ("same direction; own ratio 0.4 (0.31 to 0.52), published ratio 0.270")


def test_the_larger_region_is_nearer_to_the_larger_published_one() -> None:
    each = reference("dirty-ring-reaper")
    table = each.tables["drop"]
    for region, nearest in ((384 * MIB, 3), (2 * GIB, 3), (5 * GIB, 6), (64 * GIB, 30)):
        large = lab("none", vcpus=8, memory_bytes=32 * GIB, region_bytes=region)
        found = match_cell(each, table, large)
        assert isinstance(found, Match)
        assert found.row.at["region_bytes"] == nearest * GIB
        assert found.distance == pytest.approx(abs(math.log2(region / (nearest * GIB))))


def test_a_figure_of_which_more_is_known_goes_before_a_nearer_one() -> None:
    each = reference("dirty-ring-reaper")
    far = each.tables["drop"].rows[0]
    vague = replace(far, at={"vcpus": 2, "memory_bytes": 4 * GIB})
    own = lab("none", vcpus=2, memory_bytes=4 * GIB)
    found = match_cell(each, _only(each.tables["drop"], vague, far), own)
    assert isinstance(found, Match)
    assert (found.row, found.unknown) == (far, 1)  # of both, the channels are not known
    alone = match_cell(each, _only(each.tables["drop"], vague), own)
    assert isinstance(alone, Match)
    assert (alone.unknown, alone.distance) == (2, 0)


def test_another_thing_does_not_match_and_the_reason_names_it() -> None:
    each = reference("zero-copy-multifd")
    table = each.tables["time_reduction"]
    own: dict[str, FactValue] = {"zero_copy_send": True, "multifd_channels": 4}
    assert match_cell(each, table, own) == NoMatch("Host load was not recorded here")
    busy = {**own, "host_load": "busy"}
    found = match_cell(each, table, busy)
    assert isinstance(found, Match)
    assert found.row.figure.printed == "~25%"
    copied = {**busy, "zero_copy_send": False}
    assert match_cell(each, table, copied) == NoMatch("Zero copy is off here")
    effect = match_effect(each, table, copied, busy)
    assert isinstance(effect, EffectMatch)
    assert effect.published.ratio.text == "~0.750"
    assert match_effect(each, table, busy, copied) == NoMatch("Zero copy is on here")


def test_a_table_without_ratios_has_no_effects() -> None:
    each = reference("srcu-boot-time")
    table = each.tables["synchronize_srcu"]
    assert match_effect(each, table, {}, {}) == NoMatch("the table has no ratios")


@pytest.mark.parametrize(
    ("own", "agreement"),
    [
        ((0.5, 0.4, 0.6), Agreement.SAME),
        ((1.5, 1.4, 1.6), Agreement.OPPOSITE),
        ((0.9, 0.7, 1.1), Agreement.NEITHER),
        ((1.0, 1.0, 1.0), Agreement.NEITHER),
        ((0.99, 0.98, 1.0), Agreement.NEITHER),
    ],
)
def test_a_direction_is_only_what_the_whole_interval_has(
    own: tuple[float, float, float], agreement: Agreement
) -> None:
    each = reference("zero-copy-multifd")
    table = each.tables["time_reduction"]
    effect = next(effects(each, table))
    match = EffectMatch(effect, (), 0.0)
    assert stand(table, match, OwnEffect(*own)).agreement is agreement
    assert "equal" not in stand(table, match, OwnEffect(*own)).text


@given(
    st.floats(0.01, 100), st.floats(0.01, 100), st.floats(0.01, 100), st.sampled_from(WITH_EFFECTS)
)
def test_standing_turned_round_says_the_same(
    a: float, b: float, c: float, case: tuple[Reference, Table]
) -> None:
    each, table = case
    low, middle, high = sorted((a, b, c))
    effect = next(effects(each, table))
    match = EffectMatch(effect, (), 0.0)
    one = stand(table, match, OwnEffect(middle, low, high))
    turned = EffectMatch(
        type(effect)(
            effect.arm, effect.base, effect.row.arm, effect.row,
            Ratio(1 / effect.ratio.high, 1 / effect.ratio.low, effect.ratio.approximate),
        ), (), 0.0,
    )  # fmt: skip
    two = stand(table, turned, OwnEffect(1 / middle, 1 / high, 1 / low))
    assert one.agreement is two.agreement
    assert table.better is not Direction.NONE
