"""The page of the API's documentation: it searches, tries, and asks nobody else."""

from playwright.sync_api import Browser, Page, expect

from tests.support.hosts.live import Live
from tests.support.served.browser import NARROW, Watch, tab


def test_routes_are_found_and_tried_with_the_browsers_session(page: Page, watch: Watch) -> None:
    page.goto("/settings")
    link = page.get_by_role("link", name="API", exact=False).first
    page.goto(str(link.get_attribute("href")))
    search = page.get_by_placeholder("Filter by tag")
    search.fill("list migrations")  # the page makes what is in view only
    expect(page.get_by_text("Live migrations: start, follow, steer, abort.")).to_be_visible()
    search.fill("get health")
    operation = page.locator(".opblock")
    expect(operation).to_have_count(1)
    operation.get_by_role("button").first.click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()
    expect(page.locator(".live-responses-table tbody .response-col_status")).to_contain_text("200")
    assert watch.faults == []


def test_it_can_be_read_without_scripts(page: Page) -> None:
    page.goto("/settings")
    word = page.evaluate("localStorage.getItem('vmtune_csrf')")
    page.goto(f"/api/v1/docs/plain?csrf={word}")
    expect(page.get_by_role("heading", name="HTTP API")).to_be_visible()


def test_its_address_can_be_typed(page: Page, watch: Watch) -> None:
    """A page that is opened by hand carries no proof of the session; the browser has it."""
    watch.refusals |= {"401"}
    page.goto("/")
    page.goto("/api/v1/docs")
    expect(page.get_by_placeholder("Filter by tag")).to_be_visible()
    page.goto("/api/v1/docs/plain")
    expect(page.get_by_role("heading", name="HTTP API")).to_be_visible()


def test_who_signs_in_there_stays_there(it: Live, browser: Browser, token: str) -> None:
    with tab(browser, it.service.origin) as made:
        made.watch.refusals |= {"401"}
        made.page.goto("/api/v1/docs/plain")
        made.page.get_by_label("Token").fill(token)
        made.page.get_by_role("button", name="Sign in").click()
        expect(made.page.get_by_role("heading", name="HTTP API")).to_be_visible()


def test_it_is_dark_where_the_rest_is_and_fits_a_narrow_screen(page: Page, watch: Watch) -> None:
    watch.refusals |= {"401"}
    page.goto("/")
    page.emulate_media(color_scheme="dark")
    page.goto("/api/v1/docs")
    expect(page.locator("html")).to_have_class("dark-mode")
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    page.get_by_placeholder("Filter by tag").fill("list activity")
    operation = page.locator(".opblock")
    expect(operation).to_have_count(1)
    operation.get_by_role("button").first.click()
    expect(operation.locator(".responses-table")).to_be_visible()
    expect(page.locator("html")).to_have_js_property("scrollWidth", NARROW[0])
    page.goto("/api/v1/docs/plain")
    expect(page.get_by_role("heading", name="HTTP API")).to_be_visible()
    expect(page.locator("html")).to_have_js_property("scrollWidth", NARROW[0])
