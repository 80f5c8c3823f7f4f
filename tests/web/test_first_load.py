"""How much a browser fetches before it shows anything."""

from playwright.sync_api import Browser

from tests.perf.fleets.web import KIB, fetched, gzipped
from tests.support.hosts.live import Live

MOST_KIB = {".js": 260, ".css": 110}
"""Compressed as a proxy does."""


def test_the_overview_fetches_no_more_than_it_may(it: Live, browser: Browser, token: str) -> None:
    names = fetched(browser, it.service.origin, token)
    for ending, most in MOST_KIB.items():
        of_kind = [each for each in names if each.endswith(ending)]
        assert of_kind, names
        assert gzipped(of_kind) / KIB <= most, of_kind
    assert not [each for each in names if "echarts" in each], "charts are fetched when one is shown"
