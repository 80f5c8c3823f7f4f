"""Documents as the API gives them, small, for tests of the command."""

from __future__ import annotations

from typing import Any

VM = "11111111-2222-3333-4444-555555555555"
OTHER_VM = "66666666-2222-3333-4444-555555555555"
MIGRATION = "aaaaaaaa-2222-3333-4444-555555555555"
APPLICATION = "bbbbbbbb-2222-3333-4444-555555555555"
AT = "2026-11-21T04:00:00Z"


def shown(value: Any, text: str) -> dict[str, Any]:
    return {"value": value, "text": text}


def reading(value: Any, text: str, **parts: Any) -> dict[str, Any]:
    return {
        "value": value,
        "text": text,
        "parts": parts,
        "part_texts": {owner: str(part) for owner, part in parts.items()},
        "why_unknown": "",
    }


def vm(name: str = "db1", uuid: str = VM, host: str = "rack1") -> dict[str, Any]:
    return {
        "uuid": uuid,
        "name": name,
        "host": host,
        "state": "running",
        "labels": {},
        "tuning_state": "drifted",
        "tuning": {
            "state": "drifted",
            "profile": "fast",
            "revision": 3,
            "application": None,
            "differing": ["multifd"],
            "as_of": "2026-11-21T09:00:00Z",
            "since": "2026-11-21T08:00:00Z",
        },
        "unreachable": None,
        "migration": None,
        "migration_state": None,
    }


def host(name: str = "rack1", **changes: Any) -> dict[str, Any]:
    """A host that answers."""
    return {
        "name": name,
        "uri": f"qemu+ssh://root@{name}/system",
        "peer_uri": "",
        "migration_address": "",
        **dict.fromkeys(("migrate_uri", "listen_address", "disks_uri"), ""),
        "created_at": AT,
        "owner": "",
        "maintenance_since": None,
        "state": "up",
        "unreachable": None,
        "answered_at": AT,
        "qemu_version": "10.0.2",
        "libvirt_version": "11.3.0",
        "kernel": "6.12",
        "cpus": 64,
        "memory_bytes": 1 << 38,
        "memory_available_bytes": 1 << 37,
        "vm_count": 12,
        "finding_count": 0,
        **changes,
    }


def profile(revision: int = 3, **changes: Any) -> dict[str, Any]:
    values = {"multifd": True, "multifd_channels": 4, **changes}
    texts = {
        name: {True: "on", False: "off"}.get(value, str(value))
        if isinstance(value, bool)
        else str(value)
        for name, value in values.items()
    }
    return {
        "intent": None,
        "name": "fast",
        "description": "",
        "revision": revision,
        "values": values,
        "texts": texts,
        "steps": [],
        "step_texts": [],
        "note": "",
        "notes": [],
        "created_at": AT,
        "revised_at": AT,
    }


def outcome(status: str = "effective", reason: str = "") -> dict[str, Any]:
    return {
        "tunable": "downtime_limit_ms",
        "status": status,
        "wanted": shown(200, "200 ms"),
        "seen": shown(300, "300 ms") if status == "overwritten" else shown(200, "200 ms"),
        "reason": reason,
    }


def application(state: str = "applied", *statuses: str) -> dict[str, Any]:
    return {
        "id": APPLICATION,
        "vm": VM,
        "host": "rack1",
        "profile": "fast",
        "revision": 3,
        "values": {"downtime_limit_ms": 200},
        "texts": {"downtime_limit_ms": "200 ms"},
        "state": state,
        "best_effort": False,
        "outcomes": [outcome(status) for status in statuses],
        "problems": [],
        "created_at": AT,
        "ended_at": AT,
    }


def verification(clean: bool = True) -> dict[str, Any]:
    return {
        "vm": VM,
        "host": "rack1",
        "profile": "fast",
        "revision": 3,
        "application": None,
        "clean": clean,
        "outcomes": [outcome("effective" if clean else "overwritten")],
    }


def plan(clean: bool, *findings: dict[str, Any]) -> dict[str, Any]:
    item = {
        "tunable": "multifd",
        "wanted": shown(True, "on"),
        "current": reading(clean, "on" if clean else "off"),
        "route": "migrate",
        "side": "both",
        "takes_effect": "at the next migration",
        "overwriter": "libvirt, at the start of each migration",
        "differs": not clean,
    }
    return {
        "vm": VM,
        "vm_name": "db1",
        "host": "rack1",
        "destination": None,
        "connection": "libvirt",
        "profile": "fast",
        "revision": 3,
        "clean": clean,
        "blockers": [f["code"] for f in findings if f["severity"] == "blocker"],
        "findings": list(findings),
        "items": [item],
        "steps": [],
        "step_texts": [],
        "disks": [],
        "intent": None,
        "virsh": {
            "command": "virsh -c qemu:///system migrate --live --p2p --parallel web-1 qemu+tls://b/",
            "flags": ["--parallel"],
            "options": [
                {"option": "--parallel", "value": "", "tunable": "multifd", "wanted": True}
            ],
            "not_expressed": [],
        },
    }


def finding(severity: str = "blocker") -> dict[str, Any]:
    return {
        "code": "optmem_too_low",
        "severity": severity,
        "overridable": severity == "blocker",
        "tunable": "zero_copy_send",
        "message": "net.core.optmem_max is 20480; zero-copy fails below 65536",
        "remedy": "run: sysctl -w net.core.optmem_max=1048576",
        "evidence": {"value": 20480},
    }


def migration(state: str = "queued", **changes: Any) -> dict[str, Any]:
    ended = state in ("completed", "failed", "cancelled", "unknown")
    totals = {
        "total_time_ms": 12345,
        "downtime_ms": 87,
        "setup_time_ms": 5,
        "transferred_bytes": 3 << 30,
        "iterations": 7,
        "missed_zero_copy": 0,
        "normal_bytes": 8 << 20,
    }
    return {
        "id": MIGRATION,
        "vm": VM,
        "vm_name": "db1",
        "source": "rack1",
        "destination": "rack2",
        "trigger": "vmtune",
        "profile": "fast",
        "revision": 3,
        "values": {"downtime_limit_ms": 200},
        "texts": {"downtime_limit_ms": "200 ms"},
        "overrides": [],
        "state": state,
        "ended": ended,
        "abort": "none",
        "failure": "",
        "problems": [],
        "missing_flags": [],
        "totals": totals if state == "completed" else None,
        "downtime_limit_ms": None,
        "downtime_exceeded": False,
        "intent_broken": False,
        "postcopy": None,
        "disks": [],
        "intent": None,
        "outcomes": [outcome()] if ended else [],
        "steps": [],
        "step_texts": [],
        "step_records": [],
        "reaper": None,
        "samples_kept": "whole",
        "samples_thinned_s": None,
        "created_at": AT,
        "started_at": AT,
        "active_at": None,
        "ended_at": AT if ended else None,
        "queued": False,
        "ahead": None,
        "waiting_reason": "",
        "controls": [],
        "phase": None,
        **changes,
    }


def step_record(number: int | None = 0, effect: str = "done", **changes: Any) -> dict[str, Any]:
    return {
        "number": number,
        "at_ms": 4210,
        "iteration": 5,
        "action": "set downtime_limit_ms to 500 ms",
        "reason": "4 iterations completed, and 4 were to be waited for",
        "effect": effect,
        "detail": "",
        "forecast": "",
        "steering": False,
        "values": {"downtime_limit_ms": 500},
        "of_copies": False,
        **changes,
    }


def reaper(end: str = "migration ended", **changes: Any) -> dict[str, Any]:
    return {
        "policy": "predict",
        "ring_entries": 65536,
        "end": end,
        "reason": "",
        "throughout": end == "migration ended",
        "round_count": 412,
        "rounds_before": 1,
        "filled_rounds": 0,
        "skipped_rounds": 0,
        "interruptions": 0,
        "ring_full_exits": None,
        "fullest": 0.61,
        "shortest_interval_ms": 50,
        "mean_interval_ms": 190.5,
        "longest_interval_ms": 1000,
        "mean_cost_ms": 7.2,
        **changes,
    }


def reaper_round(at_ms: int) -> dict[str, Any]:
    return {
        "at_ms": at_ms,
        "interval_ms": 190,
        "elapsed_ms": 197.5,
        "cost_ms": 7.5,
        "fills": [0.61, 0.02],
    }


def progress(share: float, **changes: Any) -> dict[str, Any]:
    data = {
        "share": share,
        "at_ms": 100,
        "status": "active",
        "iteration": 2,
        "transferred_bytes": 1 << 30,
        "remaining_bytes": 64 << 20,
        "total_bytes": 2 << 30,
        "dirty_bytes_per_s": 100 << 20,
        "throughput_bytes_per_s": 900 << 20,
        "throttle_percent": 20,
        "expected_downtime_ms": 250,
        **changes,
    }
    return {"id": None, "at": None, "topic": "migration", "subject": MIGRATION, "data": data}


def sample(at_ms: int) -> dict[str, Any]:
    return {
        "at_ms": at_ms,
        "status": "active",
        "iteration": 2,
        "boundary": False,
        "transferred_bytes": 1 << 30,
        "remaining_bytes": 64 << 20,
        "total_bytes": 2 << 30,
        "zero_pages": 1,
        "normal_pages": 2,
        "page_size_bytes": 4096,
        "dirty_pages_per_s": 25600,
        "throughput_bytes_per_s": 900 << 20,
        "multifd_bytes": 0,
        "postcopy_bytes": 0,
        "expected_downtime_ms": 250,
        "throttle_percent": 20,
        "missed_zero_copy": 0,
        "dirty_limit_throttle_us": 0,
        "dirty_limit_ring_full_us": 0,
    }
