"""What a way to two hosts is good for: a VM is tuned, migrates there and back, is asked for by the
hook, and is observed where others migrate it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.support.hosts.live import Live, wait_for
from tests.support.hosts.machines import said
from vmtune import lab
from vmtune.client.connection.sse import stored
from vmtune.hook.script import HookSettings, Script
from vmtune.model.workload import Workload

CALM = Workload(region_bytes=32 << 20, dirty_mb_per_s=5)
PACED = {"multifd": True, "multifd_channels": 3, "max_bandwidth_bytes_per_s": 16 << 20,
         "downtime_limit_ms": 500}  # fmt: skip
"""Slow enough to be looked at while it runs."""
FLAGS = ("--live", "--p2p", "--persistent", "--undefinesource")
HOOK, TOKEN = "/etc/libvirt/hooks/qemu.d/vmtune", "/etc/vmtune/hook.token"
STOCK_ROUNDS, WANTED_ROUNDS = 5, 8


def tuned_there_and_back(live: Live, profile: str, **vm: Any) -> dict[str, list[str]]:
    """Plan, apply, migrate to b and back, revert; each has to succeed.

    :param profile: a new one's name.
    :param vm: settings of the VM.
    :return: the tunables that were in force, by the host that was migrated to.
    """
    live.profile(profile, **PACED)
    in_force = {}
    with live.vm(**{"workload": CALM, **vm}) as made:
        asked = {"profile": profile, "destination": "b"}
        assert live.client.post(f"/vms/{made.uuid}/plan", asked)["blockers"] == []
        applied = live.client.post(f"/vms/{made.uuid}/applications", {"profile": profile})
        assert applied["state"] == "applied"
        for to in "ba":
            record = live.ended(live.migrate(made, to, profile=profile))
            assert record["state"] == "completed", record["failure"]
            proven = {each["tunable"]: each["status"] for each in record["outcomes"]}
            assert proven["multifd_channels"] == "effective", record["outcomes"]
            assert live.states(made) == {to: "running"}
            in_force[to] = sorted(name for name, is_ in proven.items() if is_ == "effective")
        live.client.post(f"/applications/{applied['id']}/revert", {})
    return in_force


def migrated_by_virsh(live: Live, vm: lab.LabVm, source: str, to: str) -> None:
    """As anybody would who has never heard of vmtune, by the way between hosts that it knows."""
    there = live.client.get(f"/hosts/{to}")["peer_uri"]
    here = ("virsh", "-c", "qemu:///system")
    said(live.host(source), *here, "migrate", *FLAGS, vm.name, there)
    assert live.states(vm) == {to: "running"}


def observed(live: Live, vm: lab.LabVm) -> list[str]:
    """The states of the migrations of a VM."""
    return [each["state"] for each in live.client.get(f"/migrations?vm={vm.uuid}")["items"]]


def observed_where_virsh_migrates(live: Live, **vm: Any) -> None:
    """A migration to b, and back, that vmtune did not begin: both are recorded."""
    with live.vm(**{"workload": CALM, **vm}) as made:
        live.client.get("/vms")
        for number, (source, to) in enumerate(("ab", "ba"), 1):
            migrated_by_virsh(live, made, source, to)
            all_of_them = ["completed"] * number
            wait_for(lambda: observed(live, made) == all_of_them, "the migration to be recorded")  # noqa: B023


def install_hook(live: Live, which: str, service: str) -> None:
    """The package's hook on a machine that need not have vmtune, by hand.

    :param service: the name of the machine that the service is on.
    """
    host = live.host(which)
    made = live.client.post(
        "/tokens", {"name": f"hook-{secrets.token_hex(3)}", "scopes": ["hook"], "hosts": [which]}
    )
    settings = HookSettings(
        url=f"https://{service}:8470",
        token_file=TOKEN,
        ca_file="/etc/pki/CA/cacert.pem",
        limit_ms=20_000,
        fail_closed=True,
    )
    texts = {
        TOKEN: (made["token"], "600"),
        HOOK: (Script.shipped().with_settings(settings).text, "755"),
    }
    for path, (text, mode) in texts.items():
        there = live.settings.folder / "text"
        there.write_text(text)
        said(host, "install", "-D", "-m", mode, str(there), path)
        there.unlink()
    reload_hooks(live, which)


def reload_hooks(live: Live, which: str) -> None:
    """As `systemctl reload libvirtd` does; libvirt tells its daemon hook once it has looked."""
    host, seen = live.host(which), live.settings.folder / "reloaded"
    script = f'#!/bin/sh\n[ "$2" != reload ] || touch {seen}\n'
    daemon = "/etc/libvirt/hooks/daemon"
    said(host, "sh", "-ec", f"cat > {daemon} <<'END'\n{script}END\nchmod 755 {daemon}")
    said(host, "sh", "-ec", "kill -HUP $(cat /run/libvirtd.pid /run/virtqemud.pid 2> /dev/null)")
    wait_for(seen.exists, "libvirt to look for hooks")
    seen.unlink()


def rounds(live: Live, vm: lab.LabVm, on_host: str) -> int:
    """How often the VM's QEMU there announces itself, as only a hook's answer has set it."""
    text = '{"execute": "query-migrate-parameters"}'
    answer = lab.virsh(live.host(on_host).uri, "qemu-monitor-command", vm.name, text)
    return int(json.loads(answer)["return"]["announce-rounds"])


def arrivals(live: Live, vm: lab.LabVm) -> list[dict[str, Any]]:
    """What the hooks have told of a VM."""
    told = [event.data for event in stored(live.client, "0")]
    return [e["data"] for e in told if e["topic"] == "arrival" and e["subject"] == vm.uuid]


def asked_for_by_the_hook(live: Live, **vm: Any) -> None:
    """A migration to b and back by virsh: both hooks get the profile's values from the service,
    for QEMUs that are told them before anything arrives."""
    with live.vm(**{"workload": CALM, **vm}) as made:
        for number, (source, to) in enumerate(("ab", "ba"), 1):
            migrated_by_virsh(live, made, source, to)
            assert rounds(live, made, to) == WANTED_ROUNDS
            assert [each["destination"] for each in arrivals(live, made)] == list("ba"[:number])


@contextmanager
def default_profile(live: Live, name: str, values: Mapping[str, Any]) -> Iterator[None]:
    """A profile that all VMs have that have no other."""
    live.profile(name, **values)
    assigned = live.client.post("/assignments", {"target": "default", "key": "", "profile": name})
    try:
        yield
    finally:
        live.client.delete(f"/assignments/{assigned['id']}")
