"""The event stream: its format, resuming, and when to give up."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.support.served.stub_service import Reply, StubService, event, refusal
from vmtune.client.connection.errors import ClientError, ConnectionLost, Refused
from vmtune.client.connection.http import Client
from vmtune.client.connection.sse import (
    Backoff,
    Connected,
    Heartbeat,
    ServerEvent,
    StreamItem,
    parse,
    stored,
    watch,
)

FOLLOWING = b": following\n\n"


def no_wait() -> Backoff:
    return Backoff(sleep=lambda _seconds: None)


def test_messages_comments_and_what_is_cut_off() -> None:
    text = (
        b": hello\n\nevent: vm\ndata: {\"a\":\ndata: 1}\nid: 7\n\nretry: 5\n"
        b"data: plain\r\n\r\ndata: [1]\n\nid: 9\ndata: {\"never\": 1}\n"
    )  # fmt: skip
    assert list(parse(text.splitlines(keepends=True))) == [
        Heartbeat(),
        ServerEvent("7", "vm", {"a": 1}),
        ServerEvent("", "message", {"text": "plain"}),
        ServerEvent("", "message", {"value": [1]}),
    ]


def test_after_a_loss_it_resumes_after_the_last_stored_event(service: StubService) -> None:
    first = [FOLLOWING, event({"n": 1}, id=41), event({"n": 2})]
    again = [FOLLOWING, b": ping\n\n", event({"n": 3}, id=42)]
    service.on("GET", "/events", Reply(chunks=first), Reply(cut=True), Reply(chunks=again))
    losses: list[ClientError] = []
    items: list[StreamItem] = list(
        islice(
            watch(
                Client(service.socket),
                query={"topic": "migration"},
                backoff=no_wait(),
                on_loss=losses.append,
            ),
            6,
        )
    )
    assert items == [
        Connected(),
        ServerEvent("41", "migration", {"n": 1}),
        ServerEvent("", "migration", {"n": 2}),
        Connected(),
        Heartbeat(),
        ServerEvent("42", "migration", {"n": 3}),
    ]
    assert [asked.headers.get("Last-Event-ID") for asked in service.asked] == [None, "41", "41"]
    assert {tuple(asked.query["topic"]) for asked in service.asked} == {("migration",)}
    assert len(losses) == 2


def test_a_restarting_service_is_waited_for_and_a_refusal_is_final(service: StubService) -> None:
    starting, no = refusal(503, {"message": "starting"}), refusal(422, {"message": "no"})
    service.on("GET", "/events", starting, starting, no)
    with pytest.raises(Refused, match="no"):
        list(watch(Client(service.socket), backoff=no_wait()))
    assert len(service.asked) == 3


def test_it_gives_up_after_a_minute_without_success() -> None:
    now = [0.0]
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds

    backoff = Backoff(sleep=sleep, clock=lambda: now[0])
    lost = ConnectionLost("gone")
    for _ in range(5):
        backoff.failed(lost)
    backoff.succeeded()
    before = len(waits)

    def fail_for_ever() -> None:
        while True:
            backoff.failed(lost)

    with pytest.raises(ConnectionLost, match="gone"):
        fail_for_ever()
    assert sum(waits[before:]) == pytest.approx(60, abs=2)
    assert waits[before] < waits[before + 1] <= max(waits) == 2


def test_stored_events_end_where_passing_progress_begins(service: StubService) -> None:
    chunks = [FOLLOWING, event({"n": 1}, id=1), event({"n": 2}, id=2), event({"n": 3})]
    service.on("GET", "/events", Reply(chunks=chunks))
    assert [e.data["n"] for e in stored(Client(service.socket), "0")] == [1, 2]


def test_stored_events_are_not_cut_short_without_saying_so(service: StubService) -> None:
    service.on("GET", "/events", Reply(chunks=[FOLLOWING, event({"n": 1}, id=1)]))
    with pytest.raises(ConnectionLost):
        list(stored(Client(service.socket), "0"))
