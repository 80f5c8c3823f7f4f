"""The command against the real application: SQLite, real routes, fake QEMUs."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from tests.support.served.api import Api
from tests.support.simulated.fakes import VM
from tests.unit.client.conftest import Vmtune
from vmtune.client.connection.http import Document
from vmtune.client.views.progress import Lines
from vmtune.model.migration.record import QemuStatus

pytestmark = pytest.mark.integration

ID = str(VM)


@pytest.fixture
def name(real: Api) -> str:
    return real.source.name


def test_health_and_tunables(real: Api, vmtune: Vmtune) -> None:
    health = vmtune("health")
    assert health.code == 0
    assert "status:           ok" in health.out
    table = vmtune("tunables").out
    assert "multifd_channels" in table
    assert "vm_max_map_count" not in vmtune("tunables", "--route", "migrate").out
    assert "--parallel" in vmtune("tunables", "multifd").out
    wrong = vmtune("tunables", "multifdd")
    assert wrong.code == 1
    assert "multifd" in wrong.err.split("remedy:")[1]


def test_the_life_of_a_profile(real: Api, vmtune: Vmtune, tmp_path: Path) -> None:
    file = tmp_path / "fast.toml"
    file.write_text('description = "quick"\n[values]\nmultifd = true\nmultifd_channels = 4\n')
    made = vmtune("profile", "create", "fast", "downtime_limit_ms=0.2s", "--file", str(file))
    assert made.code == 0, made.err
    assert "200 ms" in made.out
    changed = vmtune("profile", "set", "fast", "multifd_channels=8", "downtime_limit_ms-", "--json")
    assert changed.document["revision"] == 2
    assert changed.document["values"] == {"multifd": True, "multifd_channels": 8}
    history = vmtune("profile", "history", "fast").out
    assert "downtime_limit_ms from 200 ms to unset; multifd_channels from 4 to 8" in history
    difference = vmtune("profile", "diff", "fast", "1", "2", "--json").document
    assert difference["changes"] == [
        {"tunable": "downtime_limit_ms", "from": 200, "to": None},
        {"tunable": "multifd_channels", "from": 4, "to": 8},
    ]
    assert "revision 3" in vmtune("profile", "restore", "fast", "1").out
    assert "quick" in vmtune("profile", "list").out
    assert vmtune("profile", "set", "fast", "--description", "quicker").code == 0
    assert "quicker" in vmtune("profile", "show", "fast").out
    assert vmtune("profile", "show", "fast", "--revision", "2", "--json").document["revision"] == 2
    assert vmtune("profile", "delete", "fast").code == 0
    assert vmtune("profile", "show", "fast").code == 1


@pytest.mark.parametrize(
    ("values", "field", "remedy"),
    [
        (("multifd_chanels=8",), "values.multifd_chanels", "multifd_channels"),
        (("multifd_channels=400",), "values.multifd_channels", ""),
        (("downtime_limit_ms=5KiB",), "values.downtime_limit_ms", ""),
        (("multifd_channels=4",), "values.multifd_channels", "multifd"),
    ],
)
def test_bad_values_are_told_by_field(
    real: Api, vmtune: Vmtune, values: tuple[str, ...], field: str, remedy: str
) -> None:
    for command in (("check",), ("create", "p")):
        ran = vmtune("profile", *command, *values)
        assert ran.code == 1
        assert f"error: {field}: " in ran.err
        assert remedy in ran.err
    assert vmtune("profile", "list", "--json").document["items"] == []
    assert vmtune("profile", "check", "multifd=on", "multifd_channels=4").code == 0


def test_assignments_and_explain(real: Api, vmtune: Vmtune, name: str) -> None:
    vmtune("profile", "create", "fast", "multifd=on")
    vmtune("profile", "create", "slow", "multifd=off")
    assert vmtune("vm", "list").code == 0
    assert vmtune("vm", "label", name, "tier=db").out == "tier=db\n"
    assert name in vmtune("vm", "list", "--label", "tier=db").out
    assert vmtune("assign", "add", "slow", "--default").code == 0
    goals = ("--silence", "500ms", "--within", "2min")
    assert vmtune("assign", "add", "fast", "--selector", "tier=db", *goals).code == 0
    assert "within 120 s" in vmtune("assign", "list", "--wide").out
    assert "selector tier=db chose fast" in vmtune("explain", name).out
    number = vmtune("assign", "list", "--json").document["items"][1]["id"]
    assert vmtune("assign", "remove", str(number)).code == 0
    assert vmtune("explain", name, "--json").document["winner"]["profile"] == "slow"


def test_plan_apply_verify_revert(real: Api, vmtune: Vmtune, name: str) -> None:
    vmtune("profile", "create", "fast", "downtime_limit_ms=200ms", "multifd=on")
    plan = vmtune("plan", name, "--profile", "fast", "--to", "b")
    assert plan.code == 2
    assert "downtime_limit_ms   300 ms  200 ms  monitor  now" in plan.out
    assert vmtune("verify", name).code == 1
    applied = vmtune("apply", name, "--profile", "fast")
    assert applied.code == 0, applied.err
    assert "effective" in applied.out
    assert "pending migration" in applied.out
    assert vmtune("verify", ID).code == 0
    assert vmtune("verify", "--all").code == 0
    assert vmtune("plan", name, "--profile", "fast").code == 2  # multifd waits
    assert name in vmtune("vm", "show", name).out
    (row,) = vmtune("application", "list", "--vm", name, "--json").document["items"]
    assert vmtune("application", "show", row["id"]).code == 0
    assert "application" in vmtune("vm", "history", name).out
    assert vmtune("revert", name).code == 0
    assert vmtune("revert", name).code == 1
    blocked = vmtune("profile", "create", "ring", "dirty_limit=on")
    assert blocked.code == 0
    assert vmtune("plan", name, "--profile", "ring").code == 2
    refused = vmtune("apply", name, "--profile", "ring")
    assert refused.code == 1
    assert "error: values.dirty_limit: " in refused.err
    assert "  remedy: " in refused.err


def test_a_migration_is_followed_over_the_real_event_stream(
    real: Api, vmtune: Vmtune, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, progress, seen = real.source.step, Lines.progress, threading.Event()

    def shown(lines: Lines, data: Document) -> None:
        progress(lines, data)
        seen.set()

    def held() -> None:
        if real.source.outgoing.status is QemuStatus.SETUP or seen.is_set():
            step()

    # It stays active until the command has shown how far it is.
    monkeypatch.setattr(Lines, "progress", shown)
    monkeypatch.setattr(real.source, "step", held)
    vmtune("profile", "create", "fast", "downtime_limit_ms=200ms", "multifd=on")
    ran = vmtune("migrate", name, "b", "--profile", "fast")
    assert ran.code == 0, ran.err
    assert "completed" in ran.out
    assert "total time:" in ran.out
    assert "%  end not known yet, iteration 1" in ran.err
    (row,) = vmtune("migration", "list", "--json").document["items"]
    assert vmtune("migration", "show", row["id"], "--json").document["state"] == "completed"
    samples = vmtune("migration", "samples", row["id"], "--csv").out.splitlines()
    assert samples[0].startswith("at_ms,status,iteration")
    assert len(samples) > 1
    late = vmtune("migration", "abort", row["id"])
    assert late.code == 1
    assert "the migration has ended" in late.err
    events = vmtune("events", "--json").document["items"]
    assert {"profile", "migration"} <= {event["topic"] for event in events}
    assert f"migration {row['id']}" in vmtune("events").out


def test_a_refused_migration_names_blocker_and_remedy(real: Api, vmtune: Vmtune, name: str) -> None:
    vmtune("profile", "create", "ring", "dirty_limit=on")
    refused = vmtune("migrate", name, "b", "--profile", "ring", "--json")
    assert (refused.code, refused.out) == (1, "")
    assert json.loads(refused.err)["errors"][0]["code"] == "dirty_limit_needs_ring"
    assert vmtune("migrate", name, "a").code == 1
    over = ("--override", "dirty_limit_needs_ring", "--no-wait")
    assert vmtune("migrate", name, "b", "--profile", "ring", *over).code == 0


def test_hosts_are_shown_and_removed(real: Api, vmtune: Vmtune) -> None:
    assert "qmp+unix:///fake/a" in vmtune("host", "list").out
    assert "managed by:" in vmtune("host", "show", "a").out
    assert "still runs 1 VM" in vmtune("host", "maintenance", "b").out
    assert "in maintenance:" in vmtune("host", "show", "b").out
    assert "up, maintenance" in vmtune("host", "list").out
    assert "a is in maintenance since" in vmtune("host", "maintenance", "a").out
    for host in "ab":
        ended = vmtune("host", "maintenance", host, "--end")
        assert (ended.code, ended.out) == (0, f"{host} is not in maintenance\n")
    assert vmtune("host", "add", "a", "qmp+unix:///fake/a").code == 1
    assert vmtune("host", "add", "Bad Name", "qmp+unix:///fake/a").code == 1
    assert vmtune("host", "remove", "b").code == 0
    assert "qmp+unix:///fake/b" not in vmtune("host", "list").out
