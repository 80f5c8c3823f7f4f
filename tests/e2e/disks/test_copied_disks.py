"""Disks on local storage are copied along with a migration, between hosts that share none."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.hosts.live import ENDED, Live, wait_for
from tests.support.hosts.machines import live_machines, on, said, why_no_machines
from tests.support.hosts.wiretap import Heard
from tests.support.qemus.qemu import CHECKOUT, OLD_QEMU
from tests.support.served.removal import kill_while_removing
from vmtune import lab
from vmtune.client.connection.errors import Refused
from vmtune.client.connection.http import Document
from vmtune.model.workload import Workload

NONE = why_no_machines()
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE or "never")
CALM = Workload(region_bytes=32 << 20, dirty_mb_per_s=5)
FOLDER = "/var/lib/libvirt/images"
MIB = 1 << 20
COPIED = {"copy_storage": "on"}
REMOVED = {**COPIED, "copy_source_images": "remove"}
SLOWLY = {**COPIED, "max_bandwidth_bytes_per_s": 4 * MIB}


MADE = ("cluster_size=131072", "extended_l2=on", "lazy_refcounts=on")
"""How the source's image is."""
LIBVIRT_9 = CHECKOUT / ".cache/libvirt-9"
RELEASES: dict[str, dict[str, Path]] = {
    "installed": {},
    "oldest": {"libvirt_root": LIBVIRT_9, "qemu": OLD_QEMU},
}
"""What of the lab's settings makes them."""


@pytest.fixture(
    scope="module", params=["installed", pytest.param("oldest", marks=pytest.mark.long)]
)
def live(request: pytest.FixtureRequest) -> Iterator[Live]:
    changes = RELEASES[request.param]
    missing = [at for at in changes.values() if not at.exists()]
    if missing:
        pytest.skip(f"{missing[0]} is not there (vmtune/lab/bootstrap.sh --tests)")
    with live_machines(**changes) as made:
        if changes:
            version = said(
                made.status.hosts[0], "virsh", "-c", "qemu:///system", "version", "--daemon"
            )
            assert "daemon: 9.0" in version
        for name, host in zip("ab", made.status.hosts, strict=True):
            said(host, "mkdir", "-p", FOLDER)
            uri = f"qemu+tls://{host.name}/system"
            made.client.post("/hosts", {"name": name, "uri": uri})
        yield made


@contextmanager
def vm_with_disk(live: Live, mib: int = 32, needle: bytes = b"") -> Iterator[tuple[lab.LabVm, str]]:
    """A VM on a, with a qcow2 image of 64 MiB there, *mib* of which are written; and the MiB after
    them with *needle*, again and again."""
    a, b = live.status.hosts
    path = f"{FOLDER}/{secrets.token_hex(4)}.qcow2"
    said(a, "qemu-img", "create", "-q", "-f", "qcow2", "-o", ",".join(MADE), path, "64M")
    said(a, "qemu-io", "-c", f"write -P 7 0 {mib}M", path)
    if needle:
        octal = "".join(f"\\{byte:03o}" for byte in needle)
        said(a, "sh", "-c", f"printf '{octal}' > /run/needle")
        said(a, "qemu-io", "-c", f"write -s /run/needle {mib}M 1M", path)
    with live.vm(workload=CALM) as vm:
        said(
            a, "virsh", "-c", "qemu:///system", "attach-disk", vm.name, path, "vda", "--live",
            "--config", "--driver", "qemu", "--subdriver", "qcow2", "--cache", "none",
        )  # fmt: skip
        try:
            yield vm, path
        finally:
            for host in (a, b):
                on(host, "rm", "-f", path)


@contextmanager
def another_vm(host: lab.HostStatus, path: str) -> Iterator[None]:
    """A VM of that host, which does not run, with a disk at *path*."""
    xml = (
        "<domain type='qemu'><name>another</name><memory>1024</memory><os><type>hvm</type></os>"
        f"<devices><disk type='file' device='disk'><source file='{path}'/><target dev='vda'/>"
        "</disk></devices></domain>"
    )
    virsh = ("virsh", "-c", "qemu:///system")
    said(host, "sh", "-c", f'echo "{xml}" > /run/another.xml')
    said(host, *virsh, "define", "/run/another.xml")
    try:
        yield
    finally:
        said(host, *virsh, "undefine", "another")


def holds(host: lab.HostStatus, path: str) -> bool:
    return on(host, "test", "-e", path).returncode == 0


def pools(host: lab.HostStatus) -> str:
    return said(host, "virsh", "-c", "qemu:///system", "pool-list", "--all", "--name")


def codes(live: Live, vm: lab.LabVm, **values: object) -> set[str]:
    plan = live.client.post(f"/vms/{vm.uuid}/plan", {"destination": "b", "values": values})
    return {finding["code"] for finding in plan["findings"]}


def start(live: Live, vm: lab.LabVm, to: str = "b", **values: object) -> Document:
    return live.client.post(
        "/migrations", {"vm": vm.uuid, "destination": to, "values": values}
    )  # fmt: skip


def test_a_disk_that_the_destination_lacks_is_copied(live: Live) -> None:
    a, b = live.status.hosts
    with vm_with_disk(live) as (vm, path):
        assert "disks_not_seen" in codes(live, vm)
        assert "copy_target_not_seen" in codes(live, vm, **COPIED)
        record = live.ended(start(live, vm, **COPIED))
        assert record["state"] == "completed", record["failure"]
        (disk,) = record["disks"]
        assert (disk["target"], disk["path"], disk["created"]) == ("vda", path, True)
        assert disk["copied_bytes"] == disk["total_bytes"] == 64 * MIB
        proven = {each["tunable"]: each["status"] for each in record["outcomes"]}
        assert proven["copy_storage"] == "effective"
        assert live.states(vm) == {"b": "running"}
        assert pools(b) == ""
        assert holds(a, path), "the source's image stays"
        said(b, "virsh", "-c", "qemu:///system", "destroy", vm.name)
        same = said(b, "qemu-io", "-r", "-c", "read -P 7 0 32M", path)
        assert "Pattern verification failed" not in same
        info = json.loads(said(b, "qemu-img", "info", "--output=json", path))
        assert (info["format"], info["cluster-size"]) == ("qcow2", 131072)
        data = info["format-specific"]["data"]
        assert (data["extended-l2"], data["lazy-refcounts"]) == (True, True)


def test_a_folder_whose_pool_is_not_active_is_told_from_one_that_is_missing(live: Live) -> None:
    """libvirt takes no second pool of it."""
    _, b = live.status.hosts
    virsh = ("virsh", "-c", "qemu:///system")
    said(b, *virsh, "pool-define-as", "asleep", "dir", "--target", FOLDER)
    try:
        with vm_with_disk(live) as (vm, path):
            ended = live.ended(start(live, vm, **COPIED))
            assert ended["state"] == "failed"
            assert (
                f"the storage pool asleep of the folder {FOLDER} is not active" in ended["failure"]
            )
            assert live.states(vm) == {"a": "running"}
            assert not holds(b, path)
    finally:
        said(b, *virsh, "pool-undefine", "asleep")


def test_an_abort_removes_what_was_made(live: Live) -> None:
    _, b = live.status.hosts
    with vm_with_disk(live, mib=64) as (vm, path):
        record = start(live, vm, **SLOWLY)

        def copying() -> bool:
            disks = live.client.get(f"/migrations/{record['id']}")["disks"]
            return bool(disks) and 0 < disks[0]["copied_bytes"] < 64 * MIB

        wait_for(copying, "the copy to be under way")
        assert holds(b, path)
        live.client.delete(f"/migrations/{record['id']}")
        ended = live.ended(record)
        assert (ended["state"], ended["problems"]) == ("cancelled", [])
        assert live.states(vm) == {"a": "running"}
        assert not holds(b, path)
        assert pools(b) == ""


@pytest.mark.parametrize("tls", ["off", "on"])
def test_disks_are_encrypted_where_the_migration_is(live: Live, tls: str) -> None:
    _, b = live.status.hosts
    needle = secrets.token_bytes(32)
    with vm_with_disk(live, needle=needle) as (vm, _):
        heard = Heard(needle, ["ip", "netns", "exec", live.settings.name_a])
        with heard.listening():
            record = live.ended(start(live, vm, **COPIED, tls=tls))
        assert record["state"] == "completed", record["failure"]
        assert bool(heard.times) == (tls == "off")
        said(b, "virsh", "-c", "qemu:///system", "destroy", vm.name)


def test_a_service_that_is_killed_follows_the_copy_on(live: Live) -> None:
    _, b = live.status.hosts
    with vm_with_disk(live, mib=64) as (vm, path):
        record = start(live, vm, **{**SLOWLY, "max_bandwidth_bytes_per_s": 8 * MIB})
        wait_for(lambda: live.record(record)["disks"][:1] != [], "the copy to be prepared")
        wait_for(lambda: live.record(record)["disks"][0]["copied_bytes"] > 0, "the copy to begin")
        live.service.kill()
        live.service.start()
        ended = live.ended(record)
        assert ended["state"] == "completed", ended["failure"]
        assert ended["disks"][0]["created"] is True
        assert live.states(vm) == {"b": "running"}
        assert holds(b, path)
        assert pools(b) == ""
        said(b, "virsh", "-c", "qemu:///system", "destroy", vm.name)


def copies(live: Live, record: Document) -> bool:
    return bool(live.record(record)["disks"][0]["copied_bytes"])


def over(live: Live, record: Document) -> bool:
    return live.record(record)["state"] in ENDED


def test_nothing_is_left_of_a_service_that_is_killed_just_after_it_made_the_image(
    live: Live,
) -> None:
    _, b = live.status.hosts
    with vm_with_disk(live, mib=64) as (vm, path):
        record = start(live, vm, **SLOWLY)
        wait_for(lambda: holds(b, path), "the image to be made")
        live.service.kill()
        live.service.start()
        wait_for(lambda: copies(live, record) or over(live, record), "what has become of it")
        if not over(live, record):
            live.client.delete(f"/migrations/{record['id']}")  # libvirt had been called by then
        ended = live.ended(record)
        assert ended["state"] in ("failed", "cancelled", "completed")
        assert ended["problems"] == []
        arrived = ended["state"] == "completed"
        assert live.states(vm) == {"b" if arrived else "a": "running"}
        assert holds(b, path) is arrived
        assert pools(b) == ""


def test_the_sources_image_goes_once_the_vm_runs_there(live: Live) -> None:
    a, b = live.status.hosts
    with vm_with_disk(live) as (vm, path):
        assert "source_images_go" in codes(live, vm, **REMOVED)
        record = live.ended(start(live, vm, **REMOVED))
        assert (record["state"], record["problems"]) == ("completed", []), record["failure"]
        (disk,) = record["disks"]
        assert (disk["source_image"], disk["source_image_reason"]) == ("removed", "")
        proven = {each["tunable"]: each["status"] for each in record["outcomes"]}
        assert proven["copy_source_images"] == "effective"
        assert (holds(a, path), holds(b, path)) == (False, True)
        assert (pools(a), pools(b)) == ("", "")
        assert live.states(vm) == {"b": "running"}
        # Nothing stands against the way back.
        back = live.ended(start(live, vm, to="a", **REMOVED))
        assert (back["state"], back["problems"]) == ("completed", []), back["failure"]
        assert (holds(a, path), holds(b, path)) == (True, False)
        said(a, "virsh", "-c", "qemu:///system", "destroy", vm.name)
        assert "Pattern verification failed" not in said(
            a, "qemu-io", "-r", "-c", "read -P 7 0 32M", path
        )


@pytest.mark.parametrize("what", ["another VM", "an image on top", "a VM with an image on top"])
def test_the_sources_image_stays_where_something_names_it(live: Live, what: str) -> None:
    a, b = live.status.hosts
    with vm_with_disk(live) as (vm, path), ExitStack() as stack:
        top = (
            path.replace(FOLDER, "/var/lib/libvirt/tops" if "VM with" in what else FOLDER) + ".top"
        )
        if "top" in what:
            said(a, "mkdir", "-p", top.rpartition("/")[0])
            create = ("qemu-img", "create", "-q", "-u", "-f", "qcow2", "-F", "qcow2", "-b", path)
            said(a, *create, top, "64M")
            stack.callback(on, a, "rm", "-f", top)
        if "VM" in what:
            stack.enter_context(another_vm(a, top if "top" in what else path))
        record = live.ended(start(live, vm, **REMOVED))
        assert record["state"] == "completed", record["failure"]
        assert [each["code"] for each in record["problems"]] == ["source_image_kept"]
        (disk,) = record["disks"]
        assert disk["source_image"] == "kept"
        said_why = "another names it" if what == "another VM" else f"{top} lies on it"
        assert said_why in disk["source_image_reason"]
        assert (holds(a, path), pools(a)) == (True, "")
        said(b, "virsh", "-c", "qemu:///system", "destroy", vm.name)


def test_a_service_that_is_killed_while_it_removes_the_image_finishes_it(live: Live) -> None:
    hosts = dict(zip("ab", live.status.hosts, strict=True))
    with vm_with_disk(live) as (vm, path):
        seen = False
        for here, there in ("ab", "ba", "ab", "ba"):
            record = start(live, vm, to=there, **REMOVED)
            seen = kill_while_removing(live.service)
            ended = live.ended(record)
            assert (ended["state"], ended["problems"]) == ("completed", []), ended["failure"]
            assert ended["disks"][0]["source_image"] == "removed"
            assert (holds(hosts[here], path), holds(hosts[there], path)) == (False, True)
            assert (pools(hosts["a"]), pools(hosts["b"])) == ("", "")
            assert live.states(vm) == {there: "running"}
            if seen:
                break
        assert seen, "it was over each time before it was seen"
        said(hosts[there], "virsh", "-c", "qemu:///system", "destroy", vm.name)


def test_the_sources_image_stays_where_the_migration_is_aborted(live: Live) -> None:
    a, b = live.status.hosts
    with vm_with_disk(live, mib=64) as (vm, path):
        record = start(live, vm, **SLOWLY, copy_source_images="remove")
        wait_for(lambda: holds(b, path), "the copy to be under way")
        live.client.delete(f"/migrations/{record['id']}")
        ended = live.ended(record)
        assert (ended["state"], ended["problems"]) == ("cancelled", [])
        assert ended["disks"][0]["source_image"] == "kept"
        assert (holds(a, path), holds(b, path)) == (True, False)
        assert live.states(vm) == {"a": "running"}


def test_a_file_that_is_there_is_never_overwritten(live: Live) -> None:
    _, b = live.status.hosts
    with vm_with_disk(live) as (vm, path):
        said(b, "sh", "-c", f"echo precious > {path}")
        # No pool shows the file to the plan: it is found before libvirt is called.
        ended = live.ended(start(live, vm, **COPIED))
        assert ended["state"] == "failed"
        assert "which the copy would overwrite" in ended["failure"]
        assert said(b, "cat", path) == "precious"
        assert pools(b) == ""
        said(b, "virsh", "-c", "qemu:///system", "pool-create-as", "own", "dir", "--target", FOLDER)
        try:
            with pytest.raises(Refused) as refused:
                start(live, vm, **COPIED)
            assert [p.code for p in refused.value.problems] == ["copy_target_exists"]
            on(b, "rm", path)
            assert "disk_missing" in codes(live, vm)
            assert not codes(live, vm, **COPIED) & {"disk_missing", "copy_target_not_seen"}
            assert "no_such_disk" in codes(live, vm, **COPIED, copy_disks="vdz")
            said(b, "qemu-img", "create", "-q", "-f", "raw", path, "32M")
            small = codes(live, vm, copy_storage_incremental="on")
            assert {"copy_target_format", "copy_may_be_onto_itself"} <= small
            on(b, "rm", path)
            with another_vm(b, path):
                assert "copy_target_in_use" in codes(live, vm, **COPIED)
        finally:
            said(b, "virsh", "-c", "qemu:///system", "pool-destroy", "own")
        assert live.states(vm) == {"a": "running"}


def asked(host: lab.HostStatus, vm: lab.LabVm, command: str) -> Any:  # any JSON
    """What a VM's QEMU itself says."""
    ask = json.dumps({"execute": command})
    told = said(host, "virsh", "-c", "qemu:///system", "qemu-monitor-command", vm.name, ask)
    return json.loads(told)["return"]


def mirror(host: lab.HostStatus, vm: lab.LabVm) -> Document:
    """The job that copies the VM's disk."""
    (job,) = (job for job in asked(host, vm, "query-block-jobs") if job["type"] == "mirror")
    return dict(job)


def proven(live: Live, record: Document) -> dict[str, str]:
    return {each["tunable"]: each["status"] for each in live.record(record)["outcomes"]}


def set_now(live: Live, record: Document, **values: object) -> Document:
    return live.client.patch(f"/migrations/{record['id']}", {"values": values})


def test_a_copy_is_helped_over_libvirts_own_monitor(live: Live) -> None:
    """QEMU's own word for it: the speed of the job, and that the guest's writes wait."""
    a, b = live.status.hosts
    with vm_with_disk(live, mib=64) as (vm, _):
        # Its memory is sent at this rate, which is more than what the guest writes.
        split = {"max_bandwidth_bytes_per_s": 8 * MIB, "copy_bandwidth_bytes_per_s": 3 * MIB}
        record = start(live, vm, **COPIED, **split)
        wait_for(lambda: live.record(record)["disks"][:1] != [], "the copy to be prepared")
        wait_for(lambda: live.record(record)["disks"][0]["copied_bytes"] > 0, "the copy to begin")
        wait_for(lambda: mirror(a, vm)["speed"] == 3 * MIB, "the disk's own limit")
        wait_for(lambda: proven(live, record)["copy_bandwidth_bytes_per_s"] == "effective", "proof")
        set_now(live, record, max_bandwidth_bytes_per_s=2 * MIB)
        assert mirror(a, vm)["speed"] == 2 * MIB

        release = asked(a, vm, "query-version")["qemu"]
        changes = (release["major"], release["minor"]) >= (8, 2)
        if changes:
            set_now(live, record, copy_synchronous_writes="on")
            wait_for(lambda: mirror(a, vm).get("actively-synced") is not None, "writes to wait")
        else:
            with pytest.raises(Refused) as refused:
                set_now(live, record, copy_synchronous_writes="on")
            assert refused.value.problems[0].code == "copy_mode_fixed"

        set_now(live, record, max_bandwidth_bytes_per_s=400 * MIB)
        ended = live.ended(record)
        assert (ended["state"], ended["problems"]) == ("completed", []), ended["failure"]
        effects = [step["effect"] for step in ended["step_records"]]
        assert effects == ["done", "done" if changes else "refused", "done"]
        samples = list(live.client.items(f"/migrations/{record['id']}/disk-samples"))
        assert {each["target"] for each in samples} == {"vda"}
        assert samples[-1]["copied_bytes"] == ended["disks"][0]["copied_bytes"] == 64 * MIB
        assert live.states(vm) == {"b": "running"}
        said(b, "virsh", "-c", "qemu:///system", "destroy", vm.name)


@contextmanager
def pool_on(*hosts: lab.HostStatus) -> Iterator[None]:
    """An active pool that is the folder of the images: with it a host's files can be seen."""
    virsh = ("virsh", "-c", "qemu:///system")
    with ExitStack() as stack:
        for host in hosts:
            said(host, *virsh, "pool-create-as", "images", "dir", "--target", FOLDER)
            stack.callback(said, host, *virsh, "pool-destroy", "images")
        yield


def test_an_evacuation_copies_local_disks_or_leaves_the_vm(live: Live) -> None:
    a, b = live.status.hosts
    with vm_with_disk(live) as (vm, path), pool_on(a, b):
        here, body = "/hosts/a/evacuations", {"destinations": ["b"]}
        plans = {
            what: live.client.post(f"{here}/plan", {**body, "local_disks": what})
            for what in ("profile", "leave", "copy")
        }
        told = {what: (plan["movable"], plan["vms"][0]["reason"]) for what, plan in plans.items()}
        assert told["profile"][0] == 0, told
        assert "disk_missing" in told["profile"][1]
        assert told["leave"][0] == 0, told
        assert "leaves those: vda" in told["leave"][1]
        assert told["copy"] == (1, "")
        (room,) = plans["copy"]["rooms"]
        assert (room["host"], room["folders"], room["promised_bytes"]) == ("b", [FOLDER], 0)
        (disk,) = plans["copy"]["vms"][0]["disks"]
        assert disk["allocated_bytes"] == room["needed_bytes"] > 32 * MIB
        assert room["left_bytes"] == room["free_bytes"] - room["needed_bytes"]

        made = live.client.post(here, {**body, "local_disks": "copy"})
        where = f"{here}/{made['id']}"
        wait_for(lambda: live.client.get(where)["ended"], "the evacuation to end")
        assert live.client.get(where)["state"] == "completed"
        assert live.states(vm) == {"b": "running"}
        assert holds(b, path)
        said(b, "virsh", "-c", "qemu:///system", "destroy", vm.name)


@contextmanager
def virsh_copies(live: Live, vm: lab.LabVm, mib_per_s: int) -> Iterator[subprocess.Popen[bytes]]:
    """What an operator types on a, of which vmtune knows nothing."""
    a, b = live.status.hosts
    flags = ("--live", "--p2p", "--persistent", "--undefinesource", "--copy-storage-all")
    virsh = ("virsh", "-c", "qemu:///system", "migrate", *flags, "--bandwidth", str(mib_per_s))
    command = [*lab.inside(a), *virsh, vm.name, f"qemu+tls://{b.name}/system"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


def test_copies_that_others_start_are_recorded_and_kept_to_the_limit(live: Live) -> None:
    a, b = live.status.hosts
    # virsh creates images in pools alone.
    with vm_with_disk(live, mib=64) as (vm, path), vm_with_disk(live) as (other, _), pool_on(b):
        # Its memory is sent at this rate, which is more than what the guest writes.
        with virsh_copies(live, vm, 8) as process:
            records = "/migrations"
            seen = {"vm": vm.uuid, "state": "starting"}
            wait_for(lambda: list(live.client.items(records, seen)), "the migration to be found")
            (record,) = live.client.items(records, seen)
            wait_for(lambda: live.record(record)["disks"][:1] != [], "the copy to be found")
            set_now(live, record, max_bandwidth_bytes_per_s=2 * MIB)  # helped like any other
            wait_for(lambda: copies(live, record), "the copy to go on")
            record = live.record(record)
            assert (record["trigger"], record["phase"]) == ("observed", "disks")
            (disk,) = record["disks"]
            assert (disk["target"], disk["path"], disk["created"]) == ("vda", path, False)

            waits = start(live, other, **COPIED)
            assert live.record(waits)["waiting_reason"] == "1 of 1 copy disks from or to a"
            set_now(live, record, max_bandwidth_bytes_per_s=400 * MIB)
            assert process.wait(90) == 0
        ended = live.ended(record)
        assert (ended["state"], ended["problems"]) == ("completed", []), ended["failure"]
        (disk,) = ended["disks"]
        assert disk["copied_bytes"] == disk["total_bytes"] == 64 * MIB
        assert disk["ready_ms"] > 0
        assert live.ended(waits)["state"] == "completed"
        assert holds(a, path), "the source's image stays"
        for each in (vm, other):
            said(b, "virsh", "-c", "qemu:///system", "destroy", each.name)
