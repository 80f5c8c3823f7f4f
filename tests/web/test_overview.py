"""An operator's day in a browser: what needs attention, found and acted on in few clicks."""

import contextlib
import re

from playwright.sync_api import Page, expect

from tests.support.hosts.live import Live
from tests.support.served.browser import Watch, settled
from tests.web.test_clicks import navigate, within
from vmtune.client.connection.errors import ClientError
from vmtune.model.workload import Workload

AT_A_GLANCE = {"width": 1440, "height": 900}


def test_the_limit_of_a_running_migration_is_raised_in_two_clicks(it: Live, page: Page) -> None:
    it.profile("endless", max_bandwidth_bytes_per_s="4MiB/s", downtime_limit_ms=1)
    busy = Workload(region_bytes=8 << 20, dirty_mb_per_s=100)  # more than is sent, in short passes
    with it.vm(memory_bytes=64 << 20, workload=busy) as vm:
        running = it.migrate(vm, "b", profile="endless")
        page.goto("/")
        told = page.get_by_label("Needs attention")
        raises = told.get_by_role("button", name=f"Raise limit of {vm.name}")
        expect(raises).to_be_visible(timeout=120_000)
        with within(2) as hand:
            hand.click(raises)
            hand.click(page.get_by_role("button", name="Change now"))
            done = re.compile(f"Downtime limit of {vm.name} is .* now")
            expect(page.get_by_text(done).first).to_be_visible()
        record = it.client.get(f"/migrations/{running['id']}")
        (step,) = record["step_records"]
        assert step["action"].startswith("set downtime_limit_ms to ")
        with contextlib.suppress(ClientError):  # the limit has let it end
            it.client.delete(f"/migrations/{running['id']}")
        it.ended(running)


def test_a_running_migration_is_helped_on_its_page(it: Live, page: Page) -> None:
    it.profile("stuck", max_bandwidth_bytes_per_s="1MiB/s", downtime_limit_ms=1)
    with it.vm() as vm:
        running = it.migrate(vm, "b", profile="stuck")
        it.until_active(running)
        page.goto(f"/migrations/{running['id']}")
        with within(2) as hand:
            hand.click(page.get_by_role("button", name="Raise downtime limit"))
            hand.click(page.get_by_role("button", name="Change now"))
            expect(page.get_by_text(re.compile("Downtime limit is .* now")).first).to_be_visible()
        step = it.client.get(f"/migrations/{running['id']}")["step_records"][-1]
        assert step["action"].startswith("set downtime_limit_ms to ")

        # What it was not started for is told, and cannot be pressed.
        postcopy = page.get_by_role("button", name="Switch to post-copy")
        expect(postcopy).to_have_attribute("aria-disabled", "true")
        expect(page.get_by_text("it was started without postcopy", exact=False)).to_be_visible()

        page.get_by_role("button", name="Pause the guest").click()
        page.get_by_role("dialog").get_by_role("button", name="Pause the guest").click()
        expect(page.get_by_role("grid", name="Executed steps")).to_contain_text("pause the guest")
        it.client.delete(f"/migrations/{running['id']}")
        it.ended(running)
        assert it.states(vm) == {"a": "running"}, "it was resumed"


def test_a_token_is_revoked_in_three_clicks(it: Live, page: Page) -> None:
    made = it.client.post("/tokens", {"name": "lost", "scopes": ["read"]})
    page.goto("/")
    settled(page)
    with within(3) as hand:
        hand.click(navigate(page, "Settings"))
        hand.click(page.get_by_role("button", name="Revoke lost"))
        hand.click(page.get_by_role("dialog").get_by_role("button", name="Revoke"))
        expect(page.get_by_text("lost was revoked").first).to_be_visible()
    found = {each["id"]: each["state"] for each in it.client.items("/tokens")}
    assert found[made["id"]] == "revoked"


def test_ones_own_token_says_so(page: Page) -> None:
    page.goto("/settings")
    page.get_by_role("button", name="Revoke browser").click()
    dialog = page.get_by_role("dialog", name="Revoke your own token browser?")
    expect(dialog).to_contain_text("you will be signed out at once")
    dialog.get_by_role("button", name="Cancel").click()


def test_all_is_found_with_the_keyboard_alone(it: Live, page: Page, watch: Watch) -> None:
    watch.refusals |= {"404", "409"}  # the page stays open when the VM is shut off, and gone
    with it.vm(memory_bytes=64 << 20) as vm:
        list(it.client.items("/vms"))
        page.goto("/profiles")
        settled(page)
        page.keyboard.press("Control+k")
        page.keyboard.type(vm.name.upper())  # at once: the field is loaded meanwhile
        box = page.get_by_role("combobox", name=re.compile("^VM, host"))
        expect(box).to_have_value(vm.name.upper())
        expect(page.get_by_role("option").first).to_contain_text(vm.name)
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(f"/vms/{vm.uuid}$"))
        page.keyboard.press("Control+k")
        expect(box).to_be_focused()
        page.keyboard.type("add host")
        expect(page.get_by_role("option").first).to_contain_text("Add host")
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_contain_text("Add host")
        expect(page).to_have_url(re.compile("/hosts$"))


def test_rows_open_by_a_click_and_by_enter(it: Live, page: Page) -> None:
    page.goto("/hosts?search=a")
    row = page.get_by_role("grid", name="Hosts").get_by_role("row").nth(1)
    row.get_by_text("up", exact=True).click()
    expect(page).to_have_url(re.compile("/hosts/a$"))
    page.go_back()
    expect(page).to_have_url(re.compile(r"/hosts\?search=a$"))
    row.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/hosts/a$"))


def test_columns_and_order_are_in_the_address(it: Live, page: Page) -> None:
    page.goto("/hosts")
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("menuitem", name="libvirt").click()
    page.keyboard.press("Escape")
    grid = page.get_by_role("grid", name="Hosts")
    expect(grid.get_by_role("columnheader", name="libvirt")).to_have_count(0)
    grid.get_by_role("button", name="Name").click()
    expect(page).to_have_url(re.compile(r"/hosts\?hide=libvirt&sort=-name$"))
    expect(grid.get_by_role("row").nth(1)).to_contain_text("b")
    page.reload()
    expect(grid.get_by_role("row").nth(1)).to_contain_text("b")
    expect(grid.get_by_role("columnheader", name="libvirt")).to_have_count(0)


def test_the_overview_tells_what_happened_and_the_panel_who_did_it(it: Live, page: Page) -> None:
    page.set_viewport_size(AT_A_GLANCE)
    it.profile("strict", downtime_limit_ms=1)
    with it.vm(memory_bytes=64 << 20) as vm:
        page.goto("/")
        settled(page)
        page.get_by_role("button", name=re.compile("^Activity")).click()
        panel = page.get_by_role("list", name="Activity")
        running = it.migrate(vm, "b", profile="strict")
        done = panel.get_by_role("listitem").filter(has_text=f"migration of {vm.name}").first
        expect(done).to_be_visible()
        record = it.client.get(f"/migrations/{it.ended(running)['id']}")
        assert record["state"] == "completed", record["failure"]
        expect(done).to_contain_text("completed")
        expect(done).to_contain_text("by root")
        told = page.get_by_label("Needs attention")
        if record["downtime_exceeded"]:
            expect(told.get_by_role("link", name=vm.name)).to_be_visible()
        bar = page.locator(f'.vt-timeline a[title^="{vm.name}: a to b, completed"]')
        expect(bar).to_be_attached()
        page.get_by_role("button", name=re.compile("^Activity")).click()
        expect(panel).to_have_count(0)
    # No part of it is below the window's edge.
    main = page.locator("main")
    assert main.evaluate("each => each.scrollHeight <= each.clientHeight + 1")
