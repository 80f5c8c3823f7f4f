"""Webhooks under Settings: created with a secret that is shown once, tested, replayed, deleted."""

from playwright.sync_api import Page, expect

from tests.support.hosts.live import Live
from tests.support.served.axe import faults
from tests.support.served.browser import settled


def test_the_life_of_a_webhook(it: Live, page: Page) -> None:
    page.goto("/settings?do=webhook")
    settled(page)
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("receiver")
    dialog.get_by_label("URL").fill("http://127.0.0.1:1/hook")
    dialog.get_by_label("campaign.ended").uncheck()
    assert not faults(page)
    dialog.get_by_role("button", name="Create").click()
    secret = dialog.get_by_label("Secret")
    expect(secret).to_be_visible()
    assert secret.input_value().startswith("whsec_")
    assert not faults(page)
    page.keyboard.press("Escape")
    dialog.get_by_role("button", name="I have copied it").click()
    row = page.get_by_role("grid", name="Webhooks").get_by_role("row").nth(1)
    expect(row).to_contain_text("http://127.0.0.1:1/hook")
    (made,) = it.client.get("/webhooks")["items"]
    assert "campaign.ended" not in made["events"] and "vm.drifted" in made["events"]

    page.get_by_role("button", name="Test receiver").click()
    sent = dialog.get_by_role("row").filter(has_text="test")
    expect(sent).to_contain_text("127.0.0.1 is this machine's own", timeout=60_000)
    assert not faults(page)
    dialog.get_by_role("button", name="Replay").click()
    expect(page.get_by_text("is sent again")).to_be_visible()
    dialog.get_by_role("button", name="Close").last.click()

    page.get_by_role("button", name="Delete receiver").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No webhooks yet")).to_be_visible()
    assert it.client.get("/webhooks")["items"] == []
