"""What QEMU says of a migration, read."""

from __future__ import annotations

import pytest

from vmtune.model.migration.record import QemuStatus, read_query_migrate


@pytest.mark.parametrize(
    ("said", "read"), [(2192, 2192), (0, 0), ((1 << 63) - 1, None), (None, None)]
)
def test_an_estimate_that_is_none_is_not_shown(said: int | None, read: int | None) -> None:
    """QEMU 11.1 says INT64_MAX until it can estimate."""
    reply = {"status": "active", "ram": {"total": 1 << 26}}
    more = {} if said is None else {"expected-downtime": said}
    sample = read_query_migrate(reply | more).sample
    assert sample is not None
    assert sample.expected_downtime_ms == read


@pytest.mark.parametrize(
    ("said", "status", "in_postcopy"),
    [
        ("postcopy-device", QemuStatus.POSTCOPY_DEVICE, True),
        ("failing", QemuStatus.FAILING, False),
        ("of-a-later-qemu", QemuStatus.OTHER, False),
    ],
)
def test_states_of_newer_releases_are_known(
    said: str, status: QemuStatus, in_postcopy: bool
) -> None:
    snapshot = read_query_migrate({"status": said})
    assert snapshot.status is status
    assert status.running and not snapshot.final
    assert status.in_postcopy is in_postcopy


def test_totals_tell_the_memory_before_it_was_compressed() -> None:
    ram = {"transferred": 45 << 20, "normal-bytes": 146 << 20, "dirty-sync-count": 3}
    done = {"status": "completed", "total-time": 465, "downtime": 20, "ram": ram}
    totals = read_query_migrate(done).totals
    assert totals is not None
    assert (totals.transferred_bytes, totals.normal_bytes) == (45 << 20, 146 << 20)
