"""What `vmtune demo --keep` leaves to look at: several VMs; one drifts, one migrates."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import click

from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Client
from vmtune.lab import LabSettings, LabVm, VmSettings, define_vm
from vmtune.lab.vms import virsh
from vmtune.model.workload import Workload

MIB = 1 << 20
POLLING = "iothread_poll_max_ns"
_POLLS_NS, _DRIFTED_NS = 50_000, 20_000
_SLOW_MIB_PER_S = 4
_KNOWN_WITHIN_S = 30.0
_QUIET = Workload(region_bytes=8 * MIB, idle_ms=500)
_BUSY = Workload(region_bytes=48 * MIB, dirty_mb_per_s=100)
VMS: dict[str, tuple[str, Workload, dict[str, str]]] = {
    "web1": ("a", _QUIET, {"tier": "web"}),
    "web2": ("b", _QUIET, {"tier": "web"}),
    "cache1": ("b", _QUIET, {"tier": "cache"}),
    "db1": ("a", _BUSY, {"tier": "db"}),
}
"""The VMs: where each begins, what its guest does, and its labels."""
DRIFTED, MIGRATING = "web1", "db1"
PROFILES: dict[str, dict[str, Any]] = {  # any: values as people write them
    "low-latency": {POLLING: _POLLS_NS},
    "slow-link": {"max_bandwidth_bytes_per_s": f"{_SLOW_MIB_PER_S}MiB/s"},
}


def fill(lab: LabSettings, client: Client, hosts: tuple[str, str], verbose: bool) -> Sequence[str]:
    """Start the VMs, give them profiles, change a value behind vmtune's back, and begin a
    migration that does not end by itself.

    :return: what there is to see, in lines.
    """
    if verbose:
        click.echo("Starting more VMs to look at", err=True)
    made = {
        name: define_vm(
            lab,
            VmSettings(name=name, memory_bytes=96 * MIB, workload=workload, iothreads=1),
            host=host,
        )
        for name, (host, workload, _) in VMS.items()
    }
    for name, values in PROFILES.items():
        client.post("/profiles", {"name": name, "values": values})
    client.post("/assignments", {"target": "selector", "key": "tier=web", "profile": "low-latency"})
    for name, vm in made.items():
        _labelled(client, vm, VMS[name][2])
    for name, vm in made.items():
        if VMS[name][2]["tier"] == "web":
            client.post(f"/vms/{vm.uuid}/applications", {})
    drifted = made[DRIFTED]
    polls = ("--poll-max-ns", str(_DRIFTED_NS))
    virsh(drifted.uri, "iothreadset", DRIFTED, "1", *polls, "--live")
    client.post("/drift-scans", {"host": hosts[0]})
    busy = made[MIGRATING]
    order = {"vm": busy.uuid, "destination": hosts[1], "profile": "slow-link"}
    client.post("/migrations", order)
    return (
        f"There are {len(made) + 1} VMs on two hosts. {DRIFTED} drifts: somebody changed its",
        f"polling. {MIGRATING} migrates, and dirties more than its slow link carries. A campaign",
        "is finished.",
    )


def _labelled(client: Client, vm: LabVm, labels: dict[str, str]) -> None:
    """Set a VM's labels once the service knows the VM."""
    deadline = time.monotonic() + _KNOWN_WITHIN_S
    while True:
        try:
            client.put(f"/vms/{vm.uuid}/labels", {"labels": labels})
        except ClientError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return
