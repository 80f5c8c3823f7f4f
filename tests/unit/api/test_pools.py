"""Coroutine pools and limits of the host, as the API gives and takes them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.served.api import Api, running_api
from tests.support.simulated.fakes import VM
from vmtune.api.wiring import limits
from vmtune.model.host.facts import MemoryMaps, VmFacts
from vmtune.model.host.limits import SYSCTLS

MAPS = "vm_max_map_count"
LIMITS = "/hosts/a/limits"


@pytest.fixture
async def root_api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Api]:
    """A service that is root on a machine whose sysctls are files, and may change them."""
    for row, value in zip(SYSCTLS.values(), (65530, 131072), strict=True):
        path = tmp_path / "sys" / row.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    (tmp_path / "sysctl.d").mkdir()
    monkeypatch.setattr(limits, "PROC_SYS", tmp_path / "sys")
    monkeypatch.setattr(limits, "SYSCTL_D", tmp_path / "sysctl.d")
    monkeypatch.setattr(limits.os, "geteuid", lambda: 0)
    async with running_api(tmp_path, options={"host_changes": True}) as api:
        yield api


async def test_a_vms_pool_and_its_headroom(api: Api) -> None:
    pool = await api.get(f"/vms/{VM}/pools")
    assert (pool["uuid"], pool["host"], pool["level"]) == (str(VM), "a", "fine")
    assert pool["design"] == "one shared pool of batches"
    assert (pool["threads"], pool["guest_requests"]) == (3, 4 * 256)
    assert pool["soft_limit"] == 128 + 4 * 128
    assert pool["left"] == pool["limit"] - pool["max_maps"]
    assert (pool["maps"], pool["left_now"], pool["findings"]) == (None, None, [])
    await api.refused("GET", "/vms/00000000-0000-4000-8000-000000000001/pools", status=404)


async def test_a_pool_that_is_nearly_full_says_what_mends_it(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = api.drivers["a"]
    probe = driver.vm_facts

    async def crowded(vm: object) -> VmFacts:
        return replace(await probe(VM), maps=MemoryMaps(1_000_000, 400_000))

    monkeypatch.setattr(driver, "vm_facts", crowded)
    (pool,) = (await api.get("/hosts/a/pools"))["items"]
    assert (pool["maps"], pool["stacks"], pool["level"]) == (1_000_000, 400_000, "blocker")
    (finding,) = [f for f in pool["findings"] if f["severity"] == "blocker"]
    assert finding["code"] == "maps_nearly_exhausted"
    assert "sysctl -w vm.max_map_count=" in finding["remedy"]
    plan = await api.ask("POST", f"/vms/{VM}/plan", {})
    assert "maps_nearly_exhausted" in {f["code"] for f in plan["findings"]}


async def test_limits_are_shown_set_and_restored(root_api: Api, tmp_path: Path) -> None:
    live = tmp_path / "sys/vm/max_map_count"
    shown = await root_api.get(LIMITS)
    assert [(r["sysctl"], r["value"], r["before"]) for r in shown["items"]] == [
        ("vm.max_map_count", 65530, None),
        ("net.core.optmem_max", 131072, None),
    ]
    body = {"values": {MAPS: 262144}}
    (row, _) = (await root_api.ask("PUT", LIMITS, body))["items"]
    assert (row["value"], row["before"], row["claims"]) == (262144, 65530, {"operator": 262144})
    assert int(live.read_text()) == 262144
    assert "262144" in (tmp_path / "sysctl.d/99-vmtune.conf").read_text()
    (row, _) = (await root_api.ask("DELETE", LIMITS))["items"]
    assert (row["value"], row["before"], row["claims"], row["held"]) == (65530, None, {}, "")
    assert list((tmp_path / "sysctl.d").iterdir()) == []


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({MAPS: 1024}, (f"values.{MAPS}", "out_of_range")),
        ({MAPS: "many"}, (f"values.{MAPS}", "invalid_value")),
        ({MAPS: None}, (f"values.{MAPS}", "invalid_value")),
        ({"multifd": True}, ("values.multifd", "unknown_limit")),
    ],
)
async def test_bad_limits_change_nothing(
    root_api: Api, tmp_path: Path, values: object, problem: tuple[str, str]
) -> None:
    found = await root_api.refused("PUT", LIMITS, {"values": values}, status=422)
    assert found == [problem]
    assert (tmp_path / "sys/vm/max_map_count").read_text() == "65530\n"


async def test_limits_are_not_set_where_host_changes_are_not_allowed(api: Api) -> None:
    body = {"values": {MAPS: 262144}}
    found = await api.refused("PUT", LIMITS, body, status=403)
    assert found == [("host", "host_changes_not_allowed")]
