"""The service goes away and comes back; the page stays, says so, and heals itself."""

import pytest
from playwright.sync_api import Page, expect

from tests.support.hosts.live import Live
from tests.support.served.browser import Watch, settled

LOST = "Lost the connection to the service"
NOBODY_ANSWERS = {
    "ERR_CONNECTION_REFUSED",
    "ERR_CONNECTION_RESET",
    "ERR_EMPTY_RESPONSE",
    "ERR_INCOMPLETE_CHUNKED_ENCODING",
}


@pytest.mark.usefixtures("revived")
def test_lost_and_healed_without_a_reload(it: Live, page: Page, watch: Watch) -> None:
    it.profile("before", downtime_limit_ms=300)
    watch.refusals |= NOBODY_ANSWERS
    page.goto("/profiles")
    settled(page)
    page.evaluate("window.neverReloaded = true")
    lost = page.get_by_text(LOST)
    expect(lost).to_have_count(0)
    editor = page.context.new_page()
    editor.goto("/profiles/before/edit")
    settled(editor)
    editor.get_by_label("Downtime limit", exact=True).fill("250ms")
    editor.get_by_label("Reason of the change").fill("what I typed")
    expect(editor.get_by_text("250 ms", exact=True)).to_be_visible()  # the service has judged it

    it.service.kill()
    expect(lost).to_be_visible()
    expect(page.get_by_role("link", name="before")).to_be_visible()
    # A page that was not looked at before has even its program to fetch: that waits, too.
    page.get_by_role("link", name="Hosts").click()
    # A change that nobody hears is told, and stays where it was typed.
    save = editor.get_by_role("button", name="Save as a new revision")
    save.click()
    expect(editor.get_by_text("the service does not answer").first).to_be_visible()
    expect(editor.get_by_label("Reason of the change")).to_have_value("what I typed")
    # Nor does it wait to be tried again that nobody could judge what was typed since.
    editor.get_by_label("Downtime limit", exact=True).fill("260ms")
    expect(editor.locator("#tunable-downtime_limit_ms-help")).not_to_contain_text("250 ms")
    expect(save).to_be_enabled()

    it.service.start()
    it.profile("while-away", downtime_limit_ms=300)
    expect(lost).to_have_count(0)
    expect(page.get_by_role("heading", name="Hosts", level=1)).to_be_visible()
    expect(page.get_by_role("link", name="a", exact=True)).to_be_visible()
    page.get_by_role("link", name="Profiles").click()
    expect(page.get_by_role("link", name="while-away")).to_be_visible()
    assert page.evaluate("window.neverReloaded"), "the page was loaded anew"
    expect(editor.get_by_text(LOST)).to_have_count(0)
    save.click()
    expect(editor.get_by_role("grid", name="Revisions")).to_contain_text("what I typed")
    editor.close()
