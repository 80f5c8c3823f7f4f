"""A host is emptied in a browser: planned, started, followed to its end."""

import re

from playwright.sync_api import Page, expect

from tests.support.browser import settled
from tests.support.live import Live


def test_planned_on_the_hosts_page_and_followed_to_the_end(it: Live, page: Page) -> None:
    with it.vm(memory_bytes=64 << 20) as vm:
        page.goto("/hosts/a")
        page.get_by_role("link", name="Evacuate").click()
        expect(page).to_have_url(re.compile("/hosts/a/evacuate$"))
        row = page.get_by_role("row", name=re.compile(vm.name))
        expect(row).to_contain_text("moves")
        page.get_by_role("checkbox", name="b", exact=True).check()
        settled(page)
        assert it.client.get("/hosts/a/evacuations")["items"] == []

        page.get_by_role("button", name=re.compile(r"^Move \d+ VMs?$")).click()
        expect(page).to_have_url(re.compile("/hosts/a/evacuations/[-0-9a-f]{36}$"))
        expect(row.get_by_text("moved", exact=True)).to_be_visible(timeout=60_000)
        expect(page.get_by_role("button", name="Cancel evacuation")).to_have_count(
            0, timeout=60_000
        )
        settled(page)
        assert it.states(vm) == {"b": "running"}
        page.goto("/hosts/a")
        table = page.get_by_role("grid", name="Evacuations")
        expect(table).to_contain_text(re.compile("completed|incomplete"))
