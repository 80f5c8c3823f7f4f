"""Profiles: made, changed and put back in a browser."""

import re

from playwright.sync_api import Page, expect

from tests.support.hosts.live import Live
from tests.support.served.browser import Watch, settled


def alert(page: Page, text: str) -> None:
    """Wait for a notice or an error with these words."""
    expect(page.locator(".pf-v6-c-alert").filter(has_text=text).first).to_be_visible()


def find(page: Page, words: str) -> None:
    """Show the tunables with these words in an editor that is open; empty for what is set."""
    page.get_by_role("textbox", name="Find a tunable").fill(words)


def revise(page: Page, field: str, value: str, why: str) -> None:
    """Change one value and save, in an editor that is open."""
    page.get_by_label(field, exact=True).fill(value)
    page.get_by_label("Reason of the change").fill(why)
    page.get_by_role("button", name="Save as a new revision").click()


def test_made_in_the_editor_revised_compared_and_put_back(it: Live, page: Page) -> None:
    page.goto("/profiles")
    page.get_by_role("link", name="Create profile").first.click()
    # The list, which stays until the editor is loaded, has a field for a name, too.
    expect(page.get_by_role("button", name="Create", exact=True)).to_be_visible()
    page.get_by_label("Name", exact=False).first.fill("fast")
    page.get_by_role("button", name="Show all of Parallel migration").click()
    page.get_by_label("Parallel migration", exact=True).select_option("on")
    page.get_by_label("Parallel connections", exact=True).fill("3")
    find(page, "downtime limit")
    page.get_by_label("Downtime limit", exact=True).fill("0.3s")
    expect(page.get_by_text("300 ms", exact=True)).to_be_visible()
    page.get_by_role("button", name="Create").click()
    settled(page)
    expect(page).to_have_url(re.compile("/profiles/fast$"))
    expect(page.get_by_role("row", name=re.compile("^multifd_channels 3"))).to_be_visible()
    stored = it.client.get("/profiles/fast")
    assert stored["values"] == {"multifd": True, "multifd_channels": 3, "downtime_limit_ms": 300}

    page.get_by_role("link", name="Edit").click()
    settled(page)
    revise(page, "Parallel connections", "2", "two cores")
    expect(page.get_by_role("row", name=re.compile("^multifd_channels 2"))).to_be_visible()
    latest = page.get_by_role("grid", name="Revisions").locator("tbody").first
    expect(latest).to_contain_text("two cores")
    latest.get_by_role("button", name="Details").click()
    expect(latest.locator("del")).to_have_text("3")
    expect(latest.locator("ins")).to_have_text("2")

    page.get_by_role("button", name="Restore").click()
    alert(page, "Restored revision 1")
    expect(page.get_by_role("row", name=re.compile("^multifd_channels 3"))).to_be_visible()
    assert it.client.get("/profiles/fast")["values"] == stored["values"]


def test_what_does_not_go_together_is_told_while_one_types(page: Page, watch: Watch) -> None:
    watch.refusals |= {"422"}
    page.goto("/profiles/new")
    page.get_by_label("Name", exact=False).first.fill("wrong")
    page.get_by_text("Show unset tunables").click()
    page.get_by_label("Parallel connections", exact=True).fill("0")
    create = page.get_by_role("button", name="Create")
    expect(create).to_be_disabled()
    expect(page.locator("#tunable-multifd_channels-help")).to_contain_text("1")
    page.get_by_role("button", name="Unset Parallel connections").click()
    expect(create).to_be_enabled()
    page.get_by_label("Zero-copy send", exact=True).select_option("on")
    expect(create).to_be_disabled()
    page.get_by_label("Parallel migration", exact=True).select_option("on")
    expect(create).to_be_enabled()


def test_a_name_that_is_taken_is_refused(it: Live, page: Page, watch: Watch) -> None:
    it.profile("taken", multifd=True)
    watch.refusals |= {"409"}
    page.goto("/profiles/new")
    page.get_by_label("Name", exact=False).first.fill("taken")
    page.get_by_role("button", name="Create").click()
    alert(page, "taken")
    expect(page).to_have_url(re.compile("/profiles/new$"))


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(
    it: Live, page: Page, watch: Watch
) -> None:
    it.profile("shared", downtime_limit_ms=300)
    watch.refusals |= {"412"}
    page.goto("/profiles/shared/edit")
    settled(page)
    it.client.put("/profiles/shared", {"values": {"downtime_limit_ms": 200}}, if_match='"1"')
    revise(page, "Downtime limit", "100", "mine")
    alert(page, "Another user has changed this profile")
    assert it.client.get("/profiles/shared")["values"] == {"downtime_limit_ms": 200}


def test_a_profile_that_is_assigned_is_not_deleted(it: Live, page: Page, watch: Watch) -> None:
    it.profile("in-use", downtime_limit_ms=300)
    watch.refusals |= {"409"}
    page.goto("/profiles/in-use")
    page.get_by_label("Which").fill("tier=none")
    page.get_by_role("button", name="Assign").click()
    expect(page.get_by_role("grid", name="Assignments")).to_contain_text("tier=none")
    page.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Delete").click()
    alert(page, "in-use was not deleted")
    page.get_by_role("button", name=re.compile("^Close Danger alert")).click()
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_role("grid", name="Assignments")).to_have_count(0)
    page.get_by_role("button", name="Delete", exact=True).click()
    dialog.get_by_role("button", name="Delete").click()
    expect(page).to_have_url(re.compile("/profiles$"))
    alert(page, "in-use was deleted")


def test_what_is_rounded_and_what_a_plan_refuses_is_told_in_the_editor(page: Page) -> None:
    page.goto("/profiles/new")
    find(page, "bandwidth limit")
    limit = page.get_by_label("Bandwidth limit", exact=True)
    told = page.locator("#tunable-max_bandwidth_bytes_per_s-help")
    limit.fill("10Gbit/s")
    expect(told).to_contain_text("10Gbit/s is rounded to 1,192 MiB/s: libvirt takes whole MiB/s")
    limit.fill("125000000")
    expect(told).to_contain_text("a plan refuses it on hosts with libvirt")
    expect(told).to_contain_text("use 119 MiB/s or 120 MiB/s")
    limit.fill("100MiB/s")
    expect(told).not_to_contain_text("libvirt")


def test_only_what_is_set_is_shown_and_a_summary_leads_to_what_is_wrong(
    it: Live, page: Page, watch: Watch
) -> None:
    watch.refusals |= {"422"}
    it.profile("short", multifd=True, multifd_channels=2)
    page.goto("/profiles/short/edit")
    settled(page)
    connections = page.get_by_label("Parallel connections", exact=True)
    expect(connections).to_be_visible()
    expect(page.get_by_label("zlib level", exact=True)).to_have_count(0)
    connections.fill("0")
    wrong = page.get_by_role("region", name="What is wrong")
    expect(wrong).to_contain_text("1 problem")
    find(page, "nothing has these words")
    expect(connections).to_have_count(0)
    wrong.get_by_role("button", name="Parallel connections").click()
    expect(connections).to_be_focused()
    expect(page.get_by_role("button", name="Save as a new revision")).to_be_in_viewport()


def test_a_copy_is_compared_side_by_side(it: Live, page: Page) -> None:
    it.profile("first", multifd=True, downtime_limit_ms=300)
    page.goto("/profiles/first")
    page.get_by_role("link", name="Clone").click()
    expect(page.get_by_label("Name", exact=False).first).to_have_value("first-copy")
    page.get_by_label("Downtime limit", exact=True).fill("500ms")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", name="first-copy", level=1)).to_be_visible()
    page.get_by_role("link", name="Compare").click()
    page.get_by_label("Compared with").select_option("first")
    sides = page.get_by_role("grid", name="Values side by side")
    differs = sides.get_by_role("row", name=re.compile("^downtime_limit_ms"))
    expect(differs).to_contain_text("500 ms")
    expect(differs).to_contain_text("300 ms")
    expect(sides.get_by_role("row", name=re.compile("^multifd"))).to_have_count(0)
    page.get_by_text("Show equal values").click()
    expect(sides.get_by_role("row", name=re.compile("^multifd on"))).to_be_visible()
