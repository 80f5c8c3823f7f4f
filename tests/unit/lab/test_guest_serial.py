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


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ("pass 7 us=45012", GuestPass(7, 45012)),
        ("pass 7 us=45012\r\n", GuestPass(7, 45012)),
        (
            "start region=268435456 stride=4096 idle_ms=5 tsc_khz=2300000",
            GuestStart(268435456, 4096, 5, 2300000),
        ),
        ("error region: is 0", GuestFault("region", "is 0")),
        ("error regoin: is not known: really", GuestFault("regoin", "is not known: really")),
        ("SeaBIOS (version 1.16)", None),
        ("pass 7 us=", None),
        ("pass -7 us=1", None),
        ("xpass 7 us=1", None),
        ("start region=1 stride=1", None),
        ("", None),
    ],
)
def test_line(line: str, event: GuestEvent | None) -> None:
    assert parse_line(line) == event


def test_a_line_still_being_written_is_left_out() -> None:
    lines = ["firmware\n", "pass 1 us=100\n", "pass 2 us=10"]
    assert list(parse_serial(lines)) == [GuestPass(1, 100)]


@given(st.text())
def test_any_text_is_an_event_or_none(line: str) -> None:
    parse_line(line)
