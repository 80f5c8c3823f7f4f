"""Reading what the guest tells of a load of its disks."""

from __future__ import annotations

import pytest

from vmtune.errors import InvalidInput
from vmtune.lab.guest_io import GuestIoPhase, GuestIoReport
from vmtune.model.guest_io import GuestLatency, GuestLoad, LatencyBin, merged

LINES = (
    "io start block=4096 disks=2 queues=4 places=256 requests=64 bytes=1048576 event_index=1 "
    "tsc_khz=2000000",
    "io counting",
    "io so_far requests=3",
    "io ended us=500000",
    "io read requests=3 sum=9000 least=1000 most=5000",
    "io read_bins 191=2",
    "io read_bins 263=1",
    "io write requests=1 sum=40 least=40 most=40",
    "io write_bins 40=1",
    "io done errors=1 wrong=2 wakes=7 interrupts=5",
)


def report(*lines: str) -> GuestIoReport:
    made = GuestIoReport()
    for line in lines:
        assert made.add(line)
    return made


def test_a_whole_report() -> None:
    found = report(*LINES).result()
    assert found is not None
    assert (found.disks, found.queues, found.places, found.depth) == (2, 4, 256, 64)
    assert (found.errors, found.wrong, found.wakes, found.interrupts) == (1, 2, 7, 5)
    assert found.requests == 4
    assert found.iops == 8
    # Two ticks are a nanosecond.
    assert found.read.mean_ns == 1500
    assert (found.read.min_ns, found.read.max_ns) == (500, 2500)
    assert found.write.bins == (LatencyBin(20, 20.5, 1),)
    assert found.latency.requests == 4
    assert [each.requests for each in found.latency.bins] == [1, 2, 1]


def test_phases_follow_the_lines() -> None:
    made = GuestIoReport()
    seen = [made.phase]
    for line in LINES:
        made.add(line)
        if made.phase is not seen[-1]:
            seen.append(made.phase)
        assert (made.result() is None) is (made.phase is not GuestIoPhase.DONE)
    assert seen == list(GuestIoPhase)
    assert made.so_far == 3


@pytest.mark.parametrize("left_out", [0, 3, 4, 5, 7])
def test_there_is_no_result_where_a_part_is_missing(left_out: int) -> None:
    lines = [line for number, line in enumerate(LINES) if number != left_out]
    assert report(*lines).result() is None


@pytest.mark.parametrize("line", ["", "0", "pass 0 1 end_us=1 us=1", "io read x=-1", "io X"])
def test_other_lines_are_left_alone(line: str) -> None:
    assert not GuestIoReport().add(line)


def test_percentiles_are_the_middle_of_a_bin_within_the_extremes() -> None:
    bins = (LatencyBin(100, 104, 98), LatencyBin(200, 208, 1), LatencyBin(1000, 1032, 1))
    found = GuestLatency(100, 112, 103, 1001, bins)
    assert found.percentile_ns(50) == 103
    assert found.percentile_ns(99) == 204
    assert found.percentile_ns(99.9) == 1001
    assert GuestLatency(0, 0, 0, 0).percentile_ns(50) is None
    assert merged([]).requests == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [("depth", 0), ("depth", 1025), ("jobs", 257), ("block_bytes", 1000), ("write_percent", 101),
     ("run_ms", 0), ("ramp_ms", -1), ("beat_ms", 3_600_001)],
)  # fmt: skip
def test_a_load_names_what_it_refuses(field: str, value: int) -> None:
    with pytest.raises(InvalidInput) as refused:
        GuestLoad(**{field: value})
    assert [problem.field for problem in refused.value.problems] == [field]
