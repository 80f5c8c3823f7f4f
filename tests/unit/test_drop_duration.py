"""Which guests and rings the benchmark of the drop duration measures."""

from __future__ import annotations

from tests.perf.rings.drop_duration import available_mib, chosen, guests

GIB_MIB = 1024


def test_the_larger_guests_come_with_rings_of_every_size() -> None:
    small, middle, large = guests(full=False)
    assert [small.name, middle.name, large.name] == ["3G", "4G", "8G"]
    assert len(large.scenarios) == 1 + 2 * 7
    assert 2 * 5 * GIB_MIB < large.needs_mib < 12 * GIB_MIB
    assert {each.max_seconds for each in guests(full=False, most_s=6)[0].scenarios.values()} == {6}


def test_the_sources_own_sizes_are_asked_for() -> None:
    full = guests(full=True)
    assert len(full) == 3 + 6
    assert full[-1].name == "8C32G-30G"
    assert full[-1].needs_mib > 60 * GIB_MIB
    assert [each.needs_mib for each in full] == sorted(each.needs_mib for each in full)


def test_rings_can_be_chosen() -> None:
    arms = ("bitmap", "ring 1024, stock", "ring 1024, reaped", "ring 65536, stock")
    assert chosen(arms, []) == arms
    assert chosen(arms, ["1024"]) == arms[:3]


def test_what_is_available_is_read() -> None:
    assert available_mib("MemTotal: 24 kB\nMemAvailable:   2097152 kB\n") == 2048
