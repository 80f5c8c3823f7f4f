"""One lab, one service and one browser for all tests of the web UI."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browser import Tab, Watch, chromium, free_port, tab, why_no_browser
from tests.support.live import Live, live, wait_for, why_no_lab
from vmtune import lab
from vmtune.api.web import BUILT

PLAN = {
    "name": "tiny",
    "scenario": {
        "name": "test/tiny",
        "vm": {"memory_bytes": "64Mi"},
        "workload": {"region_bytes": "16Mi", "beat_ms": 5},
        "warmup_s": 0,
        "cooldown_s": 0,
    },
    "blocks": 2,
    "arms": [{"name": "stock"}, {"name": "tuned", "values": {"multifd": True}}],
}
WHY_NOT = why_no_lab() or why_no_browser()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say why none of these tests can be run, where that is so."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never"))
            item.add_marker(pytest.mark.timeout(180))


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
    """The id of a campaign that is under way, of runs that are as short as they can be."""
    return str(it.client.post("/campaigns", PLAN)["id"])


@pytest.fixture(scope="package")
def campaign(it: Live, begun: str) -> str:
    """The same, once it has ended."""
    wait_for(lambda: it.client.get(f"/campaigns/{begun}")["ended"], "the campaign to end")
    assert it.client.get(f"/campaigns/{begun}")["state"] == "completed"
    return begun


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


@pytest.fixture
def signed_in(it: Live, browser: Browser, token: str) -> Iterator[Tab]:
    """A tab of a browser that is signed in, light, in English."""
    with tab(browser, it.service.origin, token, color_scheme="light", locale="en-GB") as made:
        yield made


@pytest.fixture
def page(signed_in: Tab) -> Page:
    """The tab's page."""
    return signed_in.page


@pytest.fixture
def watch(signed_in: Tab) -> Watch:
    """Who watches it: statuses that a test provokes are told to it."""
    return signed_in.watch
