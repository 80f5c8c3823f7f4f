"""A forecast of a migration, in the dialog that would start it."""

import re

from playwright.sync_api import Page, expect

from tests.support.hosts.live import Live
from tests.web.test_vms import choose


def test_profiles_are_compared_before_the_migration(it: Live, page: Page) -> None:
    it.profile("forecast", max_bandwidth_bytes_per_s="64MiB/s", downtime_limit_ms=300)
    with it.vm() as vm:
        page.goto(f"/vms/{vm.uuid}")
        dialog = choose(page, "Migrate", "forecast")
        dialog.get_by_label("Destination").select_option("b")
        card = dialog.get_by_role("region", name="Forecast")
        card.get_by_role("button", name=re.compile("^Forecast")).click()
        expect(card).to_contain_text("Measuring how the guest dirties its memory")
        told = card.get_by_role("grid", name="Forecast")
        expect(told).to_contain_text("forecast", timeout=90_000)  # measuring takes some 20 s
        expect(told).to_contain_text(re.compile(r"(yes|may not|no:).*\d\sm?s"))
        expect(card).to_contain_text("Measured")
