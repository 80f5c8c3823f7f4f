"""What is heard of a guest, and when."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.migration.guest_listener import (
    BEAT,
    SERIAL,
    GuestListener,
    Heartbeat,
    Lines,
)
from vmtune.lab.guest_serial import GuestFault, GuestPass, GuestStart

START = (
    b"start region=4096 stride=4096 idle_ms=0 dirty_mb=0 zero=0 random=0 beat_ms=5 check=0"
    b" ring=0 skew=0 workers=1 address=2097152 tsc_khz=1000\n"
)


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[GuestListener]:
    made = GuestListener(tmp_path, beat_ms=5)
    yield made
    made.close()


def connect(path: Path) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(str(path))
    return stream


async def until_passes(listener: GuestListener, count: int) -> None:
    async with asyncio.timeout(60):
        while sum(isinstance(h.event, GuestPass) for h in listener.reports()) < count:
            await listener.wait_for_report(1)


async def test_a_line_begun_on_the_source_is_ended_on_the_destination(
    listener: GuestListener, tmp_path: Path
) -> None:
    before = time.monotonic()
    with connect(tmp_path / SERIAL) as source, connect(tmp_path / SERIAL) as destination:
        source.sendall(b"SeaBIOS...\r\n" + START)
        source.sendall(b"pass 0 1 end_us=150 us=100\npass 0 2 end_us=220 us")
        await until_passes(listener, 1)
        destination.sendall(b"=70\npass 0 3 end_us=280 us=60\n")
        await until_passes(listener, 3)
    start = listener.start()
    assert start is not None
    assert isinstance(start.event, GuestStart)
    passes = listener.passes(before)
    assert [(p.number, p.guest_us, p.duration_us, p.written_bytes) for p in passes] == [
        (1, 150, 100, 4096),
        (2, 220, 70, 4096),
        (3, 280, 60, 4096),
    ]
    assert 0 <= passes[0].at_ms <= passes[2].at_ms <= (time.monotonic() - before) * 1000


async def test_a_guest_that_refuses_its_settings_says_so(
    listener: GuestListener, tmp_path: Path
) -> None:
    with connect(tmp_path / SERIAL) as stream:
        stream.sendall(b"error region: is 0\n")
        async with asyncio.timeout(60):
            while listener.fault() is None:
                await listener.wait_for_report(1)
    assert listener.fault() == GuestFault("region", "is 0")
    assert listener.start() is None
    assert listener.passes(0) == ()


async def test_nothing_reported_is_waited_for_only_so_long(listener: GuestListener) -> None:
    async with asyncio.timeout(60):
        await listener.wait_for_report(0.01)


async def test_arrivals_are_timed_while_the_event_loop_is_busy(
    listener: GuestListener, tmp_path: Path
) -> None:
    """Nothing is awaited here, and still each report is heard before the next is sent."""
    origin = time.monotonic()
    sent = []
    with connect(tmp_path / SERIAL) as stream:
        stream.sendall(START)
        for number in range(1, 6):
            sent.append((time.monotonic() - origin) * 1000)
            stream.sendall(b"pass 0 %d end_us=%d us=1\n" % (number, number))
            while len(listener.passes(origin)) < number:
                time.sleep(0)  # noqa: ASYNC251 - to hold up the loop is what is tried
    arrived = [p.at_ms for p in listener.passes(origin)]
    assert all(a <= b for a, b in zip(sent, arrived, strict=True))
    assert all(a <= b for a, b in zip(arrived, sent[1:], strict=False))


def test_a_gap_of_the_heartbeat_spans_both_sides(listener: GuestListener, tmp_path: Path) -> None:
    with connect(tmp_path / BEAT) as source, connect(tmp_path / BEAT) as destination:
        origin = time.monotonic()
        source.sendall(b"\0")
        while not listener.silences(origin):  # which goes on
            time.sleep(0.01)
        destination.sendall(b"\1\1")
        while len(listener.silences(origin)) < 2:  # that one is over, and another goes on
            time.sleep(0.01)
        first, second = listener.silences(origin)
        assert first.at_ms >= 0
        assert first.duration_ms > 10
        assert second.at_ms == pytest.approx(first.at_ms + first.duration_ms)


def test_without_a_heartbeat_there_is_no_silence(tmp_path: Path) -> None:
    deaf = GuestListener(tmp_path, beat_ms=0)
    try:
        deaf.watch(on=True)
        assert deaf.silences(0) == ()
    finally:
        deaf.close()


def listeners() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "guest listener"}


def test_closing_leaves_nothing(tmp_path: Path) -> None:
    before = listeners()
    closed = GuestListener(tmp_path, beat_ms=5)
    assert len(listeners() - before) == 1
    stream = connect(tmp_path / SERIAL)
    closed.close()
    assert list(tmp_path.iterdir()) == []
    assert listeners() <= before
    assert stream.recv(1) == b""
    stream.close()


def test_gaps_longer_than_two_beats_are_kept_and_the_longest_that_is_watched() -> None:
    heart = Heartbeat(5)
    for at in (1.0, 1.005, 1.1):
        heart.beat(at)
    heart.watch(on=True)
    for at in (1.106, 1.114, 1.119):
        heart.beat(at)
    heart.watch(on=False)
    for at in (1.128, 1.129):
        heart.beat(at)
    kept = heart.silences(until=1.13)
    assert [(round(a, 3), round(d, 3)) for a, d in kept] == [(1.005, 0.095), (1.106, 0.008)]
    assert [round(d, 3) for _, d in heart.silences(until=2.0)] == [0.095, 0.008, 0.871]
    assert Heartbeat(5).silences(until=9.0) == []


def test_gaps_that_are_forgotten_are_told_no_more_but_the_one_that_goes_on() -> None:
    heart = Heartbeat(5)
    heart.watch(on=True)
    for at in (1.0, 1.1):
        heart.beat(at)
    heart.forget()
    assert heart.silences(until=1.105) == []
    heart.beat(1.2)
    assert [round(d, 3) for _, d in heart.silences(until=1.2)] == [0.1]


@given(st.lists(st.floats(0, 1), min_size=2).map(sorted), st.floats(1, 2))
def test_every_long_gap_is_kept_once(moments: list[float], until: float) -> None:
    heart = Heartbeat(5)
    for at in moments:
        heart.beat(at)
    gaps = [b - a for a, b in zip(moments, [*moments[1:], until], strict=True)]
    assert sorted(d for _, d in heart.silences(until)) == sorted(g for g in gaps if g * 1000 > 10)


@given(st.lists(st.binary(max_size=30)))
def test_lines_are_whole_however_they_come(pieces: list[bytes]) -> None:
    lines = Lines()
    found = [line for piece in pieces for line in lines.add(piece)]
    assert found == [line.decode(errors="replace") for line in b"".join(pieces).split(b"\n")[:-1]]
