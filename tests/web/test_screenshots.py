"""Takes the pictures of README and documentation, of the fleet of the demo: `make screenshots`, or
some of them by name: `make screenshots ONLY=overview,migrate`."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.support.hosts.live import Live, at_work, wait_for
from tests.support.served.browser import Watch, settled
from tests.web.conftest import PLAN
from tests.web.test_vms import choose
from vmtune import lab
from vmtune.admin.demo import overview as demo
from vmtune.model.workload import Workload

FOLDER = os.environ.get("SCREENSHOTS", "")
ONLY = frozenset(filter(None, os.environ.get("ONLY", "").split(",")))
NAMES = frozenset(each.stem for each in (Path(__file__).parents[2] / "docs/images").glob("*.png"))
"""Of all pictures that there are."""
_TO_TOP = "(here) => here.scrollIntoView()"
_PATIENCE_MS = 300_000
MAX_BYTES = 200_000
pytestmark = [
    pytest.mark.skipif(not FOLDER, reason="`make screenshots` takes them"),
    pytest.mark.timeout(2700),
]


def pictures(*names: str) -> pytest.MarkDecorator:
    """Marks a test that takes these pictures: it is left out where none of them is wanted."""
    assert NAMES.issuperset(names), names
    return pytest.mark.skipif(bool(ONLY) and ONLY.isdisjoint(names), reason="not in ONLY")


def test_pictures_are_asked_for_by_their_names() -> None:
    assert ONLY <= NAMES, f"no pictures: {sorted(ONLY - NAMES)}; there are {sorted(NAMES)}"


def picture(page: Page, name: str) -> None:
    """Write what the window shows, if it is wanted; nothing of it is loading, and it is no larger
    than a README should load."""
    settled(page)
    if ONLY and name not in ONLY:
        return
    file = Path(FOLDER) / f"{name}.png"
    page.screenshot(path=file, animations="disabled")
    assert file.stat().st_size < MAX_BYTES, f"{file} is too large"


@pytest.fixture(scope="module")
def fast(it: Live) -> str:
    """A profile."""
    values = {"multifd": True, "multifd_channels": 2, "multifd_compression": "zstd"}
    it.profile("fast", **values, downtime_limit_ms=200)
    return "fast"


@pytest.fixture(scope="module")
def compared(it: Live, fast: str) -> str:
    """The id of a campaign that has ended."""
    scenario = {**PLAN["scenario"], "name": "lab/small-guest"}
    plan = {**PLAN, "name": "zstd", "title": "Parallel connections with zstd", "blocks": 8}
    plan |= {"scenario": scenario, "arms": [{"name": "stock"}, {"name": "tuned", "profile": fast}]}
    campaign = str(it.client.post("/campaigns", plan)["id"])
    wait_for(lambda: it.client.get(f"/campaigns/{campaign}")["ended"], "it to end", within_s=900)
    return campaign


@dataclass(frozen=True)
class Shown:
    """The demo's fleet: its VMs by name, and the migration that does not end by itself."""

    vms: Mapping[str, str]
    running: Mapping[str, Any]  # any JSON


@pytest.fixture(scope="module")
def shown(it: Live, fast: str) -> Shown:
    """The demo's fleet, after a migration that has ended."""
    demo.fill(it.settings, it.client, ("a", "b"), verbose=False)
    it.profile("zero-copy", multifd=True, multifd_channels=4, zero_copy_send=True)
    vms = {vm["name"]: vm["uuid"] for vm in it.client.items("/vms")}
    quiet = Workload(region_bytes=8 << 20, idle_ms=500)
    mail = lab.define_vm(
        it.settings, lab.VmSettings(name="mail1", memory_bytes=96 << 20, workload=quiet)
    )
    wait_for(lambda: at_work(mail), "the guest to write", within_s=120)
    list(it.client.items("/vms"))  # the overview counts the VMs that were seen
    for to in ("b", "a", "b"):
        moved = it.migrate(mail, to, profile=fast)
        assert it.ended(moved)["state"] == "completed"
    (running,) = it.client.items("/migrations", {"vm": vms[demo.MIGRATING]})
    return Shown(vms, running)


@pictures("overview")
@pytest.mark.usefixtures("compared", "shown")  # in this order: the campaign has the machine alone
def test_the_overview(page: Page) -> None:
    page.goto("/")
    compared = page.get_by_text("tuned compared to stock")  # which is computed when first asked for
    expect(compared).to_be_visible(timeout=_PATIENCE_MS)
    said = page.get_by_label("Needs attention").get_by_text("will not end by itself")
    expect(said).to_be_visible(timeout=_PATIENCE_MS)
    picture(page, "overview")


@pictures("compare")
def test_picture_of_a_comparison(compared: str, page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 1040})  # down to the last verdict
    page.goto(f"/bench/compare?campaign={compared}")
    settled(page)
    # Which metrics are shown, and the charts, come after the verdict.
    expect(page.get_by_text("Longest silence of the guest").first).to_be_visible()
    expect(page.locator("canvas").first).to_be_visible()
    page.get_by_role("heading", name=re.compile("^tuned compared to stock")).evaluate(_TO_TOP)
    picture(page, "compare")


@pictures("vm", "migrate")
def test_a_vm_and_the_dialog_that_migrates_it(shown: Shown, page: Page, watch: Watch) -> None:
    watch.refusals |= {"422"}  # of what is typed
    page.goto(f"/vms/{shown.vms[demo.DRIFTED]}")
    expect(page.get_by_text("Drifted from")).to_be_visible()
    expect(page.get_by_role("grid", name="Settings")).to_be_visible()
    page.get_by_text("Drifted from").evaluate(_TO_TOP)
    row = page.get_by_role("row").filter(has_text=demo.POLLING)
    expect(row.get_by_text("overwritten", exact=True)).to_be_in_viewport()
    picture(page, "vm")
    dialog = choose(page, "Migrate", "zero-copy")
    dialog.get_by_label("Destination").select_option("b")
    expect(dialog.get_by_label("Plan")).to_contain_text("zero_copy_send")
    picture(page, "migrate")


@pictures("profile")
@pytest.mark.usefixtures("fast")
def test_the_editor_of_profiles(page: Page, watch: Watch) -> None:
    watch.refusals |= {"422"}  # of what is typed
    page.goto("/profiles/fast/edit")
    settled(page)
    page.get_by_role("button", name="Show all of Parallel migration").click()
    page.get_by_label("zstd level", exact=True).fill("33")
    expect(page.locator("#tunable-multifd_zstd_level-help")).to_contain_text("above the most")
    page.get_by_label("Parallel connections", exact=True).evaluate(_TO_TOP)
    picture(page, "profile")


@pictures("migration", "evacuation")
def test_a_migration_that_is_helped_and_an_evacuation(
    it: Live, shown: Shown, page: Page, watch: Watch
) -> None:
    watch.refusals |= {"404", "409"}  # of a VM that is migrating
    running, vms = shown.running, shown.vms
    page.goto(f"/migrations/{running['id']}")
    page.get_by_role("button", name="Change bandwidth").click()
    page.get_by_role("dialog").get_by_role("textbox").fill("100MiB/s")
    page.get_by_role("button", name="Change now").click()
    expect(page.get_by_text("completed", exact=True)).to_be_visible(timeout=_PATIENCE_MS)
    page.get_by_role("button", name="Close Success").click()
    path = f"/migrations/{running['id']}"
    # QEMU has completed some seconds before the record ends, and its last samples are stored.
    step = it.ended(running)["step_records"][-1]["at_ms"]
    sampled = list(it.client.items(f"{path}/samples"))
    assert sampled[-1]["at_ms"] > step, "QEMU was asked after the step, too"
    expect(page.get_by_text(f"{len(sampled)} samples;")).to_be_visible()
    page.get_by_role("heading", name="Convergence steps").evaluate(_TO_TOP)
    picture(page, "migration")

    first = {"tier": "cache", "priority": "9"}
    it.client.put(f"/vms/{vms['cache1']}/labels", {"labels": first})
    # Slow enough to be seen, and with time for what these guests write twice a second.
    it.profile("unhurried", max_bandwidth_bytes_per_s="10MiB/s", downtime_limit_ms=2000)
    order = {"profile": "unhurried", "max_outgoing": 1}
    moves = it.client.post("/hosts/b/evacuations", order)
    page.goto(f"/hosts/b/evacuations/{moves['id']}")
    expect(page.get_by_text("moved", exact=True).first).to_be_visible(timeout=_PATIENCE_MS)
    page.get_by_role("button", name="Close Success").click()
    row = page.get_by_role("row").filter(has_text="migrating").first
    expect(row).to_be_visible(timeout=_PATIENCE_MS)
    picture(page, "evacuation")
    it.client.delete(f"/hosts/b/evacuations/{moves['id']}")


_MEASURED_MS = 90_000  # measuring takes some 20 s


@pictures("intent-refused", "intent-kept", "steering")
def test_an_intent_that_is_refused_and_its_nearest_which_is_steered(it: Live, page: Page) -> None:
    # More than the path carries, also of a busy machine: its guest has to be throttled.
    busy = Workload(region_bytes=48 << 20, dirty_mb_per_s=80)
    settings = lab.VmSettings(name="stream1", memory_bytes=96 << 20, workload=busy)
    stream = lab.define_vm(it.settings, settings)
    wait_for(lambda: at_work(stream), "the guest to write", within_s=120)
    page.set_viewport_size({"width": 1280, "height": 1040})
    page.goto(f"/vms/{stream.uuid}")
    page.get_by_role("button", name="Migrate", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Destination").select_option("b")
    dialog.get_by_role("button", name=re.compile("^By intent")).click()
    dialog.get_by_label("Silence at most").fill("500 ms")
    dialog.get_by_label("Within", exact=True).fill("1 min")
    dialog.get_by_label("Slowdown at most").fill("5 %")
    dialog.get_by_label("Bandwidth at most").fill("24 MiB/s")
    card = dialog.get_by_role("region", name="Intent", exact=True)
    card.get_by_role("button", name="Can it be kept?").click()
    expect(card).to_contain_text("It would be refused", timeout=_MEASURED_MS)
    dialog.get_by_role("button", name=re.compile("^By intent")).evaluate(_TO_TOP)
    picture(page, "intent-refused")
    card.get_by_role("button", name=re.compile("^Take slowdown")).click()
    expect(card).to_contain_text("Will be kept")
    expect(card.get_by_role("grid", name="Chosen settings")).to_be_visible()
    dialog.get_by_role("button", name=re.compile("^By intent")).evaluate(_TO_TOP)
    picture(page, "intent-kept")
    dialog.get_by_role("button", name="Migrate", exact=True).click()
    expect(page).to_have_url(re.compile("/migrations/[-0-9a-f]{36}$"))
    path = f"/migrations/{page.url.rpartition('/')[2]}"
    record = it.ended(it.client.get(path))
    assert record["state"] == "completed", record["failure"]
    expect(page.get_by_text(re.compile("^Promised: .*; kept"))).to_be_visible()
    page.get_by_role("heading", name="Intent", exact=True).evaluate(_TO_TOP)
    expect(page.get_by_role("list", name="Steering actions")).to_be_in_viewport(ratio=1)
    picture(page, "steering")


def in_host_a(it: Live, *command: str) -> str:
    """What a command in the network of host a says."""
    inside = ["ip", "netns", "exec", it.settings.name_a, *command]
    return subprocess.run(inside, capture_output=True, text=True, check=True).stdout


def _migration_ports(it: Live) -> set[str]:
    """Of the other host, to which host a is connected for migrations."""
    return set(re.findall(r":(49[12]\d\d)\b", in_host_a(it, "ss", "-Htn")))


@pictures("attention", "postcopy")
@pytest.mark.usefixtures("shown")
def test_what_was_interrupted(it: Live, page: Page) -> None:
    slowly = dict.fromkeys(
        ("max_bandwidth_bytes_per_s", "max_postcopy_bandwidth_bytes_per_s"), "1MiB/s"
    )
    it.client.post("/profiles", {
        "name": "post-copy-at-once",
        "values": {"postcopy": True, "postcopy_recovery": "manual", **slowly},
        "steps": [{"when": {"after_iterations": 0}, "then": {"do": "postcopy"}}],
    })  # fmt: skip
    busy = Workload(region_bytes=48 << 20, dirty_mb_per_s=20)
    settings = lab.VmSettings(name="queue1", memory_bytes=96 << 20, workload=busy)
    queue = lab.define_vm(it.settings, settings)
    wait_for(lambda: at_work(queue), "the guest to write", within_s=120)
    others = _migration_ports(it)
    moving = it.migrate(queue, "b", profile="post-copy-at-once")

    def switched() -> bool:
        return any(step["effect"] == "done" for step in it.record(moving)["step_records"])

    wait_for(switched, "post-copy to begin", within_s=300)
    samples = f"/migrations/{moving['id']}/samples"
    wait_for(lambda: bool(list(it.client.items(samples))), "samples, stored some at a time")
    for port in _migration_ports(it) - others:
        in_host_a(it, "ss", "-K", "dport", "=", f":{port}")
    wait_for(lambda: it.record(moving)["state"] == "postcopy-paused", "it to be paused")
    moves = it.client.post("/hosts/b/evacuations", {"profile": "slow-link", "max_outgoing": 1})
    evacuation = f"/hosts/b/evacuations/{moves['id']}"
    it.client.post(f"{evacuation}/pause", {})
    page.goto("/")
    expect(page.get_by_text("evacuation stopped before its host was empty")).to_be_visible()
    picture(page, "attention")
    page.goto(f"/migrations/{moving['id']}")
    expect(page.get_by_text(re.compile("(are|were) still on a."))).to_be_visible()
    expect(page.get_by_text("recover it by hand")).to_be_visible()
    picture(page, "postcopy")
    page.goto("/vms")
    row = page.get_by_role("row").filter(has_text="queue1")
    expect(row.get_by_text("post-copy is paused")).to_be_visible()
    it.client.delete(evacuation)
    # The migration stays: some releases of libvirt cannot recover it.


STUDY = {
    "name": "capped-link",
    "title": "A migration over a link of 1 Gbit/s",
    "scenario": {
        "name": "docs/capped-link",
        "vm": {"memory_bytes": "256Mi"},
        "workload": {"region_bytes": "128Mi", "dirty_mb_per_s": 60, "beat_ms": 5},
        "values": {"max_bandwidth_bytes_per_s": "1Gbit/s", "downtime_limit_ms": "300ms"},
        "warmup_s": 1,
        "cooldown_s": 0,
        "max_seconds": 30,
    },
    "objective": "minimise total_time_ms, minimise source_cpu_ms "
    "where guest_silence_ms <= 500 and completed",
    "space": {
        "multifd": {},
        "multifd_channels": {"low": 1, "high": 8},
        "multifd_compression": {"choices": ["none", "zlib", "zstd"]},
        "xbzrle": {},
        "auto_converge": {},
        "cpu_throttle_initial_percent": {"low": 10, "high": 60, "step": 10},
    },
    "budget": {"runs": 66},
    "confirm_blocks": 6,
    "finalists": 2,
    "seed": 20261126,
}
"""That of docs/how-to/tune.md, which shows the file and what came of it."""


@pictures("study-search", "study-result", "study-analysis", "study-trials")
def test_pictures_of_a_study(it: Live, page: Page) -> None:
    id = it.client.post("/studies", STUDY)["id"]
    path = f"/studies/{id}"
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"/bench{path}")
    wait_for(lambda: it.client.get(path)["trials"] >= 12, "some trials", within_s=900)
    expect(page.get_by_text("searching, block")).to_be_visible(timeout=_PATIENCE_MS)
    expect(page.locator("canvas").first).to_be_visible()
    picture(page, "study-search")
    wait_for(lambda: it.client.get(path)["ended"], "it to end", within_s=1400)
    page.reload()
    expect(page.get_by_role("heading", name="Result")).to_be_visible()
    expect(page.locator("canvas").first).to_be_visible()
    picture(page, "study-result")
    page.get_by_role("heading", name="Importance of tunables").evaluate(_TO_TOP)
    picture(page, "study-analysis")
    page.get_by_role("heading", name="Trials", exact=True).evaluate(_TO_TOP)
    expect(page.get_by_role("columnheader", name="Runs")).to_be_in_viewport(ratio=1)
    picture(page, "study-trials")
    ran = subprocess.run(
        [sys.executable, "-m", "vmtune", "tune", "show", "capped-link"],
        env={**os.environ, "VMTUNE_SOCKET": str(it.client.socket_path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    print(ran.stdout)  # for the guide
