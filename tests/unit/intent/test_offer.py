"""What can be used for an intent."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.intent.offer import Offer, Pinned
from vmtune.model.migration.intent import Means

ALL = Offer(True, True, True, True, True, 8, 4096, 1)
NAMES = (
    *("multifd", "multifd_channels", "multifd_compression", "zero_copy_send", "postcopy"),
    *("auto_converge", "dirty_limit", "downtime_limit_ms"),
)


def test_all_means_are_offered() -> None:
    assert ALL.means == set(Means)
    assert Offer(auto_converge=False).means == {Means.PAUSE}
    assert replace(ALL, auto_converge=False).means == set(Means)


@pytest.mark.parametrize(
    ("pinned", "left"),
    [
        ({}, ALL),
        ({"multifd": True}, ALL),
        ({"postcopy": False}, replace(ALL, postcopy=False)),
        ({"dirty_limit": False}, replace(ALL, dirty_ring_entries=0)),
        ({"dirty_limit": True}, replace(ALL, dirty_ring_entries=0, auto_converge=False)),
        ({"auto_converge": True}, replace(ALL, dirty_ring_entries=0, auto_converge=False)),
        ({"auto_converge": False}, replace(ALL, dirty_ring_entries=0, auto_converge=False)),
        ({"reaper_policy": "predict"}, replace(ALL, dirty_ring_entries=0)),
    ],
)
def test_what_is_set_narrows_it(pinned: Pinned, left: Offer) -> None:
    assert ALL.left_by(pinned) == left


@pytest.mark.parametrize(
    ("blocked", "left"),
    [
        ({"zero_copy_send"}, replace(ALL, zero_copy=False)),
        ({"multifd_compression", None}, replace(ALL, zstd=False)),
        ({"multifd_channels"}, replace(ALL, multifd=False)),
        ({"auto_converge"}, replace(ALL, auto_converge=False)),
        ({"dirty_limit", "downtime_limit_ms"}, replace(ALL, dirty_ring_entries=0)),
    ],
)
def test_what_a_plan_refuses_is_left_out(blocked: set[str | None], left: Offer) -> None:
    assert ALL.without(blocked) == left


def test_of_post_copy_and_channels_that_exclude_each_other_post_copy_stays() -> None:
    apart = ALL.without({"postcopy"})
    assert (apart.postcopy, apart.postcopy_with_multifd) == (True, False)
    assert not apart.without({"postcopy"}).postcopy


@given(st.lists(st.sets(st.sampled_from(NAMES)), max_size=8))
def test_it_only_ever_narrows(rounds: list[set[str | None]]) -> None:
    offer = ALL
    for blocked in rounds:
        narrower = offer.without(blocked)
        assert narrower.means <= offer.means
        assert narrower.without(blocked).without(blocked) == narrower.without(blocked)
        offer = narrower
