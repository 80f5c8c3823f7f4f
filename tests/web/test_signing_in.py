"""Who is let in, and who is not."""

from uuid import UUID

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.hosts.live import Live
from tests.support.served.browser import Tab, Watch, settled, tab


@pytest.fixture
def stranger(it: Live, browser: Browser):
    with tab(browser, it.service.origin) as made:
        yield made


def test_a_token_lets_in_and_signing_out_leads_back(stranger: Tab, token: str) -> None:
    page = stranger.page
    stranger.watch.refusals |= {"401"}
    page.goto("/vms")
    page.get_by_label("Token").fill("vmt_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("token")
    page.get_by_label("Token").fill(token)
    page.keyboard.press("Enter")
    settled(page)
    expect(page.get_by_role("heading", name="VMs", level=1)).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()


def test_who_may_only_read_is_told_so_and_led_out_when_the_token_is_revoked(
    it: Live, stranger: Tab
) -> None:
    made = it.client.post("/tokens", {"name": "reader", "scopes": ["read"]})
    stranger.watch.refusals |= {"401", "403"}
    page = stranger.page
    page.goto("/profiles/new")
    page.get_by_label("Token").fill(made["token"])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("Name", exact=False).first.fill("forbidden")
    page.get_by_role("button", name="Create").click()
    expect(page.locator(".pf-v6-c-alert").filter(has_text="scope")).to_be_visible()
    page.get_by_role("link", name="Settings").click()
    expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    expect(page.get_by_role("heading", name="Tokens")).to_have_count(0)
    it.client.delete(f"/tokens/{made['id']}")
    expect(page.get_by_label("Token")).to_be_visible()


def test_what_is_not_there_is_told(page: Page, watch: Watch) -> None:
    watch.refusals |= {"404"}
    for address in ("/profiles/none", "/hosts/none", f"/migrations/{UUID(int=1)}"):
        page.goto(address)
        expect(page.locator(".pf-v6-c-alert").filter(has_text="there is no")).to_be_visible()
    page.goto("/none")
    expect(page.get_by_role("heading", name="Page not found", exact=False)).to_be_visible()
