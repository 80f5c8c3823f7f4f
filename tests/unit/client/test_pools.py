"""``vmtune vm pools``, ``host pools`` and ``host limits``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.examples import api_documents as docs
from tests.support.served.api import Api
from tests.support.served.stub_service import StubService, page
from tests.support.simulated.fakes import VM
from tests.unit.client.conftest import Vmtune
from vmtune.model.host.limits import SYSCTLS

FINDING = {
    "code": "maps_may_run_out",
    "severity": "warning",
    "tunable": None,
    "message": "its guest can make QEMU take 82,000 memory maps",
    "remedy": "run: sysctl -w vm.max_map_count=103424",
    "evidence": {},
}


def pool(*findings: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "uuid": docs.VM, "name": "db1", "host": "rack1", "qemu_version": "10.0.2",
        "design": "one shared pool of batches", "threads": 2, "guest_requests": 40960,
        "soft_limit": 20608, "max_pooled": 21247, "max_coroutines": 41280,
        "max_maps": 83071, "maps": 1135, "stacks": 412, "other_maps": 311,
        "stacks_per_coroutine": 1, "stack_bytes": 8192, "max_stack_bytes": 338165760,
        "limit": 65530,
        "left": -17541, "left_now": 64395, "needed_limit": 104448, "level": "warning",
        "findings": list(findings), **changes,
    }  # fmt: skip


def limit(**changes: Any) -> dict[str, Any]:
    return {
        "tunable": "vm_max_map_count", "sysctl": "vm.max_map_count", "value": 262144,
        "before": 65530, "claims": {"operator": 262144}, "held": "", **changes,
    }  # fmt: skip


def test_a_vms_pool(service: StubService, vmtune: Vmtune) -> None:
    service.on("GET", "/vms", page(docs.vm(), problems=[]))
    service.on("GET", f"/vms/{docs.VM}/pools", pool(FINDING))
    ran = vmtune("vm", "pools", "db1")
    assert ran.code == 2
    assert "1,135, coroutines use 824" in ran.out
    assert "8 KiB of memory, 2 maps for each coroutine; 322 MiB in the worst case" in ran.out
    assert "64,395 now, -17,541 in the worst case: warning" in ran.out
    assert "remedy: run: sysctl -w vm.max_map_count=103424" in ran.out
    assert vmtune("vm", "pools", docs.VM, "--json").document == pool(FINDING)


def test_a_pool_that_is_not_seen(service: StubService, vmtune: Vmtune) -> None:
    skipped_checks = pool(
        maps=None, stacks=None, stacks_per_coroutine=2, stack_bytes=None, limit=None,
        left=None, left_now=None, level="unknown",
    )  # fmt: skip
    service.on("GET", f"/vms/{docs.VM}/pools", skipped_checks)
    ran = vmtune("vm", "pools", docs.VM)
    assert ran.code == 0
    assert "4 maps (SafeStack)" in ran.out
    assert ran.out.count("unknown") == 3
    assert "unknown" in ran.out


def test_the_pools_of_a_host(service: StubService, vmtune: Vmtune) -> None:
    service.on("GET", "/hosts/rack1/pools", {"items": [pool(FINDING)]})
    ran = vmtune("host", "pools", "rack1")
    assert ran.code == 2
    assert ran.out.splitlines()[1].split() == (
        ["db1", "10.0.2", "1,135", "412", "83,071", "65,530", "-17,541", "warning"]
    )
    service.on("GET", "/hosts/rack1/pools", {"items": []})
    assert "no running VMs" in vmtune("host", "pools", "rack1").out


def test_limits_are_shown_set_and_restored(service: StubService, vmtune: Vmtune) -> None:
    document = {"items": [limit(held="the VM db1 needs it")]}
    for method in ("GET", "PUT", "DELETE"):
        service.on(method, "/hosts/rack1/limits", document)
    out = vmtune("host", "limits", "rack1").out
    assert "operator (262144)" in out
    assert "stays at 262144: the VM db1 needs it" in out
    assert vmtune("host", "limits", "rack1", "vm_max_map_count=262144").code == 0
    assert service.only("PUT", "/hosts/rack1/limits").body == {
        "values": {"vm_max_map_count": "262144"}
    }
    assert vmtune("host", "limits", "rack1", "--restore", "--json").document == document


def test_bad_arguments_ask_nothing(service: StubService, vmtune: Vmtune) -> None:
    for arguments in (("vm_max_map_count",), ("=3",), ("a=",), ("a=3", "--restore")):
        ran = vmtune("host", "limits", "rack1", *arguments)
        assert ran.code == 1
        assert ran.err
    assert service.asked == []


def test_with_the_real_service(real: Api, vmtune: Vmtune) -> None:
    name = real.source.name
    ran = vmtune("vm", "pools", name, "--json")
    assert ran.code == 0
    assert ran.document["soft_limit"] == 640
    shown = vmtune("vm", "show", name)
    assert "coroutine pool:" in shown.out
    assert vmtune("vm", "show", name, "--json").document["pools"] == ran.document
    assert vmtune("host", "pools", "a").code == 0
    refused = vmtune("host", "limits", "a", "vm_max_map_count=262144")
    assert refused.code == 1
    assert "host_changes = true" in refused.err
    assert str(VM)[:8] in vmtune("vm", "list").out
    assert str(VM) in vmtune("vm", "list", "--wide").out


def test_the_root_part_carries_out_what_is_asked_for(vmtune: Vmtune, tmp_path: Path) -> None:
    damaged = tmp_path / "wishes.json"
    damaged.write_text('{"vm_max_map_count": {"claims": {"a": 5}}}')
    ran = vmtune("host", "apply-limits", str(damaged))
    assert ran.code == 1
    assert f"not set below {SYSCTLS['vm_max_map_count'].least}" in ran.err
