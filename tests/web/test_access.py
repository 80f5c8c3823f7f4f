"""Every page for everybody: with a screen reader, a keyboard, a dark or a narrow screen."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.hosts.live import Live, wait_for
from tests.support.served.axe import CONTRAST, faults
from tests.support.served.browser import NARROW, Watch, settled, tab
from tests.web.test_vms import choose
from vmtune import lab

ROUTES = Path(__file__).parents[2] / "web/src/app/routes.tsx"
_WIDEST = """[...document.querySelectorAll("body *")]
  .map((each) => [each.getBoundingClientRect().right, each.outerHTML.slice(0, 120)])
  .sort((one, two) => two[0] - one[0])[0]"""
_CUT_OFF = """(width) => {
  const scrolls = (each) => ["auto", "scroll", "hidden", "clip"].includes(
    getComputedStyle(each).overflowX);
  const within = (each) => {
    for (let up = each.parentElement; up && up.tagName !== "MAIN"; up = up.parentElement)
      if (scrolls(up) && up.getBoundingClientRect().right <= width) return true;
    return false;
  };
  return [...document.querySelectorAll("main *")]
    .filter((each) => each.getBoundingClientRect().right > width + 1 && !within(each))
    .filter((each) => each.checkVisibility())
    .map((each) => each.outerHTML.slice(0, 160))[0] ?? "";
}"""
"""The first part that the edge of the window cuts off, where nothing lets one scroll to it."""
_CARDS = """() => {
  const found = [];
  for (const table of document.querySelectorAll("main table[class*=pf-m-grid]")) {
    const heads = [...table.querySelectorAll("thead th")].map((th) => th.textContent.trim());
    for (const td of table.querySelectorAll("td[data-label]")) {
      const parts = [...td.childNodes].filter((each) => each.nodeType !== Node.COMMENT_NODE);
      if (parts.length > 1) found.push(`${td.dataset.label}: ${parts.length} parts in a cell`);
      const label = td.dataset.label.trim();
      if (!heads.includes(label)) found.push(`${label}: no such column`);
    }
  }
  return [...new Set(found)];
}"""
"""Cells that come apart where each row is a card, or are labelled otherwise than their column."""
_SHORTENED = """() => [...document.querySelectorAll("main *, [role=dialog] *")]
  .filter((each) => each.checkVisibility() && each.scrollWidth > each.clientWidth + 1)
  .filter((each) => getComputedStyle(each).textOverflow === "ellipsis" && each.innerText)
  .filter((each) => !each.closest("[class*=clipboard], [class*=breadcrumb], [class*=-toggle]"))
  .map((each) => each.innerText.slice(0, 80))"""
"""Words that end in an ellipsis for lack of room. Of what can be copied, and of what stands in full
elsewhere, that does not matter."""
STUDY = {
    "name": "shown",
    "scenario": "plain/1gbs.quick",
    "objective": "minimise total_time_ms where completed",
    "space": {"multifd": {}, "multifd_channels": {"low": 1, "high": 8}},
}
PATHS = re.findall(r'path: "(/[^"]*)"', ROUTES.read_text())


@pytest.fixture(scope="module")
def shown(it: Live, vm: lab.LabVm, begun: str, campaign: str) -> Mapping[str, str]:
    """For each route with a variable in it an address at which there is something to see."""
    it.profile("shown", downtime_limit_ms=350, multifd=True)
    body = {"values": {"downtime_limit_ms": 300, "multifd": True}, "note": "shorter"}
    it.client.put("/profiles/shown", body, if_match='"1"')
    it.client.post(f"/vms/{vm.uuid}/applications", {"profile": "shown"})
    there = it.ended(it.migrate(vm, "b", profile="shown"))
    assert there["state"] == "completed", there["failure"]
    evacuation = it.client.post("/hosts/b/evacuations", {"profile": "shown"})
    evacuation = f"/hosts/b/evacuations/{evacuation['id']}"
    wait_for(lambda: it.client.get(evacuation)["ended"], "the VM to be back where it was")
    assert it.states(vm) == {"a": "running"}
    run = next(it.client.items("/runs", {"campaign": campaign}))
    table = next(it.client.items("/reference"))
    study = it.client.post("/studies", STUDY)["id"]
    it.client.delete(f"/studies/{study}")
    wait_for(lambda: it.client.get(f"/studies/{study}")["ended"], "the study to be cancelled")
    return {
        "/vms/:uuid": f"/vms/{vm.uuid}",
        "/migrations/:id": f"/migrations/{there['id']}",
        "/profiles/:name": "/profiles/shown",
        "/hosts/:name/evacuations/:id": evacuation,
        "/hosts/:name": "/hosts/a",
        "/bench/campaigns/:id": f"/bench/campaigns/{campaign}",
        "/bench/studies/:id": f"/bench/studies/{study}",
        "/bench/runs/:id": f"/bench/runs/{run['id']}",
        "/bench/scenarios/:family/:variant": "/bench/scenarios/plain/1gbs",
        "/bench/reference/:id": f"/bench/reference/{table['id']}",
        "/bench/compare": f"/bench/compare?campaign={campaign}",
    }


def address(path: str, shown: Mapping[str, str]) -> str:
    """An address of a route such as ``/profiles/:name/edit``."""
    for route, one in shown.items():
        if path == route or path.startswith(route + "/"):
            path = path.replace(route, one)
    assert ":" not in path, f"say in `shown` what {path} can be"
    return path


def too_wide(page: Page) -> str:
    """What is cut off at the right of a narrow window; empty when nothing is."""
    try:
        # The page's own program moves parts of it when the window has changed.
        expect(page.locator("html")).to_have_js_property("scrollWidth", NARROW[0])
    except AssertionError:
        return f"wider than the screen: {page.evaluate(_WIDEST)}"
    cut = page.evaluate(_CUT_OFF, NARROW[0])
    return f"cut off at the right: {cut}" if cut else ""


_AT_ONCE = "*, *::before, *::after { transition: none !important }"


def darken(page: Page) -> None:
    """As the switch does, and at once: colours that are just changing would be judged."""
    page.add_style_tag(content=_AT_ONCE)
    page.evaluate("document.documentElement.classList.add('pf-v6-theme-dark')")


def found_at(page: Page) -> list[str]:
    """What keeps anybody out of what *page* shows, in three ways to look at it."""
    found = [f"light: {each}" for each in faults(page)]
    found += [f"wide: shortened: {each}" for each in page.evaluate(_SHORTENED)]
    darken(page)
    found += [f"dark: {each}" for each in faults(page, only=CONTRAST)]
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    if wide := too_wide(page):
        found.append(f"narrow: {wide}")
    found += [f"narrow: {each}" for each in page.evaluate(_CARDS)]
    found += [f"narrow: shortened: {each}" for each in page.evaluate(_SHORTENED)]
    found += [f"narrow: {each}" for each in faults(page, without=CONTRAST)]
    return found


@pytest.mark.parametrize("path", PATHS)
def test_nothing_keeps_anybody_out(page: Page, shown: Mapping[str, str], path: str) -> None:
    page.goto(address(path, shown))
    settled(page)
    found = found_at(page)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("opener", ["Plan and apply", "Migrate"])
def test_no_dialog_keeps_anybody_out(page: Page, shown: Mapping[str, str], opener: str) -> None:
    page.goto(shown["/vms/:uuid"])
    settled(page)
    dialog = choose(page, opener, "shown")
    if opener == "Migrate":
        dialog.get_by_label("Destination").select_option("b")
    expect(dialog.get_by_role("row").nth(1)).to_be_visible()
    found = found_at(page)
    assert not found, "\n".join(found)


@pytest.fixture(scope="module")
def running(it: Live) -> Iterator[str]:
    """The address of a migration that does not end."""
    it.profile("unending", max_bandwidth_bytes_per_s="1MiB/s", downtime_limit_ms=1)
    with it.vm() as vm:
        record = it.migrate(vm, "b", profile="unending")
        it.until_active(record)
        yield f"/migrations/{record['id']}"
        it.client.delete(f"/migrations/{record['id']}")
        it.ended(record)


@pytest.mark.parametrize("opener", ["", "Change bandwidth", "Pause the guest", "Abort"])
def test_a_migration_that_runs_keeps_nobody_out(page: Page, running: str, opener: str) -> None:
    page.goto(running)
    expect(page.get_by_text(re.compile(r"iteration \d+"))).to_be_visible()
    settled(page)
    if opener:
        page.get_by_role("button", name=opener, exact=True).click()
        expect(page.get_by_role("dialog")).to_be_visible()
    found = found_at(page)
    assert not found, "\n".join(found)


def search_opened(page: Page) -> None:
    """The search over everything, with what it found."""
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name=re.compile("^VM, host")).fill("add host")
    expect(page.get_by_role("option", name=re.compile("Add host"))).to_be_visible()


def activity_opened(page: Page) -> None:
    """The panel of what runs and what ended last."""
    page.get_by_role("button", name=re.compile("^Activity")).click()
    expect(page.get_by_role("list", name="Activity").get_by_role("listitem").first).to_be_visible()


def host_form_opened(page: Page) -> None:
    """The form of a new host."""
    page.get_by_role("button", name="Add host").click()
    expect(page.get_by_role("dialog").get_by_role("textbox").first).to_be_visible()


@pytest.mark.usefixtures("shown")
@pytest.mark.parametrize("opened", [search_opened, activity_opened, host_form_opened])
def test_what_lies_over_a_page_keeps_nobody_out(page: Page, opened: Callable[[Page], None]) -> None:
    page.goto("/hosts")
    settled(page)
    opened(page)
    found = found_at(page)
    page.evaluate("localStorage.removeItem('vmtune.activity')")
    assert not found, "\n".join(found)


def test_the_way_in_keeps_nobody_out(it: Live, browser: Browser) -> None:
    with tab(browser, it.service.origin) as made:
        made.watch.refusals |= {"401"}
        made.page.goto("/vms")
        expect(made.page.get_by_label("Token")).to_be_visible()
        found = [f"light: {each}" for each in faults(made.page)]
        made.page.emulate_media(color_scheme="dark")
        found += [f"dark: {each}" for each in faults(made.page, only=CONTRAST)]
    assert not found, "\n".join(found)


def test_the_apis_own_words_keep_nobody_out(page: Page) -> None:
    page.goto("/settings")
    word = page.evaluate("localStorage.getItem('vmtune_csrf')")
    page.goto(f"/api/v1/docs/plain?csrf={word}")
    expect(page.get_by_role("heading", name="HTTP API")).to_be_visible()
    found = faults(page)
    assert not found, "\n".join(found)


def test_the_page_of_the_api_keeps_nobody_out(page: Page, watch: Watch) -> None:
    watch.refusals |= {"401"}  # its address is typed
    page.goto("/")
    page.goto("/api/v1/docs")
    page.get_by_placeholder("Filter by tag").fill("add_host")
    operation = page.locator("#operations-hosts-add_host")
    operation.get_by_role("button").first.click()
    operation.get_by_role("button", name="Try it out").click()
    expect(page.get_by_role("textbox", name="Request body")).to_be_visible()
    found = [f"light: {each}" for each in faults(page)]
    page.add_style_tag(content=_AT_ONCE)
    page.evaluate("document.documentElement.classList.add('dark-mode')")
    found += [f"dark: {each}" for each in faults(page, only=CONTRAST)]
    page.get_by_role("button", name="Authorize").first.click()
    expect(page.get_by_role("button", name="Close").first).to_be_visible()
    found += [f"sign-in: {each}" for each in faults(page, without=CONTRAST)]
    assert not found, "\n".join(found)
