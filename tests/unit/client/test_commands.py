"""What the commands ask, print, and exit with, against a stub of the service."""

from __future__ import annotations

import pytest

from tests.support.examples import api_documents as docs
from tests.support.served.stub_service import Reply, StubService, page, refusal
from tests.unit.client.conftest import Vmtune
from vmtune.client.commands.hosts.vm import _TUNING
from vmtune.client.views.render import moment
from vmtune.model.plan.tuning_state import TuningState

GONE = {"field": "", "code": "not_found", "message": "nothing was applied"}


@pytest.fixture(autouse=True)
def _vm(service: StubService) -> None:
    service.on("GET", "/vms", page(docs.vm(), problems=[]))


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (docs.plan(clean=True), 0),
        (docs.plan(clean=False), 2),
        ({**docs.plan(True, docs.finding()), "clean": False}, 2),
        (docs.plan(True, docs.finding("warning")), 0),
    ],
)
def test_plan_exits_by_what_it_found(
    service: StubService, vmtune: Vmtune, document: dict[str, object], code: int
) -> None:
    service.on("POST", f"/vms/{docs.VM}/plan", document)
    ran = vmtune("plan", "db1", "--profile", "fast", "--revision", "3", "--to", "rack2")
    assert ran.code == code
    assert service.only("POST", f"/vms/{docs.VM}/plan").body == {
        "profile": "fast", "revision": 3, "destination": "rack2", "intent": None,
    }  # fmt: skip
    assert service.only("GET", "/vms").query["name"] == ["db1"]
    assert "multifd" in ran.out
    assert vmtune("plan", docs.VM, "--json").document == document


def test_a_plan_shows_findings_with_remedies_below(service: StubService, vmtune: Vmtune) -> None:
    service.on("POST", f"/vms/{docs.VM}/plan", docs.plan(False, docs.finding()))
    lines = vmtune("plan", "db1").out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("blocker optmem_too_low: zero"))
    assert lines[at + 1] == "  remedy: run: sysctl -w net.core.optmem_max=1048576"
    assert lines[-1] == "1 blocker; 1 value would change"
    assert "multifd      off      on  migrate  next migration  libvirt, at the start" in lines[3]


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (docs.application("applied", "effective", "pending migration", "pending restart"), 0),
        (docs.application("applied", "effective", "overwritten"), 2),
        (docs.application("applied", "rejected"), 2),
        (docs.application("applied", "unknown"), 2),
        (docs.application("failed", "reverted"), 1),
        (docs.application("unknown", "unknown"), 1),
    ],
)
def test_apply_exits_by_what_became_of_it(
    service: StubService, vmtune: Vmtune, record: dict[str, object], code: int
) -> None:
    path = f"/vms/{docs.VM}/applications"
    service.on("POST", path, Reply(record, 201))
    ran = vmtune("apply", "db1", "--best-effort")
    assert ran.code == code
    body = {"profile": None, "revision": None, "best_effort": True, "boot_only": False}
    assert service.only("POST", path).body == body
    assert "downtime_limit_ms" in ran.out


def test_a_dry_run_only_plans(service: StubService, vmtune: Vmtune) -> None:
    service.on("POST", f"/vms/{docs.VM}/plan", docs.plan(clean=False))
    assert vmtune("apply", "db1", "--dry-run").code == 2
    assert f"/vms/{docs.VM}/applications" not in [asked.path for asked in service.asked]


@pytest.mark.parametrize(("clean", "code"), [(True, 0), (False, 2)])
def test_verify_exits_by_what_it_found(
    service: StubService, vmtune: Vmtune, clean: bool, code: int
) -> None:
    service.on("POST", f"/vms/{docs.VM}/verify", docs.verification(clean))
    assert vmtune("verify", "db1").code == code
    assert vmtune("verify", "--all").code == code


def test_verify_all_passes_over_vms_with_nothing_to_verify(
    service: StubService, vmtune: Vmtune
) -> None:
    rows = [docs.vm(), docs.vm("db2", docs.OTHER_VM), {**docs.vm("off"), "state": "shut off"}]
    service.on("GET", "/vms", page(*rows, problems=[]))
    service.on("POST", f"/vms/{docs.VM}/verify", docs.verification())
    service.on("POST", f"/vms/{docs.OTHER_VM}/verify", refusal(404, GONE))
    ran = vmtune("verify", "--all", "--json")
    assert (ran.code, len(ran.document["items"])) == (0, 1)


def test_verify_all_is_not_clean_where_a_host_does_not_answer(
    service: StubService, vmtune: Vmtune
) -> None:
    silent = {"field": "hosts.b", "code": "host_unreachable", "message": "no answer", "remedy": ""}
    service.on("GET", "/vms", page(problems=[silent]))
    ran = vmtune("verify", "--all")
    assert ran.code == 1
    assert "hosts.b: no answer" in ran.out


@pytest.mark.parametrize("arguments", [("verify",), ("verify", "db1", "--all")])
def test_verify_wants_one_vm_or_all(vmtune: Vmtune, arguments: tuple[str, ...]) -> None:
    assert vmtune(*arguments).code == 1


def test_revert_takes_an_application_or_a_vm(service: StubService, vmtune: Vmtune) -> None:
    path = f"/applications/{docs.APPLICATION}"
    rows = [docs.application("reverted"), docs.application("applied", "effective")]
    service.on("GET", "/applications", page({**rows[0], "id": docs.OTHER_VM}, rows[1]))
    service.on("GET", path, docs.application("applied", "effective"))
    service.on("POST", f"{path}/revert", docs.application("reverted", "reverted"))
    assert vmtune("revert", "db1").code == 0
    assert vmtune("revert", docs.APPLICATION).code == 0
    assert vmtune("revert", docs.VM).code == 0  # no application of that id: a VM's UUID


def test_revert_without_anything_applied_says_so(service: StubService, vmtune: Vmtune) -> None:
    service.on("GET", "/applications", page(docs.application("failed")))
    ran = vmtune("revert", "db1")
    assert ran.code == 1
    assert "db1 has no active application" in ran.err


def test_a_name_that_several_vms_have_lists_them(service: StubService, vmtune: Vmtune) -> None:
    other = docs.vm(uuid=docs.OTHER_VM, host="rack2")
    service.on("GET", "/vms", page(docs.vm(), other, problems=[]))
    ran = vmtune("explain", "db1")
    assert ran.code == 1
    assert f"{docs.VM} on rack1, {docs.OTHER_VM} on rack2" in ran.err
    assert "remedy: use its UUID" in ran.err


def test_a_vm_that_two_hosts_list_is_one(service: StubService, vmtune: Vmtune) -> None:
    service.on("GET", "/vms", page(docs.vm(), docs.vm(host="rack2"), problems=[]))
    service.on("POST", f"/vms/{docs.VM}/verify", docs.verification())
    assert vmtune("verify", "db1").code == 0


def test_a_name_not_found_tells_which_hosts_did_not_answer(
    service: StubService, vmtune: Vmtune
) -> None:
    silent = {"field": "hosts.b", "code": "host_unreachable", "message": "no answer", "remedy": ""}
    service.on("GET", "/vms", page(problems=[silent]))
    ran = vmtune("explain", "db9")
    assert ran.code == 1
    assert "error: VM: no VM is named db9" in ran.err
    assert "error: hosts.b: no answer" in ran.err


def test_labels_are_merged_and_removed(service: StubService, vmtune: Vmtune) -> None:
    service.on("GET", f"/vms/{docs.VM}", {**docs.vm(), "labels": {"tier": "db", "zone": "a"}})
    path = f"/vms/{docs.VM}/labels"
    service.on("PUT", path, {"uuid": docs.VM, "labels": {"zone": "b"}})
    ran = vmtune("vm", "label", "db1", "zone=b", "tier-")
    assert (ran.code, ran.out) == (0, "zone=b\n")
    assert service.only("PUT", path).body == {"labels": {"zone": "b"}}
    assert vmtune("vm", "label", "db1", "nonsense").code == 1


def test_a_profile_is_changed_on_the_revision_that_was_read(
    service: StubService, vmtune: Vmtune
) -> None:
    service.on("GET", "/profiles/fast", Reply(docs.profile(3), headers={"ETag": '"3"'}))
    service.on("PATCH", "/profiles/fast", docs.profile(4, multifd_channels=8))
    ran = vmtune("profile", "set", "fast", "multifd_channels=8", "multifd-", "--note", "why")
    assert ran.code == 0
    asked = service.only("PATCH", "/profiles/fast")
    assert asked.headers["If-Match"] == '"3"'
    assert asked.body == {"values": {"multifd_channels": "8", "multifd": None}, "note": "why"}
    assert "multifd_channels from 4 to 8" in ran.out


def test_a_stale_profile_says_what_somebody_else_changed(
    service: StubService, vmtune: Vmtune
) -> None:
    theirs = docs.profile(4, multifd_channels=6)
    service.on("GET", "/profiles/fast", Reply(docs.profile(3), headers={"ETag": '"3"'}), theirs)
    service.on("PATCH", "/profiles/fast", refusal(412, {"code": "stale_revision"}))
    ran = vmtune("profile", "set", "fast", "multifd_channels=8")
    assert ran.code == 1
    assert "changed meanwhile from revision 3 to 4" in ran.err
    assert "multifd_channels from 4 to 6; you also changed multifd_channels" in ran.err


@pytest.mark.parametrize(
    ("options", "target", "key"),
    [
        (("--vm", "db1"), "vm", docs.VM),
        (("--selector", "tier=db"), "selector", "tier=db"),
        (("--host", "rack1"), "host", "rack1"),
        (("--default",), "default", ""),
    ],
)
def test_assign_names_one_target(
    service: StubService, vmtune: Vmtune, options: tuple[str, ...], target: str, key: str
) -> None:
    service.on("POST", "/assignments", Reply({"id": 5}, 201))
    assert vmtune("assign", "add", "fast", *options).code == 0
    body = {"target": target, "key": key, "profile": "fast"}
    assert service.only("POST", "/assignments").body == body


def test_an_assignment_may_have_an_intent(service: StubService, vmtune: Vmtune) -> None:
    service.on("POST", "/assignments", Reply({"id": 5}, 201))
    goals = ("--silence", "500ms", "--within", "120")
    assert vmtune("assign", "add", "fast", "--default", *goals).code == 0
    stated = {"max_silence_ms": "500ms", "deadline_s": 120}
    assert service.only("POST", "/assignments").body["intent"] == stated


@pytest.mark.parametrize("options", [(), ("--default", "--host", "a")])
def test_assign_refuses_none_and_several_targets(vmtune: Vmtune, options: tuple[str, ...]) -> None:
    ran = vmtune("assign", "add", "fast", *options)
    assert ran.code == 1
    assert "--vm, --selector, --host and --default" in ran.err


def test_a_vm_filter_repeats_its_labels(service: StubService, vmtune: Vmtune) -> None:
    vmtune("vm", "list", "--host", "rack1", "--label", "a=1", "--label", "b=2")
    query = service.only("GET", "/vms").query
    assert (query["host"], query["label"]) == (["rack1"], ["a=1", "b=2"])


@pytest.mark.parametrize(
    ("arguments", "path", "query"),
    [
        (("vm", "list", "--search", "web"), "/vms", {"search": ["web"]}),
        (("host", "list", "--search", "rack"), "/hosts", {"search": ["rack"]}),
        (
            ("migration", "list", "--host", "rack1", "--profile", "fast", "--exceeded"),
            "/migrations",
            {"host": ["rack1"], "profile": ["fast"], "downtime_exceeded": ["true"]},
        ),
        (("migration", "list", "--search", "web"), "/migrations", {"search": ["web"]}),
        (("migration", "list", "--broken"), "/migrations", {"intent_broken": ["true"]}),
        (("bench", "runs", "--search", "plain"), "/runs", {"search": ["plain"]}),
        (("bench", "campaign", "list", "--search", "stock"), "/campaigns", {"search": ["stock"]}),
        (("tune", "list", "--search", "lan"), "/studies", {"search": ["lan"]}),
    ],
)
def test_lists_are_searched_and_filtered_by_the_service(
    service: StubService,
    vmtune: Vmtune,
    arguments: tuple[str, ...],
    path: str,
    query: dict[str, list[str]],
) -> None:
    vmtune(*arguments)
    asked = service.only("GET", path).query
    assert {name: value for name, value in asked.items() if name not in ("limit", "after")} == query


def test_vms_are_listed_with_how_they_stand_and_as_of_when(
    service: StubService, vmtune: Vmtune
) -> None:
    service.on("GET", "/vms", page(docs.vm(), problems=[]))
    ran = vmtune("vm", "list", "--tuning", "drifted")
    assert service.only("GET", "/vms").query["tuning_state"] == ["drifted"]
    title, row = ran.out.splitlines()
    assert title.split()[3:] == ["TUNING", "UUID", "LABELS", "AS", "OF"]
    assert "drifted" in row
    assert moment("2026-11-21T09:00:00Z") in row
    assert vmtune("vm", "list", "--tuning", "fine").code != 0


def test_the_filter_by_tuning_knows_every_state() -> None:
    assert tuple(TuningState) == _TUNING


@pytest.mark.parametrize(
    ("vms", "state", "said"),
    [
        ([], "up", "runs no VMs: safe to reboot"),
        (["shut off"], "up", "runs no VMs: safe to reboot"),
        (["running", "paused", "shut off"], "up", "still runs 2 VMs"),
        ([], "unreachable", "whether VMs run on it is not known: it is unreachable"),
    ],
)
def test_a_host_in_maintenance_says_whether_it_may_be_rebooted(
    service: StubService, vmtune: Vmtune, vms: list[str], state: str, said: str
) -> None:
    host = {"name": "b", "maintenance_since": "2026-11-25T15:00:00Z", "state": "unknown"}
    service.on("PUT", "/hosts/b/maintenance", host)
    service.on("GET", "/vms", {"items": [{"state": each} for each in vms], "next": None})
    service.on("GET", "/hosts/b", {**host, "state": state})
    ran = vmtune("host", "maintenance", "b")
    assert (ran.code, service.asked[0].body) == (0, {"on": True})
    assert said in ran.out


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (None, "running"),
        ("active", "running, migrating"),
        ("postcopy-paused", "post-copy is paused"),
    ],
)
def test_the_state_of_a_vm_tells_of_its_migration(
    service: StubService, vmtune: Vmtune, state: str | None, said: str
) -> None:
    migration = state and "0d9f6a1c-6c0e-4c8f-9d1a-5f5b1f5e7e10"
    row = {**docs.vm(), "migration": migration, "migration_state": state}
    service.on("GET", "/vms", page(row, problems=[]))
    heading, line = vmtune("vm", "list").out.splitlines()[:2]
    at = slice(heading.index("STATE"), heading.index("TUNING"))
    assert line[at].strip() == said


def test_a_vm_whose_host_does_not_answer_is_shown_as_last_seen(
    service: StubService, vmtune: Vmtune
) -> None:
    silence = {"since": "2026-11-26T02:31:01Z", "reason": "connection refused"}
    row = {**docs.vm(), "state": "unknown", "unreachable": silence}
    problem = {"field": "", "code": "host_unreachable", "message": "connection refused"}
    refused = {"detail": "connection refused", "code": "host_unreachable", "errors": [problem]}
    service.on("GET", "/vms", page(row, problems=[]))
    service.on("GET", f"/vms/{row['uuid']}", Reply(refused, 424))
    ran = vmtune("vm", "show", row["name"])
    assert ran.code == 1
    assert f"unknown; {row['host']} does not answer since 2026-11-26" in ran.out
    assert row["tuning_state"] in ran.out
    assert "connection refused" in ran.err
    assert vmtune("vm", "show", row["name"], "--json").out == ""
