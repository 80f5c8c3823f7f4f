"""The settings that an intent begins with."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.intent.test_feasible import MIB, basis
from vmtune.intent.bounds import highest_limit_ms
from vmtune.intent.choosing import choose
from vmtune.intent.offer import Offer, Pinned
from vmtune.model.migration.intent import HARMLESS, Intent, Means
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.rules import accept_values
from vmtune.model.tunables.tunable import Value

ALL = Offer(True, True, True, True, True, 8)


def values(intent: Intent, dirty: float, path: float = 100, offer: Offer = ALL) -> dict[str, Value]:
    return {c.tunable: c.value for c in choose(intent, basis(dirty, path), offer).choices}


def test_the_first_downtime_limit_is_low() -> None:
    assert values(Intent(500), 0) == {"downtime_limit_ms": 95}


def test_throttling_is_prepared_and_held_back() -> None:
    found = values(Intent(500, 60, 20, may=(Means.THROTTLE,)), 0)
    assert (found["auto_converge"], found["cpu_throttle_initial_percent"]) == (True, 1)
    assert "auto_converge" not in values(Intent(500, 60, 20, may=()), 0)


def test_compression_is_chosen_where_it_is_needed() -> None:
    needs = Intent(100, 9)
    assert values(needs, 0)["multifd_compression"] == "zstd"
    assert "multifd" not in values(Intent(100, 60), 0)
    assert "multifd" not in values(needs, 0, offer=Offer(True, True, free_cores=1))
    assert "multifd" not in values(needs, 0, offer=Offer(True, True))
    assert "multifd" not in values(Intent(100, 9, may=()), 0)


def test_a_fast_path_gets_as_many_channels_as_cores_are_free() -> None:
    found = values(Intent(100), 0, path=10_000)
    assert (found["multifd_channels"], found["zero_copy_send"]) == (8, True)
    assert "zero_copy_send" not in values(Intent(100, may=()), 0, path=10_000)


def test_postcopy_and_channels_are_not_mixed_where_qemu_does_not_take_both() -> None:
    intent = Intent(100, may=(Means.POSTCOPY, *HARMLESS))
    apart = Offer(True, True, True, True, False, 8)
    assert values(intent, 0, 10_000, apart) == {"downtime_limit_ms": 15, "postcopy": True}


@pytest.mark.parametrize(
    ("asked", "is_set"), [(125_000_000, 119 * MIB), (100 * MIB, 100 * MIB), (1_000_000, 1_000_000)]
)
def test_a_bandwidth_is_set_in_whole_mib_as_libvirt_takes_it(asked: int, is_set: int) -> None:
    """1 Gbit/s is none; it is the most that keeps the intent's."""
    found = values(Intent(500, max_bandwidth_bytes_per_s=asked), 0)
    assert found["max_bandwidth_bytes_per_s"] == is_set
    assert "copy_bandwidth_bytes_per_s" not in found


def test_disks_that_are_copied_at_a_time_share_the_bandwidth() -> None:
    intent = Intent(500, max_bandwidth_bytes_per_s=90 * MIB)
    found = values(intent, 0, offer=replace(ALL, copies=3))
    assert found["copy_bandwidth_bytes_per_s"] == 30 * MIB
    assert "copy_bandwidth_bytes_per_s" not in values(intent, 0, offer=replace(ALL, copies=1))


def test_what_the_user_sets_stays_and_is_named() -> None:
    pinned = {"downtime_limit_ms": 9, "max_postcopy_bandwidth_bytes_per_s": 9}
    found = choose(Intent(500, max_bandwidth_bytes_per_s=9), None, ALL, pinned)
    assert [c.tunable for c in found.choices] == ["max_bandwidth_bytes_per_s"]
    assert found.pinned == ("downtime_limit_ms",)
    assert found.judgement is None


@pytest.mark.parametrize(
    ("pinned", "left"),
    [
        ({"compress": None}, {"multifd", "multifd_channels", "zero_copy_send", "postcopy"}),
        ({"multifd": False}, {"postcopy"}),
        ({"tls": True}, {"multifd", "multifd_channels", "postcopy"}),
        (
            {"multifd": True, "multifd_compression": "zstd"},
            {"multifd_channels", "postcopy"},
        ),
        ({"xbzrle": True}, {"postcopy"}),
        ({"compress": True}, set()),
    ],
)
def test_what_contradicts_the_users_values_is_not_chosen(pinned: Pinned, left: set[str]) -> None:
    """The path is fast enough for channels and zero-copy."""
    intent = Intent(100, may=(Means.POSTCOPY, *HARMLESS))
    found = choose(intent, basis(0, 10_000), ALL, pinned)
    chosen = {choice.tunable: choice.value for choice in found.choices}
    values = {name: value for name, value in pinned.items() if value is not None}
    assert accept_values({**values, **chosen}, BUILT_IN)
    assert set(chosen) - {"downtime_limit_ms"} == left


def test_compression_that_spares_the_guest_a_throttle_says_so() -> None:
    intent = Intent(300, 60, 80, may=(Means.THROTTLE, Means.COMPRESS))
    (reason,) = (
        c.reason for c in choose(intent, basis(150), ALL).choices
        if c.tunable == "multifd_compression"
    )  # fmt: skip
    assert reason == "compressed, the intent is expected to be kept without throttle"


@settings(max_examples=60, deadline=None)
@given(
    st.none() | st.integers(1, 5000),
    st.integers(6, 600),
    st.none() | st.integers(1, 99),
    st.sets(st.sampled_from([m for m in Means if m is not Means.PAUSE])),
    st.builds(Offer, *[st.booleans()] * 5, st.none() | st.floats(0, 64)),
    st.floats(0, 400),
    st.sampled_from([20.0, 100.0, 5000.0]),
)
def test_choices_fit_together_and_have_reasons(
    silence: int | None,
    deadline: int,
    slowdown: int | None,
    may: set[Means],
    offer: Offer,
    dirty: float,
    path: float,
) -> None:
    intent = Intent(silence, deadline, slowdown, may=tuple(m for m in Means if m in may))
    found = choose(intent, basis(dirty, path), offer)
    chosen = {choice.tunable: choice.value for choice in found.choices}
    assert accept_values(chosen, BUILT_IN) == chosen
    assert all(choice.reason for choice in found.choices)
    assert int(chosen["downtime_limit_ms"]) <= highest_limit_ms(intent)
    assert not chosen.get("multifd") or offer.multifd
    assert chosen.get("multifd_compression") is None or Means.COMPRESS in may
    assert not chosen.get("postcopy") or Means.POSTCOPY in may
