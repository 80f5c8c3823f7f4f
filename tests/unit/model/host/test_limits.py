"""Raising a host's limit and coming back, whoever asks, in whatever order, and interrupted."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.errors import InvalidInput
from vmtune.model.host.limits import (
    OPERATOR,
    SYSCTLS,
    Entry,
    Floor,
    Step,
    Wish,
    check_limit,
    next_step,
)

BEFORE = 65530


@dataclass
class Host:
    """A limit, its journal and sysctl.d."""

    live: int = BEFORE
    entry: Entry | None = None
    kept: int | None = None

    def reach(self, wish: Wish, stop_after: int = 9) -> None:
        """Do what is to be done, in its order, and break off after so many of the four parts."""
        step = next_step(wish, self.entry, self.live)
        if stop_after > 0:
            self.entry = step.entry
        if stop_after > 1:
            self.kept = step.keep
        if stop_after > 2 and step.write is not None:
            self.live = step.write
        if stop_after > 3 and step.done:
            self.entry = None


values = st.integers(BEFORE, BEFORE + 8)
acts = st.lists(
    st.tuples(st.sampled_from("abc"), st.none() | values, st.integers(0, 4)), max_size=12
)


@given(acts)
def test_the_greatest_claim_holds_and_the_value_of_before_comes_back(
    acts: list[tuple[str, int | None, int]],
) -> None:
    host, wish = Host(), Wish()
    for owner, value, stops in acts:
        wish = wish.without(owner) if value is None else wish.with_claim(owner, value)
        host.reach(wish, stops)  # as if it were killed in between
        host.reach(wish)
        assert host.live == max(BEFORE, wish.asked or 0)
        again = Host(host.live, host.entry, host.kept)
        again.reach(wish)
        assert again == host
    host.reach(Wish(), 2)
    host.reach(Wish())
    assert host == Host()


@given(values, values, values)
def test_what_somebody_else_sets_meanwhile_is_theirs(asked: int, theirs: int, later: int) -> None:
    host = Host()
    wish = Wish().with_claim(OPERATOR, asked)
    host.reach(wish)
    host.live = theirs
    host.reach(wish)
    assert host.live >= asked or host.live == theirs
    host.live = later
    host.reach(Wish())
    if later not in (asked, theirs):
        assert host.live == later
    assert host.entry is None
    assert host.kept is None


def test_raised_by_somebody_else_it_is_not_lowered_when_vmtune_leaves() -> None:
    host = Host()
    host.reach(Wish({"a": 70000}))
    host.live = 200_000
    host.reach(Wish({"a": 70000}))
    assert host.live == 200_000
    host.reach(Wish())
    assert host.live == 200_000


def test_it_does_not_fall_below_what_a_vm_needs() -> None:
    host = Host()
    host.reach(Wish({"a": 300_000}))
    host.reach(Wish({}, Floor(100_000, "VM x needs it")))
    assert (host.live, host.kept) == (100_000, 100_000)
    host.reach(Wish({"b": 80_000}, Floor(90_000, "VM y needs it")))
    assert host.live == 90_000
    host.reach(Wish())
    assert host == Host()


def test_a_floor_raises_nothing() -> None:
    host = Host()
    host.reach(Wish({"a": 70_000}))
    host.reach(Wish({}, Floor(1 << 20, "VM x")))
    assert host.live == 70_000


def test_enough_is_left_alone() -> None:
    assert next_step(Wish({"a": 70_000}), None, 80_000) == Step(None)


@pytest.mark.parametrize(
    ("tunable", "value", "code"),
    [
        ("vm_max_map_count", 65529, "out_of_range"),
        ("vm_max_map_count", 1 << 31, "invalid_value"),
        ("vm_max_map_count", "lots", "invalid_value"),
        ("net_core_optmem_max_bytes", 20479, "out_of_range"),
        ("vm_swappiness", 1, "unknown_limit"),
        ("multifd", 1, "unknown_limit"),
    ],
)
def test_what_is_out_of_bounds_is_refused(tunable: str, value: object, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_limit(tunable, value)
    (problem,) = refused.value.problems
    assert (problem.field, problem.code) == (f"values.{tunable}", code)
    assert problem.remedy


def test_the_bounds_themselves_are_accepted() -> None:
    for name, row in SYSCTLS.items():
        assert check_limit(name, row.least) == row.least
        assert check_limit(name, row.most) == row.most
    assert check_limit("net_core_optmem_max_bytes", "64KiB") == 65536
