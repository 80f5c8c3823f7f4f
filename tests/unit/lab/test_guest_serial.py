"""The parser of the guest's serial lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.lab.guest_serial import (
    GuestEvent,
    GuestFault,
    GuestPass,
    GuestStart,
    parse_line,
    parse_serial,
)
from vmtune.model.workload import Workload

START = (
    "start region=268435456 stride=4096 idle_ms=5 dirty_mb=100 zero=20 random=30 beat_ms=2 check=0 "
    "ring=3 skew=0 workers=4 address=2138112 tsc_khz=2300000"
)
STARTED = GuestStart(
    Workload(
        region_bytes=268435456,
        stride_bytes=4096,
        dirty_mb_per_s=100,
        zero_percent=20,
        random_percent=30,
        idle_ms=5,
        beat_ms=2,
        cpu_ring=3,
    ),
    workers=4,
    address=2138112,
    tsc_khz=2300000,
)


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ("pass 0 7 end_us=91000 us=45012", GuestPass(0, 7, 91000, 45012, 1, 45012)),
        ("pass 3 7 end_us=91000 us=45012\r\n", GuestPass(3, 7, 91000, 45012, 1, 45012)),
        (
            "pass 1 19 end_us=91204 us=39870 passes=18 longest_us=2391",
            GuestPass(1, 19, 91204, 39870, 18, 2391),
        ),
        (
            "pass 1 7 end_us=91000 us=45012 wrong=3",
            GuestPass(1, 7, 91000, 45012, 1, 45012, wrong=3),
        ),
        (START, STARTED),
        ("error region: is 0", GuestFault("region", "is 0")),
        ("error regoin: is not known: really", GuestFault("regoin", "is not known: really")),
        ("SeaBIOS (version 1.16)", None),
        ("pass 0 7 end_us=91000 us=", None),
        ("pass 0 -7 end_us=91000 us=1", None),
        ("xpass 0 7 end_us=91000 us=1", None),
        ("pass 0 7 end_us=91000 us=10 passes=0 longest_us=0", None),
        ("pass 0 7 end_us=91000 us=10 passes=8 longest_us=1", None),
        ("pass 0 7 end_us=91000 us=10 passes=2 longest_us=11", None),
        ("start region=1 stride=1", None),
        (START.replace("ring=3", "ring=2"), None),
        (START.replace("workers=4", "workers=0"), None),
        (START + " more=1", None),
        ("", None),
    ],
)
def test_line(line: str, event: GuestEvent | None) -> None:
    assert parse_line(line) == event


def test_a_line_still_being_written_is_left_out() -> None:
    lines = ["firmware\n", "pass 0 1 end_us=100 us=100\n", "pass 0 2 end_us=200 us=10"]
    assert list(parse_serial(lines)) == [GuestPass(0, 1, 100, 100, 1, 100)]


def test_several_passes_are_given_as_one_on_average() -> None:
    assert GuestPass(0, 19, 91204, 39870, 18, 2391).duration_us == 2215


@given(
    st.text()
    | st.from_regex(r"(start|pass|error)( [a-z_]{1,8}[ =:][0-9]{0,30}){0,12}", fullmatch=True)
)
def test_any_text_is_an_event_or_none(line: str) -> None:
    parse_line(line)


numbers = st.integers(0, 2**64 - 1)


@given(numbers, numbers, numbers, numbers, numbers, numbers)
def test_what_a_pass_says_is_read(
    worker: int, number: int, end_us: int, worked_us: int, passes: int, longest_us: int
) -> None:
    line = f"pass {worker} {number} end_us={end_us} us={worked_us}"
    if number:
        assert parse_line(line) == GuestPass(worker, number, end_us, worked_us, 1, worked_us)
    expected = GuestPass(worker, number, end_us, worked_us, passes, longest_us)
    can_be = 1 <= passes <= number and longest_us <= worked_us
    read = parse_line(f"{line} passes={passes} longest_us={longest_us}")
    assert read == (expected if can_be else None)


@given(st.integers(1, 2**32 - 1), st.integers(1, 256))
def test_the_parts_are_the_region_in_whole_pages(region: int, workers: int) -> None:
    start = GuestStart(Workload(region, stride_bytes=1), workers, 0x200000, 1000)
    parts = [start.part(worker) for worker in range(workers)]
    assert parts[0].start == start.address
    assert [part.stop for part in parts[:-1]] == [part.start for part in parts[1:]]
    assert parts[-1].stop == start.address + region
    assert all(part.start % 4096 == 0 for part in parts)
    assert max(map(len, parts)) - min(map(len, parts)) <= 2 * 4096
