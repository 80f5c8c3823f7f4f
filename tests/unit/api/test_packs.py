"""The pack of a patched QEMU, through the whole service, over fakes: planned, applied, verified
and reverted where QEMU has the patch, and told to be missing where it does not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.served.api import Api, running_api
from tests.support.simulated.fakes import VM
from tests.support.simulated.patched_qemu import CONSENTS, COUNTERS, SENDS, TYPE, PatchedQemu
from vmtune.errors import InvalidInput, SetupError
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.testing.fake.qemu import Fault, FaultKind

WANTED = {
    "qemu_reaper_policy": "fixed",
    "qemu_reaper_least_interval_us": "20ms",
    "qemu_pool_resize_period_s": 15,
}
OBJECT = "/objects/vmtune"


@asynccontextmanager
async def with_pack(
    folder: Path,
    *,
    patched: bool = True,
    consents: tuple[str, ...] = CONSENTS,
    ring: int = 65536,
) -> AsyncIterator[Api]:
    options = {"packs": ("qemu-patched",), "allow_qom": consents}
    async with running_api(folder, options=options) as api:
        driver = api.drivers["a"]
        driver.consents = api.container.settings.consents
        (path,) = driver.fakes
        if patched:
            driver.fakes[path] = PatchedQemu(network=driver.fakes[path].network)
        driver.fakes[path].ring.entries = ring
        yield api


async def readings(api: Api) -> Any:
    return (await api.get(f"/vms/{VM}/effective"))["readings"]


async def plan(api: Api) -> Any:
    return await api.ask("POST", f"/vms/{VM}/plan", {"profile": "p"})


async def test_a_packs_tunables_are_planned_applied_verified_and_reverted(tmp_path: Path) -> None:
    async with with_pack(tmp_path) as api:
        await api.profile(**WANTED)
        planned = await plan(api)
        assert planned["blockers"] == []
        items = {item["tunable"]: item for item in planned["items"]}
        assert set(items) == set(WANTED)
        policy = items["qemu_reaper_policy"]
        assert (policy["wanted"]["text"], policy["current"]["value"]) == ("fixed", "stock")
        assert (policy["route"], policy["takes_effect"]) == ("live", "now")
        assert items["qemu_reaper_least_interval_us"]["wanted"]["text"] == "20,000 us"
        assert api.source.commands and not api.source.properties.get(OBJECT)  # only asked

        done = await api.post(f"/vms/{VM}/applications", {"profile": "p"})
        assert done["state"] == "applied"
        assert {o["tunable"]: o["status"] for o in done["outcomes"]} == dict.fromkeys(
            WANTED, "effective"
        )
        now = api.source.properties[OBJECT]
        assert (now["reaper-policy"], now["reaper-interval-min"]) == ("fixed", 20_000)
        assert now["pool-resize-period"] == 15
        shown = await readings(api)
        assert shown["qemu_ring_full_exits_count"]["value"] == COUNTERS["ring-full-exits"]
        assert shown["qemu_coroutines_peak_count"]["value"] == 77
        assert shown["qemu_zero_copy_copied_count"]["value"] == SENDS["zero-copy-copied"]
        assert shown["qemu_flush_time_us"]["value"] == SENDS["flush-us"]
        assert (await api.ask("POST", f"/vms/{VM}/verify"))["clean"] is True

        now["pool-resize-period"] = 0  # behind vmtune's back
        verified = await api.ask("POST", f"/vms/{VM}/verify")
        status = {o["tunable"]: o["status"] for o in verified["outcomes"]}
        assert verified["clean"] is False
        assert status["qemu_pool_resize_period_s"] == "overwritten"

        reverted = await api.ask("POST", f"/applications/{done['id']}/revert")
        assert reverted["state"] == "reverted"
        assert (now["reaper-policy"], now["reaper-interval-min"]) == ("stock", 50_000)
        adds = [a for c, a in api.source.commands if c == "object-add"]
        assert adds == [{"qom-type": TYPE, "id": "vmtune"}]


async def test_defaults_make_no_object(tmp_path: Path) -> None:
    async with with_pack(tmp_path) as api:
        await api.profile(qemu_pool_resize_period_s=0, qemu_reaper_policy="stock")
        done = await api.post(f"/vms/{VM}/applications", {"profile": "p"})
        assert done["state"] == "applied"
        assert not api.source.properties.get(OBJECT)
        shown = await readings(api)
        assert shown["qemu_pool_resize_period_s"]["value"] == 0
        assert shown["qemu_ring_full_exits_count"]["why_unknown"] == f"the VM has no {TYPE}"


async def test_a_reaper_inside_is_not_effective_where_there_is_no_ring(tmp_path: Path) -> None:
    async with with_pack(tmp_path, ring=0) as api:
        await api.profile(qemu_reaper_policy="levels")
        planned = await plan(api)
        assert planned["blockers"] == ["reaper_needs_ring"]
        (item,) = planned["items"]
        assert (item["tunable"], item["takes_effect"]) == ("qemu_reaper_policy", "never")


async def test_on_an_unpatched_qemu_it_is_not_offered(tmp_path: Path) -> None:
    async with with_pack(tmp_path, patched=False) as api:
        await api.profile(**WANTED)
        found = (await plan(api))["findings"]
        assert {f["code"] for f in found} == {"not_offered_by_qemu"}
        assert {f["tunable"] for f in found} == set(WANTED)
        assert "the pack qemu-patched is for another" in found[0]["message"]
        await api.refused("POST", f"/vms/{VM}/applications", {"profile": "p"}, status=409)
        why = (await readings(api))["qemu_reaper_policy"]["why_unknown"]
        assert why == "this QEMU does not have it"


async def test_without_the_operators_consent_nothing_is_sent(tmp_path: Path) -> None:
    lacking = tuple(name for name in CONSENTS if name != f"{TYPE}.pool-resize-period")
    async with with_pack(tmp_path, consents=lacking) as api:
        await api.profile(**WANTED)
        (found,) = (await plan(api))["findings"]
        assert found["code"] == "pack_needs_consent"
        assert found["tunable"] == "qemu_pool_resize_period_s"
        assert found["remedy"].startswith(f"add {TYPE}.pool-resize-period to the setting allow_qom")
        await api.refused("POST", f"/vms/{VM}/applications", {"profile": "p"}, status=409)
        assert not [c for c, _ in api.source.commands if c in ("qom-set", "object-add")]


async def test_what_qemu_refuses_is_put_back(tmp_path: Path) -> None:
    async with with_pack(tmp_path) as api:
        wants = {"qemu_reaper_policy": "aimd", "qemu_reaper_least_interval_us": 900_000,
                 "qemu_reaper_most_interval_us": 500_000}  # fmt: skip
        await api.profile(**wants)
        api.source.faults.append(Fault(FaultKind.REFUSE, "qom-set", 3, "expects 100 to 400000"))
        failed = await api.post(f"/vms/{VM}/applications", {"profile": "p"})
        assert failed["state"] == "failed"
        (problem,) = failed["problems"]
        assert problem["field"] == "values.qemu_reaper_most_interval_us"
        assert problem["message"] == "expects 100 to 400000"
        now = api.source.properties[OBJECT]
        assert (now["reaper-policy"], now["reaper-interval-min"]) == ("stock", 50_000)


async def test_counters_cannot_be_set_and_the_table_tells_of_the_pack(tmp_path: Path) -> None:
    async with with_pack(tmp_path) as api:
        body = {"name": "p", "values": {"qemu_reaper_rounds_count": 3}}
        refused = [("values.qemu_reaper_rounds_count", "invalid_value")]
        assert await api.refused("POST", "/profiles", body, status=422) == refused
        row = await api.get("/tunables/qemu_reaper_policy")
        assert (row["pack"], row["read_only"], row["route"]) == ("qemu-patched", False, "live")
        assert row["choices"] == ["stock", "fixed", "levels", "aimd"]
        assert row["probe"].startswith("qom-list-properties of x-vmtune")
        assert (await api.get("/tunables/qemu_reaper_rounds_count"))["read_only"] is True
        names = [r["name"] for r in (await api.get("/tunables"))["items"]]
        assert names[: len(BUILT_IN)] == list(BUILT_IN)
        assert len(names) == len(BUILT_IN) + 24


async def test_what_stands_is_told_when_its_pack_is_no_longer_loaded(tmp_path: Path) -> None:
    async with with_pack(tmp_path) as api:
        await api.profile(**WANTED)
        done = await api.post(f"/vms/{VM}/applications", {"profile": "p"})
    kept = (tmp_path / "vmtune.db").read_bytes()
    async with running_api(tmp_path, hosts=(), stored=kept) as api:
        planned = await plan(api)
        assert {f["code"] for f in planned["findings"]} == {"pack_not_loaded"}
        reverted = await api.ask("POST", f"/applications/{done['id']}/revert")
        assert reverted["state"] == "applied"
        assert {p["code"] for p in reverted["problems"]} == {"pack_not_loaded"}
        assert (await api.get("/profiles/p"))["texts"]["qemu_pool_resize_period_s"] == "15"
        assert await api.container.applications.reapply(VM, api.drivers["a"]) == []


async def test_two_services_of_one_process_have_packs_of_their_own(tmp_path: Path) -> None:
    folders = [tmp_path / "with", tmp_path / "without"]
    for folder in folders:
        folder.mkdir()
    async with with_pack(folders[0]) as patched, running_api(folders[1]) as plain:
        values = {"name": "p", "values": WANTED}
        assert (await patched.post("/profiles", values))["texts"]["qemu_reaper_policy"] == "fixed"
        refused = await plain.refused("POST", "/profiles", values, status=422)
        assert refused == [(f"values.{name}", "unknown_tunable") for name in sorted(WANTED)]
        assert set(await readings(patched)) - set(await readings(plain)) >= set(WANTED)
        assert "qemu_reaper_policy" not in {
            r["name"] for r in (await plain.get("/tunables"))["items"]
        }
    assert "qemu_reaper_policy" not in BUILT_IN


@pytest.mark.parametrize(
    ("packs", "code"),
    [
        (("no-such",), "unknown_pack"),
        (("/no/such/file.toml",), "unreadable"),
        (("qemu-live", "qemu-live"), "duplicate_name"),
    ],
)
async def test_a_service_does_not_start_with_packs_that_cannot_be(
    tmp_path: Path, packs: tuple[str, ...], code: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        async with running_api(tmp_path, options={"packs": packs}):
            raise AssertionError("it started")
    assert [p.code for p in caught.value.problems] == [code]


def test_a_record_of_an_unknown_tunable_names_the_remedy() -> None:
    with pytest.raises(SetupError, match="its pack is not loaded") as caught:
        BUILT_IN.row("gone_count")
    assert "setting packs" in caught.value.problems[0].remedy
