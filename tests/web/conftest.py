"""One lab, one service and one browser for all tests of the web UI."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.support.hosts.live import Live, live, wait_for, why_no_lab
from tests.support.served.browser import (
    Tab,
    Watch,
    browsing,
    chromium,
    free_port,
    tab_of,
    why_no_browser,
)
from vmtune import lab
from vmtune.api.pages.web import BUILT

_PATIENT = {"downtime_limit_ms": 5000}  # both arms end as soon as all was sent once
PLAN = {
    "name": "tiny",
    "title": "A link that is wide enough",
    "scenario": {
        "name": "test/tiny",
        "vm": {"memory_bytes": "64Mi"},
        "workload": {"region_bytes": "16Mi", "beat_ms": 5},
        "warmup_s": 0,
        "cooldown_s": 0,
    },
    "blocks": 6,
    "arms": [
        {"name": "narrow", "values": {"max_bandwidth_bytes_per_s": "8MiB/s", **_PATIENT}},
        {"name": "wide", "values": _PATIENT},
    ],
}
"""The fewest blocks that a verdict takes, of runs that are as short as they can be, and of arms
that differ by far more than whatever else this machine does meanwhile."""
WHY_NOT = why_no_lab() or why_no_browser()


def _turn(item: pytest.Item) -> int:
    """The campaign runs while tests go on that do without it; those that kill the service come
    last of all."""
    names = getattr(item, "fixturenames", ())
    return 2 if "revived" in names else 1 if "campaign" in names else 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say why none of these tests can be run, where that is so; and put them in order."""
    here = Path(__file__).parent
    places = [index for index, item in enumerate(items) if here in item.path.parents]
    for index, item in zip(places, sorted((items[i] for i in places), key=_turn), strict=True):
        item.add_marker(pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never"))
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(180))
        items[index] = item


@pytest.fixture(scope="package")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """The lab and the service behind the pages."""
    assert (BUILT / "index.html").is_file(), "the web UI has not been built: run make web"
    with tempfile.TemporaryDirectory(prefix="vt-") as short, pytest.MonkeyPatch.context() as patch:
        patch.setenv("VMTUNE_BENCH_DIR", os.path.join(short, "bench"))
        with live(tmp_path_factory.mktemp("web"), number=93, port=free_port()) as made:
            yield made


@pytest.fixture(scope="package")
def begun(it: Live) -> str:
    """The id of a campaign that is under way."""
    return str(it.client.post("/campaigns", PLAN)["id"])


@pytest.fixture(scope="package", autouse=True)
def _begun_early(request: pytest.FixtureRequest) -> None:
    """So that nobody waits for it, where somebody needs it."""
    if any("begun" in getattr(item, "fixturenames", ()) for item in request.session.items):
        request.getfixturevalue("begun")


@pytest.fixture(scope="package")
def campaign(it: Live, begun: str) -> str:
    """The same, once it has ended."""
    wait_for(
        lambda: it.client.get(f"/campaigns/{begun}")["ended"], "the campaign to end", within_s=120
    )
    assert it.client.get(f"/campaigns/{begun}")["state"] == "completed"
    runs = it.client.items("/runs", {"campaign": begun})
    failures = [run["failure"] for run in runs if run["state"] != "completed"]
    assert len(failures) <= 1, failures  # a verdict stands one that a busy machine fails
    return begun


@pytest.fixture
def revived(it: Live) -> Iterator[None]:
    """Whatever becomes of the service in a test, the next one finds it."""
    yield
    it.service.revive()


@pytest.fixture(scope="package")
def vm(it: Live) -> Iterator[lab.LabVm]:
    """A VM that tests change, and leave where it is."""
    with it.vm() as made:
        yield made


@pytest.fixture(scope="package")
def token(it: Live) -> str:
    """What lets a browser do everything."""
    made = it.client.post("/tokens", {"name": "browser", "scopes": ["admin"]})
    return str(made["token"])


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium."""
    with chromium() as made:
        yield made


@pytest.fixture(scope="package")
def room(it: Live, browser: Browser, token: str) -> Iterator[BrowserContext]:
    """A browser that is signed in, light, in English: one, so that what it has fetched stays."""
    looks = {"color_scheme": "light", "locale": "en-GB"}
    with browsing(browser, it.service.origin, token, **looks) as made:
        yield made


@pytest.fixture
def signed_in(it: Live, room: BrowserContext) -> Iterator[Tab]:
    """A new tab of it."""
    with tab_of(room, it.service.origin) as made:
        yield made


@pytest.fixture
def page(signed_in: Tab) -> Page:
    """The tab's page."""
    return signed_in.page


@pytest.fixture
def watch(signed_in: Tab) -> Watch:
    """Who watches it: statuses that a test provokes are told to it."""
    return signed_in.watch
