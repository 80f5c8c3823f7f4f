"""Intents in a browser: judged, taken, migrated by, kept with profiles and given to evacuations."""

import re

from playwright.sync_api import Page, expect

from tests.support.hosts.live import Live
from tests.support.served.browser import Watch, settled
from vmtune.model.workload import Workload

_MEASURED_MS = 90_000  # measuring takes some 20 s


def test_the_nearest_intent_is_taken_and_its_migration_is_followed(it: Live, page: Page) -> None:
    # It ends by itself, only later: what it has written by then takes 5 s at 8 MiB/s.
    calm = Workload(region_bytes=48 << 20, dirty_mb_per_s=2)
    with it.vm(workload=calm) as vm:
        page.goto(f"/vms/{vm.uuid}")
        page.get_by_role("button", name="Migrate", exact=True).click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Destination").select_option("b")
        dialog.get_by_role("button", name=re.compile("^By intent")).click()
        dialog.get_by_label("Silence at most").fill("500 ms")
        dialog.get_by_label("Within", exact=True).fill("2 s")
        dialog.get_by_label("Bandwidth at most").fill("8 MiB/s")
        card = dialog.get_by_role("region", name="Intent", exact=True)
        card.get_by_role("button", name="Can it be kept?").click()
        expect(card).to_contain_text("It would be refused", timeout=_MEASURED_MS)
        card.get_by_role("button", name=re.compile("^Take within")).click()
        expect(card).to_contain_text("Will be kept")
        assert dialog.get_by_label("Within", exact=True).input_value() != "2 s"
        chosen = card.get_by_role("grid", name="Chosen settings")
        expect(chosen).to_contain_text("max_bandwidth_bytes_per_s")
        dialog.get_by_role("button", name="Migrate", exact=True).click()
        expect(page).to_have_url(re.compile("/migrations/[-0-9a-f]{36}$"))
        promised = page.get_by_text(re.compile(r"^Promised: silence of at most 500\sms, within"))
        expect(promised).to_be_visible()
        expect(page.get_by_role("heading", name="Steering")).to_be_visible()
        record = it.ended(it.client.get(f"/migrations/{page.url.rpartition('/')[2]}"))
        ends = "given up|kept" if record["state"] != "completed" else "; (not )?kept: .*, "
        expect(page.get_by_text(re.compile(f"^Promised: .*({ends})"))).to_be_visible()


def test_a_profile_has_an_intent_which_an_assignment_hands_on(
    it: Live, page: Page, watch: Watch
) -> None:
    watch.refusals.add("422")
    page.goto("/profiles/new")
    page.get_by_label("Name", exact=False).first.fill("gentle")
    page.get_by_label("Silence at most").fill("1 parsec")
    expect(page.get_by_text(re.compile("does not belong here")).first).to_be_visible()
    create = page.get_by_role("button", name="Create", exact=True)
    expect(create).to_be_disabled()
    page.get_by_label("Silence at most").fill("500ms")
    page.get_by_label("Slowdown at most").fill("20%")
    expect(page.get_by_role("checkbox", name="Throttle the guest")).to_be_checked()
    expect(create).to_be_enabled()
    create.click()
    expect(page).to_have_url(re.compile("/profiles/gentle$"))
    said = "silence at most 500 ms, slowdown at most 20 %"
    expect(page.get_by_text(re.compile(f"Intent of its migrations: {said}"))).to_be_visible()
    expect(page.get_by_text(re.compile(f"migrate by its intent: {said}"))).to_be_visible()
    page.get_by_label("Assign to").select_option("default")
    page.get_by_role("button", name=re.compile("^By intent")).click()
    page.get_by_label("Silence at most").fill("200ms")
    page.get_by_role("button", name="Assign", exact=True).click()
    table = page.get_by_role("grid", name="Assignments")
    expect(table).to_contain_text("silence at most 200 ms")
    table.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No assignments.")).to_be_visible()
    page.goto("/profiles/gentle/edit")
    expect(page.get_by_label("Silence at most")).to_have_value("500 ms")
    page.get_by_label("Silence at most").fill("")
    page.get_by_label("Slowdown at most").fill("")
    page.get_by_role("button", name="Save as a new revision").click()
    expect(page).to_have_url(re.compile("/profiles/gentle$"))
    settled(page)
    assert it.client.get("/profiles/gentle")["intent"] is None


def test_an_evacuation_takes_an_intent(it: Live, page: Page, watch: Watch) -> None:
    watch.refusals.add("422")
    with it.vm(memory_bytes=64 << 20) as vm:
        page.goto("/hosts/a/evacuate")
        expect(page.get_by_role("row", name=re.compile(vm.name))).to_contain_text("moves")
        page.get_by_role("button", name=re.compile("^By intent")).click()
        page.get_by_label("Silence at most").fill("2 min")
        page.get_by_label("Within", exact=True).fill("1 min")
        expect(page.get_by_text(re.compile("allow less silence")).first).to_be_visible()
        go = page.get_by_role("button", name=re.compile(r"^Move (\d+ )?VMs?$"))
        expect(go).to_be_disabled()
        page.get_by_label("Silence at most").fill("900 ms")
        page.get_by_role("checkbox", name="Begin maintenance of a").uncheck()
        expect(go).to_be_enabled()
        go.click()
        expect(page).to_have_url(re.compile("/hosts/a/evacuations/[-0-9a-f]{36}$"))
        expect(
            page.get_by_text(re.compile(r"^silence at most 900\sms, within 60\ss"))
        ).to_be_visible()
        page.get_by_role("button", name="Cancel evacuation").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel evacuation").click()
        expect(page.get_by_text("cancelled", exact=True).first).to_be_visible(timeout=60_000)
