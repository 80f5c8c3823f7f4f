"""That a page which does what it may not fails its test."""

import time

import pytest
from playwright.sync_api import Browser

from tests.support.hosts.live import Live
from tests.support.served.browser import PATIENCE_MS, Tab, settled, tab


def misbehave(there: Tab, misdeed: str) -> None:
    """Have the page do it, until the one who watches knows."""
    there.page.goto("/profiles")
    settled(there.page)
    there.page.evaluate(f"() => {{ {misdeed} }}")
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not there.watch.faults and time.monotonic() < deadline:
        there.page.wait_for_timeout(20)  # events are handed out meanwhile


@pytest.mark.parametrize(
    ("misdeed", "told"),
    [
        ("fetch('http://127.0.0.1:9/').catch(() => 0)", "connect-src forbids http://127.0.0.1:9"),
        ("{ new Image().src = 'http://127.0.0.1:9/dot.png' }", "img-src forbids"),
        ("console.error('something broke')", "something broke"),
        ("fetch('/api/v1/vms/none')", "status of 4"),
        ("setTimeout(() => { throw new Error('unforeseen') })", "an uncaught error: .*unforeseen"),
    ],
)
def test_it_is_told(it: Live, browser: Browser, token: str, misdeed: str, told: str) -> None:
    with pytest.raises(AssertionError, match=told), tab(browser, it.service.origin, token) as made:
        misbehave(made, misdeed)


def test_a_request_elsewhere_is_told(it: Live, browser: Browser, token: str) -> None:
    elsewhere = it.service.origin.replace("127.0.0.1", "localhost")
    told = f"a request to {elsewhere}/profiles"
    with pytest.raises(AssertionError, match=told), tab(browser, it.service.origin, token) as made:
        made.page.goto(f"{elsewhere}/profiles")
