"""What strangers cause is logged once a second."""

import structlog

from vmtune.api.serving.logs import RareWarnings, Seldom


def test_one_of_equal_messages_in_a_second() -> None:
    now = 0.0
    seldom = Seldom(lambda: now)
    assert seldom.allow("a") == 0
    assert [seldom.allow("a") for _ in range(2000)] == [None] * 2000
    assert seldom.allow("b") == 0
    now = 1.0
    assert seldom.allow("a") == 2000
    now = 2.0
    assert seldom.allow("a") == 0


def test_refused_connections_are_one_warning() -> None:
    with structlog.testing.capture_logs() as logged:
        warn = RareWarnings(structlog.get_logger())
        for port in range(2000):
            warn("too many connections", client=f"127.0.0.1:{port}")
    assert [entry["event"] for entry in logged] == ["too many connections"]
