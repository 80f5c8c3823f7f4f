"""The overview of a fleet: twenty hosts at a glance, with what needs attention."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.perf.fleets import fleet_pages
from tests.perf.fleets.fleet_sim import make
from tests.support.served.browser import free_port, settled, tab
from tests.support.simulated.fleet import SimHost
from vmtune.errors import HostUnreachable

AT_A_GLANCE = {"width": 1440, "height": 900}
GONE = "h0003"


async def _facts(_self: SimHost, *_: Any, **__: Any) -> None:  # any: whatever is asked
    raise HostUnreachable("connection refused")


@pytest.fixture
def origin_and_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """A service over twenty hosts, one of which does not answer, after 300 migrations."""
    monkeypatch.setattr(fleet_pages, "MIGRATIONS", 300)
    sim = make(20)

    class Gone(SimHost):
        def __getattribute__(self, name: str) -> Any:  # any: a method of a driver
            found = super().__getattribute__(name)
            if name.startswith("_") or not callable(found) or name == "events":
                return found
            return _facts.__get__(self)

    sim.hosts[GONE].__class__ = Gone
    port = free_port()
    with fleet_pages.served(tmp_path, port, sim) as client:
        for host in ("h0001", GONE):
            list(client.items("/vms", {"host": host}))
        client.put("/hosts/h0005/maintenance", {"on": True})
        made = client.post("/tokens", {"name": "look", "scopes": ["admin"]})
        yield f"http://127.0.0.1:{port}", str(made["token"])


def test_twenty_hosts_and_what_needs_attention_are_seen_without_scrolling(
    origin_and_token: tuple[str, str], browser: Browser
) -> None:
    origin, token = origin_and_token
    with tab(browser, origin, token, locale="en-GB") as made:
        page = made.page
        page.set_viewport_size(AT_A_GLANCE)
        page.goto("/")
        settled(page)
        concerns = page.get_by_label("Needs attention").get_by_role("listitem")
        expect(concerns.filter(has_text="host does not answer")).to_contain_text(GONE)
        expect(concerns).to_have_count(5)
        expect(page.get_by_label("Hosts by load").get_by_role("link")).to_have_count(20)
        main = page.locator("main")
        assert main.evaluate("each => each.scrollHeight <= each.clientHeight + 1")
        page.goto(f"/vms?host={GONE}")
        row = page.get_by_role("row").filter(has_text=f"{GONE}-0").first
        expect(row).to_contain_text("host unreachable since")
        told = page.get_by_role("heading", name=re.compile(f"Host {GONE}: .*connection refused"))
        expect(told).to_be_visible()
        expect(row).not_to_contain_text("connection refused")
        made.watch.refusals |= {"424"}  # what its host would have to say
        row.get_by_role("link", name=f"{GONE}-0").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(f"{GONE}-0")
        said = page.get_by_text(f"Host {GONE} does not answer: this is the VM as it was last seen")
        expect(said).to_be_visible()
        expect(page.get_by_text(re.compile("^Since .*: connection refused$"))).to_be_visible()
        expect(page.get_by_text(f"vmtune host check {GONE} shows which step fails")).to_be_visible()
        expect(page.get_by_role("link", name="Check the host")).to_be_visible()
        expect(page.get_by_text("fast r1")).to_be_visible()
        for action in ("Plan and apply", "Migrate"):
            expect(page.get_by_role("button", name=action)).to_be_disabled()
