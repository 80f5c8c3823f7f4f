"""Takes the README's pictures, of what the other tests use: `make screenshots`."""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Watch, settled
from tests.support.live import Live, wait_for
from tests.web.conftest import PLAN
from vmtune.model.workload import Workload

FOLDER = os.environ.get("SCREENSHOTS", "")
_TO_TOP = "(here) => here.scrollIntoView()"
MAX_BYTES = 200_000
pytestmark = [
    pytest.mark.skipif(not FOLDER, reason="`make screenshots` takes them"),
    pytest.mark.timeout(600),
]


def picture(page: Page, name: str) -> None:
    """Write what the window shows; no larger than a README should load."""
    file = Path(FOLDER) / f"{name}.png"
    page.screenshot(path=file, animations="disabled")
    assert file.stat().st_size < MAX_BYTES, f"{file} is too large"


def test_pictures_for_the_readme(it: Live, page: Page, watch: Watch) -> None:
    watch.refusals |= {"422"}  # of what is typed into the editor
    it.profile("slow-link", max_bandwidth_bytes_per_s="8MiB/s")
    it.profile(
        "fast", multifd=True, multifd_channels=2, multifd_compression="zstd", downtime_limit_ms=200
    )
    plan = {**PLAN, "name": "zstd", "title": "Parallel connections with zstd", "blocks": 8}
    plan["arms"] = [{"name": "stock"}, {"name": "tuned", "profile": "fast"}]
    campaign = str(it.client.post("/campaigns", plan)["id"])
    wait_for(lambda: it.client.get(f"/campaigns/{campaign}")["ended"], "it to end", within_s=500)
    busy = Workload(region_bytes=48 << 20, idle_ms=20)
    with it.vm(workload=busy) as vm, it.vm():
        it.client.post("/assignments", {"target": "vm", "key": vm.uuid, "profile": "fast"})
        for host in "ba":
            assert it.ended(it.migrate(vm, host, profile="fast"))["state"] == "completed"
        it.client.post(f"/vms/{vm.uuid}/applications", {})
        page.goto(f"/vms/{vm.uuid}")
        settled(page)
        picture(page, "vm")

        page.goto("/profiles/fast/edit")
        settled(page)
        page.get_by_role("button", name="Show all of Parallel migration").click()
        page.get_by_label("zstd level", exact=True).fill("33")
        expect(page.locator("#tunable-multifd_zstd_level-help")).to_contain_text("20")
        page.get_by_label("Parallel connections", exact=True).evaluate(_TO_TOP)
        picture(page, "profile")

        page.goto(f"/bench/compare?campaign={campaign}")
        settled(page)
        page.get_by_role("heading", name=re.compile("^tuned compared to stock")).evaluate(_TO_TOP)
        picture(page, "compare")

        running = it.migrate(vm, "b", profile="slow-link")
        page.goto(f"/migrations/{running['id']}")
        counted = page.get_by_text(re.compile("^[5-9][0-9] samples|^[1-9][0-9]{2} samples"))
        expect(counted).to_be_visible(timeout=60_000)
        page.get_by_role(
            "img", name="Throughput and dirty rate over time"
        ).scroll_into_view_if_needed()
        picture(page, "migration")
        page.goto("/")
        settled(page)
        expect(page.get_by_text(re.compile(r"iteration \d+ · "))).to_be_visible()
        picture(page, "overview")
        it.client.delete(f"/migrations/{running['id']}")
        it.ended(running)
