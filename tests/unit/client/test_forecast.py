"""``vmtune forecast``."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.support.examples import api_documents as docs
from tests.support.served.api import Api
from tests.support.served.stub_service import StubService, page
from tests.support.simulated.fakes import VM
from tests.unit.client.conftest import Vmtune
from vmtune.client.views.forecast import lines
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
    usual["corrected_by"] = {}
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


def test_it_says_by_how_many_own_records_it_is_corrected(
    service: StubService, vmtune: Vmtune
) -> None:
    answer(service, candidate("fast", ENDS, corrected_by={"total_time": 43, "silence": 40}))
    assert "adjusted using 43 recorded migrations" in vmtune("forecast", "db1", "--to", "rack2").out
    answer(service, candidate("fast", ENDS))
    assert "corrected" not in vmtune("forecast", "db1", "--to", "rack2").out


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


def accuracy(**more: Any) -> dict[str, Any]:
    usual = {"count": 20, "median_error": 0.05, "p90_error": 0.31, "median_off": 400.0}
    usual |= {"p90_off": 2_000.0, "within": 0.9, "others_count": 12}
    return {**usual, "others_median_error": 0.5, "others_p90_error": 7.8, **more}


def row(key: str | None, **more: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"key": key, "forecasts": 20, "ends_known": 19, "ends_right": 0.95}
    return {**usual, "may_not": 2, "total_time": accuracy(), "silence": None, "bytes": None, **more}


def checked(**more: Any) -> dict[str, Any]:
    rows = {"by_profile": [row(None), row("fast")], "by_path": [row("rack1 to rack2")]}
    item = {"basis": "before", "overall": row(None), **rows, "by_week": [row("2026-11-16")]}
    return {"truncated": False, "items": [item], **more}


def test_forecasts_are_held_against_what_happened(service: StubService, vmtune: Vmtune) -> None:
    service.on("GET", "/forecasts/check", checked())
    ran = vmtune("forecast", "check", "--profile", "fast", "--since", "2026-11-01T00:00:00Z")
    assert ran.code == 0
    assert (
        "20 forecasts; whether it ends: known for 19, right for 95%, 2 said it may not" in ran.out
    )
    assert "50%, 90 % within 780%" in ran.out
    rows = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "total time 20 5%, 400 ms 31%, 2.0 s 90% 50%, 90 % within 780%" in rows
    assert any(line.startswith("no profile 20 95% 5% to 31% 90%") for line in rows)
    assert not any("rack1" in line for line in rows)  # the only pair: as all together
    query = service.only("GET", "/forecasts/check").query
    assert query == {"profile": ["fast"], "since": ["2026-11-01T00:00:00Z"]}


def test_nothing_was_held_yet(service: StubService, vmtune: Vmtune) -> None:
    service.on("GET", "/forecasts/check", {"truncated": False, "items": []})
    assert "no forecasts" in vmtune("forecast", "check").out
    assert vmtune("forecast", "-o", "json", "check").document["items"] == []


@pytest.mark.parametrize(
    "before", [("run",), (), ("--json",), ("-o", "json"), ("--json", "run"), ("-q", "run")]
)
def test_a_vm_may_have_the_name_of_a_subcommand(
    service: StubService, vmtune: Vmtune, before: tuple[str, ...]
) -> None:
    answer(service, candidate("p", ENDS))
    service.on("GET", "/vms", page(docs.vm(name="check"), problems=[]))
    ran = vmtune("forecast", *before, "check", "--to", "rack2")
    assert (ran.code, service.only("POST", f"/vms/{docs.VM}/forecasts").body["fresh"]) == (0, False)


def test_a_migration_shows_its_forecast_next_to_its_outcome(
    service: StubService, vmtune: Vmtune
) -> None:
    record = docs.migration(state="completed", ended=True)
    kept = {"basis": "before", "made_at": "2026-11-21T09:00:00Z", "model": 1, "inputs": {}}
    figures = {"ends": True, "total_ms": between(9e3, 2e4, 3e4), "sent_bytes": None}
    figures |= {"silence_ms": between(20, 50, 90)}
    happened = {"ended": True, "total_ms": 25e3, "silence_ms": 100.0, "sent_bytes": 2e9}
    service.on("GET", f"/migrations/{record['id']}", record)
    service.on(
        "GET",
        f"/migrations/{record['id']}/forecasts",
        {"items": [{**kept, **figures, "happened": happened}]},
    )
    ran = vmtune("migration", "show", record["id"])
    said = " ".join(ran.out.split())
    assert "forecast before it: ends (it did), time 20 s (9.0 s to 30 s): 25 s" in said
    assert "silence 50 ms (20 ms to 90 ms): 100 ms" in said


def test_a_migration_without_a_forecast_of_before_says_why(
    service: StubService, vmtune: Vmtune
) -> None:
    record = docs.migration()
    reason = {"field": "forecast", "code": "c", "message": "nobody measured it", "remedy": ""}
    service.on("GET", f"/migrations/{record['id']}", record)
    path = f"/migrations/{record['id']}/forecasts"
    service.on("GET", path, {"items": [], "none_before": reason})
    said = " ".join(vmtune("migration", "show", record["id"]).out.split())
    assert "forecast before it: none: nobody measured it" in said


def test_no_line_is_wider_than_a_terminal(
    service: StubService, vmtune: Vmtune, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(service, candidate("fast", NEVER), candidate("slow", ENDS))
    found = vmtune("forecast", "db1", "--to", "rack2", "--json").document
    found["probe"]["points"] = [
        {"after_ms": ms, "dirty_bytes": 123_456_789} for ms in (100, 1_000, 4_000, 8_000, 16_000)
    ]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    shown = list(lines(found))
    assert max(len(each) for text in shown for each in text.splitlines()) <= 80
    assert any("It dirties" in text for text in shown)
