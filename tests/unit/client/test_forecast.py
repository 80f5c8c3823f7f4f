"""``vmtune forecast``."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import api_documents as docs
from tests.support.api import Api
from tests.support.fakes import VM
from tests.support.stub_service import StubService, page
from tests.unit.client.conftest import Vmtune
from vmtune.engine import dirty_probe


def between(low: float, likely: float, high: float) -> dict[str, float]:
    return {"low": low, "likely": likely, "high": high}


ENDS: dict[str, Any] = {
    "ends": True,
    "total_ms": between(11_000, 12_000, 14_200),
    "silence_ms": between(12, 31, 90),
    "sent_bytes": between(1 << 30, 1 << 30, 1 << 30),
    "passes": between(4, 4, 6),
    "throttle_percent": between(0, 0, 0),
    "needs": None,
}
NEVER: dict[str, Any] = {
    **dict.fromkeys(ENDS),
    "ends": False,
    "needs": {
        "downtime_limit_ms": 3100,
        "throughput_bytes_per_s": 1_300_000_000,
        "throttle_percent": 60,
    },
}


def candidate(profile: str, prospect: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    held = between(9e7, 1e8, 1.1e8)
    path = {"bytes_per_s": held, "switchover_bytes_per_s": held, "records": 2}
    usual: dict[str, Any] = {"revision": 1, "blockers": [], "throughput": path, "notes": []}
    usual["copy_of_disks"] = None
    return {"profile": profile, "prospect": prospect, **usual, **more}


def answer(service: StubService, *candidates: dict[str, Any]) -> None:
    dirtied = [{"after_ms": 64, "dirty_bytes": 1 << 20}, {"after_ms": 1024, "dirty_bytes": 1 << 24}]
    service.on("GET", "/vms", page(docs.vm(), problems=[]))
    service.on(
        "POST",
        f"/vms/{docs.VM}/forecasts",
        {
            "vm": docs.VM,
            "vm_name": "db1",
            "source": "rack1",
            "destination": "rack2",
            "probe": {
                "measured_at": "2026-11-21T09:00:00Z",
                "age_s": 61.0,
                "took_ms": 17_000,
                "memory_bytes": 4 << 30,
                "used_bytes": 1 << 30,
                "dirtied": dirtied,
            },
            "candidates": candidates,
        },
    )


def test_profiles_are_compared_line_by_line(service: StubService, vmtune: Vmtune) -> None:
    answer(service, candidate("slow", NEVER), candidate("fast", ENDS))
    ran = vmtune("forecast", "db1", "--to", "rack2", "--profile", "slow", "--profile", "fast")
    assert ran.code == 2
    assert "It dirties 16 MiB in 1.0 s; of 4 GiB 1 GiB in use; measured 61 s ago." in ran.out
    slow, fast = (line.split() for line in ran.out.splitlines() if " revision 1 " in line)
    assert slow[3] == "no"
    assert " ".join(fast[3:]).startswith("yes 12 s (11 s to 14 s) 30 ms (10 ms to 90 ms) 1 GiB")
    assert "slow revision 1: will not end by itself: needs a downtime limit of 3.1 s or" in ran.out
    assert "by 2 recorded migrations" in ran.out
    body = service.only("POST", f"/vms/{docs.VM}/forecasts").body
    assert body["profiles"] == ["slow", "fast"]


@pytest.mark.parametrize(
    ("prospect", "code"), [(ENDS, 0), (ENDS | {"ends": None}, 2), (NEVER, 2), (None, 2)]
)
def test_scripts_see_by_the_exit_code_whether_it_ends(
    service: StubService, vmtune: Vmtune, prospect: dict[str, Any] | None, code: int
) -> None:
    answer(service, candidate("p", prospect))
    ran = vmtune("forecast", "db1", "--to", "rack2", "--json")
    assert ran.code == code
    assert ran.document["candidates"][0]["prospect"] == prospect


def test_blockers_and_what_is_not_known_are_told(service: StubService, vmtune: Vmtune) -> None:
    note = {"field": "throughput", "code": "no_history", "message": "nothing", "remedy": "migrate"}
    answer(service, candidate("p", None, blockers=["vm_not_running"], notes=[note]))
    ran = vmtune("forecast", "db1", "--to", "rack2")
    assert "the plan has a blocker: vm_not_running" in ran.out
    assert "note: nothing\n  remedy: migrate" in ran.out


def test_the_copy_of_disks_is_told_as_a_part_of_the_whole(
    service: StubService, vmtune: Vmtune
) -> None:
    copy = {
        "bytes": between(2 << 30, 2 << 30, 2 << 30),
        "ms": between(4000, 5000, 9000),
        "bytes_per_s": None,
        "records": 0,
    }
    answer(service, candidate("p", ENDS, copy_of_disks=copy))
    ran = vmtune("forecast", "db1", "--to", "rack2")
    assert "of that the copy of disks 5.0 s (4.0 s to 9.0 s): 2 GiB, none is recorded" in ran.out


def test_against_the_service(real: Api, vmtune: Vmtune, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dirty_probe, "WINDOWS_MS", (50,))
    ran = vmtune(
        "forecast", str(VM), "--to", "b", "--throughput", "100",
        "--set", "max_bandwidth_bytes_per_s=50MiB/s", "--json",
    )  # fmt: skip
    assert ran.err == ""
    (found,) = ran.document["candidates"]
    assert found["throughput"]["bytes_per_s"]["likely"] == pytest.approx(50 << 20, rel=1e-3)
    assert found["throughput"]["switchover_bytes_per_s"]["likely"] == pytest.approx(
        100 << 20, rel=1e-3
    )
    assert found["prospect"]["total_ms"]["low"] > 0
    assert vmtune("forecast", str(VM), "--to", "nowhere").code == 1
    assert vmtune("forecast", str(VM)).code == 1
