"""What of a profile a VM is given on its arrival."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vmtune.model.findings.table import FINDINGS
from vmtune.model.migration.arriving import GIVEN_ON_ARRIVAL, NOT_ALLOWED, OLD_QEMU_ONLY, split
from vmtune.model.plan.situation import Permissions
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Route, Side

ALLOWED, NOT = Permissions(destination_command_line=True), Permissions()
VALUES = {
    "announce_rounds": 8,
    "max_postcopy_bandwidth_bytes_per_s": 1 << 20,
    "decompress_threads": 4,
    "multifd": True,
    "multifd_channels": 4,
    "downtime_limit_ms": 200,
    "dirty_ring_size_entries": 4096,
}


def test_the_destinations_values_are_given_where_the_operator_allows_it() -> None:
    given, withheld = split(VALUES, ALLOWED)
    assert given == {"announce_rounds": 8, "max_postcopy_bandwidth_bytes_per_s": 1 << 20}
    assert withheld == {"decompress_threads": OLD_QEMU_ONLY}
    given, withheld = split(VALUES, NOT)
    assert given == {}
    assert withheld == {
        "announce_rounds": NOT_ALLOWED,
        "max_postcopy_bandwidth_bytes_per_s": NOT_ALLOWED,
        "decompress_threads": OLD_QEMU_ONLY,
    }
    assert NOT_ALLOWED in FINDINGS


def test_nothing_that_both_sides_must_agree_on_or_that_libvirt_refuses() -> None:
    for name in GIVEN_ON_ARRIVAL:
        row = BUILT_IN[name]
        assert row.side is not Side.BOTH
        assert row.route is not Route.BOOT
        assert not name.startswith(("multifd", "tls", "dirty_ring"))
    assert set(GIVEN_ON_ARRIVAL) == {
        "announce_initial_ms", "announce_max_ms", "announce_rounds", "announce_step_ms",
        "max_postcopy_bandwidth_bytes_per_s",
    }  # fmt: skip


@given(st.sets(st.sampled_from(list(BUILT_IN))))
def test_nothing_is_given_without_leave(names: set[str]) -> None:
    values = dict.fromkeys(names, 1)
    given, withheld = split(values, NOT)
    assert not given
    allowed, left = split(values, ALLOWED)
    assert set(withheld) == set(allowed) | set(left)
    assert set(allowed) == names & set(GIVEN_ON_ARRIVAL)
