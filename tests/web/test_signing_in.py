"""Who is let in, and who is not."""

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browser import Tab, settled, tab
from tests.support.live import Live


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
