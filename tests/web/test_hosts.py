"""Hosts in a browser: added, checked, changed, in maintenance, removed."""

import re

from playwright.sync_api import Page, expect

from tests.support.hosts.live import Live
from tests.support.served.browser import Watch, settled


def test_added_checked_changed_and_removed(it: Live, page: Page, watch: Watch) -> None:
    watch.refusals |= {"409", "422", "424"}
    page.goto("/hosts")
    page.get_by_role("button", name="Add host").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("lone")
    dialog.locator("#host-uri").fill("qmp+unix:///nonexistent-folder")
    dialog.get_by_role("button", name="Add host").click()
    expect(dialog.get_by_text("nonexistent-folder", exact=False).first).to_be_visible()
    assert "lone" not in [each["name"] for each in it.client.items("/hosts")]

    folder = it.service.folder / "qmp"
    folder.mkdir()
    dialog.locator("#host-uri").fill(f"qmp+unix://{folder}")
    dialog.get_by_role("button", name="Add host").click()
    expect(page.get_by_role("heading", name="lone", level=1)).to_be_visible()
    settled(page)

    page.get_by_role("button", name="Check", exact=True).click()
    steps = dialog.get_by_role("grid", name="Steps")
    expect(steps.get_by_role("row").nth(1)).to_contain_text("lone")
    dialog.get_by_role("button", name="Close", exact=True).last.click()

    page.get_by_role("button", name="Edit").click()
    dialog.get_by_label("Listens for migrations on").fill("127.0.0.1")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_text("lone was changed").first).to_be_visible()
    assert it.client.get("/hosts/lone")["listen_address"] == "127.0.0.1"

    page.get_by_role("button", name="Remove").click()
    dialog.get_by_role("button", name="Remove").click()
    expect(page).to_have_url(re.compile("/hosts$"))
    assert "lone" not in [each["name"] for each in it.client.items("/hosts")]


def test_maintenance_begins_and_ends_on_the_page(it: Live, page: Page) -> None:
    page.goto("/hosts")
    page.get_by_role("link", name="b", exact=True).click()
    page.get_by_role("button", name="Begin maintenance").click()
    expect(page.get_by_role("button", name="End maintenance")).to_be_visible()
    assert it.client.get("/hosts/b")["maintenance_since"] is not None
    expect(page.get_by_text("runs no VMs: safe to reboot")).to_be_visible()
    page.get_by_role("button", name="End maintenance").click()
    expect(page.get_by_role("button", name="Begin maintenance")).to_be_visible()
    assert it.client.get("/hosts/b")["maintenance_since"] is None
