"""The main ways through the UI without a mouse."""

from playwright.sync_api import Locator, Page, expect

from tests.support.hosts.live import Live
from tests.support.served.browser import settled
from vmtune import lab

FARTHEST = 120


def focused(place: Locator) -> bool:
    """Whether *place* has the focus, or something within it."""
    return bool(place.evaluate("(here) => here.contains(document.activeElement)"))


def tab_to(page: Page, place: Locator) -> None:
    """Press Tab until *place* has the focus."""
    expect(place).to_be_visible()
    for _ in range(FARTHEST):
        if focused(place):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{place} was not reached")


def test_the_first_key_leads_past_the_navigation(page: Page) -> None:
    page.goto("/vms")
    settled(page)
    page.keyboard.press("Tab")
    assert focused(page.get_by_role("link", name="Skip to content"))
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert focused(page.get_by_role("main"))


def test_a_profile_is_made_by_keys(it: Live, page: Page) -> None:
    page.goto("/")
    settled(page)
    tab_to(page, page.get_by_role("navigation", name="Pages").get_by_role("link", name="Profiles"))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_role("link", name="Create profile").first)
    page.keyboard.press("Enter")
    tab_to(page, page.locator("#profile-name"))
    page.keyboard.type("by-keys")
    tab_to(page, page.get_by_role("button", name="Show all of Parallel migration"))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_label("Parallel migration", exact=True))
    page.keyboard.press("ArrowDown")  # from unset to on
    tab_to(page, page.get_by_label("Reason of the change"))
    page.keyboard.press("Tab")
    assert focused(page.get_by_role("button", name="Create", exact=True))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="by-keys", level=1)).to_be_visible()
    assert it.client.get("/profiles/by-keys")["values"] == {"multifd": True}


def test_a_dialog_keeps_the_focus_and_gives_it_back(vm: lab.LabVm, page: Page) -> None:
    page.goto(f"/vms/{vm.uuid}")
    settled(page)
    opener = page.get_by_role("button", name="Migrate", exact=True)
    tab_to(page, opener)
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    tab_to(page, dialog)
    for _ in range(12):
        page.keyboard.press("Tab")
        assert focused(dialog), "the focus left the dialog"
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(opener).to_be_focused()
