"""A host is emptied in a browser: planned, started, followed to its end."""

import re

from playwright.sync_api import Page, expect

from tests.support.hosts.live import Live
from tests.support.served.browser import settled
from tests.web.test_clicks import navigate, within


def test_a_host_is_emptied_and_marked_safe_in_four_clicks(it: Live, page: Page) -> None:
    try:
        with it.vm(memory_bytes=64 << 20) as vm:
            page.goto("/")
            settled(page)
            with within(4) as hand:
                hand.click(navigate(page, "Hosts"))
                hand.click(page.get_by_role("link", name="a", exact=True))
                hand.click(page.get_by_role("link", name="Evacuate"))
                hand.click(page.get_by_role("button", name=re.compile(r"^Move \d+ VMs?$")))
                safe = page.get_by_text("a is in maintenance and runs no VMs: safe to reboot")
                expect(safe).to_be_visible(timeout=60_000)
            assert it.states(vm) == {"b": "running"}
            assert it.client.get("/hosts/a")["maintenance_since"] is not None
    finally:
        it.client.put("/hosts/a/maintenance", {"on": False})


def test_planned_on_the_hosts_page_and_followed_to_the_end(it: Live, page: Page) -> None:
    it.profile("on-the-move", downtime_limit_ms=480)
    with it.vm(memory_bytes=64 << 20) as vm:
        before = it.client.get("/hosts/a/evacuations")["items"]
        page.goto("/hosts/a")
        page.get_by_role("link", name="Evacuate").click()
        expect(page).to_have_url(re.compile("/hosts/a/evacuate$"))
        row = page.get_by_role("row", name=re.compile(vm.name))
        expect(row).to_contain_text("moves")
        page.get_by_role("checkbox", name="b", exact=True).check()
        page.get_by_role("checkbox", name="Begin maintenance of a").uncheck()
        page.get_by_label("Profile", exact=True).select_option("on-the-move")
        settled(page)
        assert it.client.get("/hosts/a/evacuations")["items"] == before

        page.get_by_role("button", name=re.compile(r"^Move \d+ VMs?$")).click()
        expect(page).to_have_url(re.compile("/hosts/a/evacuations/[-0-9a-f]{36}$"))
        expect(row.get_by_text("moved", exact=True)).to_be_visible(timeout=60_000)
        expect(page.get_by_role("button", name="Cancel evacuation")).to_have_count(
            0, timeout=60_000
        )
        settled(page)
        assert it.states(vm) == {"b": "running"}
        newest = next(it.client.items("/migrations", {"vm": vm.uuid}))
        assert (newest["profile"], newest["downtime_limit_ms"]) == ("on-the-move", 480)
        assert it.client.get("/hosts/a")["maintenance_since"] is None
        page.goto("/hosts/a")
        table = page.get_by_role("grid", name="Evacuations")
        expect(table).to_contain_text(re.compile("completed|incomplete"))
