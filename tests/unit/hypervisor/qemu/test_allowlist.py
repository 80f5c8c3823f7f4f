"""Only what vmtune needs leaves it, and nothing is sent of what does not."""

from __future__ import annotations

import ast
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vmtune
from vmtune.api.wiring.deps import make_driver
from vmtune.errors import CommandRefused, HostUnreachable
from vmtune.hypervisor.libvirt.monitor import LibvirtMonitor
from vmtune.hypervisor.qemu.allowlist import ALLOWED, FOR_TUNABLES, GUARDS, NOT_ALLOWED, check
from vmtune.hypervisor.qmp.monitor import QmpMonitor
from vmtune.model.host.inventory import Host
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import QmpKind

MAIN_LOOP = {"qom-type": "main-loop", "id": "main-loop"}
NBD = {"addr": {"type": "unix", "data": {"path": "/run/x/vmtune-nbd.sock"}}}
EXPORT = {"type": "nbd", "id": "vmtune-export", "node-name": "vmtune-node"}
MIRROR = {"job-id": "vmtune-copy-a", "device": "disk0", "target": "vmtune-copy-a", "sync": "full"}
REMOTE = {
    "driver": "nbd", "node-name": "vmtune-copy-a", "export": "vmtune-copy-a",
    "server": {"type": "inet", "host": "10.0.0.2", "port": "49216"},
}  # fmt: skip


def tcp(host: str, port: object = "49216", clients: object = 1) -> dict[str, Any]:
    """An NBD server that is reached by TCP."""
    address = {"type": "inet", "data": {"host": host, "port": port}}
    return {"addr": address, "max-connections": clients}


COPIES: list[tuple[str, dict[str, Any]]] = [
    ("nbd-server-start", tcp("10.0.0.2")),
    ("nbd-server-start", tcp("fd00::2", "65535")),
    ("nbd-server-start", tcp("b.example", clients=3)),
    ("block-export-add", {
        "type": "nbd", "id": "vmtune-copy-a", "name": "vmtune-copy-a", "node-name": "disk0",
        "writable": True,
    }),
    ("nbd-server-start", {**tcp("10.0.0.2"), "tls-creds": "tls0", "tls-authz": "only-a"}),
    ("blockdev-add", REMOTE),
    ("blockdev-add", {**REMOTE, "tls-creds": "tls0", "tls-hostname": "b.example"}),
    ("blockdev-add", {**REMOTE, "server": {"type": "unix", "path": "/run/b/vmtune-nbd.sock"}}),
    ("blockdev-mirror", MIRROR),
    ("block-job-cancel", {"device": "vmtune-copy-a", "force": False}),
]  # fmt: skip
DANGEROUS = (
    "quit", "human-monitor-command", "system_powerdown", "system_reset", "device_add",
    "device_del", "blockdev-reopen", "nbd-server-add", "chardev-add", "netdev_add",
    "dump-guest-memory", "memsave", "pmemsave", "screendump", "getfd", "add-fd", "object-del",
    "set_password", "blockdev-backup", "transaction", "snapshot-save",
    "xen-save-devices-state", "qmp_capabilities", "device-list-properties",
)  # fmt: skip
BAD_ARGUMENTS: list[tuple[str, dict[str, Any]]] = [
    ("migrate", {"uri": "exec:cat > /tmp/x"}),
    ("migrate", {"uri": "fd:4"}),
    ("migrate", {"uri": "file:/etc/passwd"}),
    ("migrate", {"uri": "tcp:a:1", "blk": True}),
    ("migrate", {"channels": [{"addr": {"transport": "exec", "args": ["/bin/sh"]}}]}),
    ("migrate-incoming", {"uri": "exec:/bin/sh"}),
    ("migrate-incoming", {}),
    ("object-add", {"qom-type": "secret", "id": "x", "file": "/etc/shadow"}),
    ("object-add", {"qom-type": "memory-backend-file", "id": "x", "mem-path": "/x", "size": 1}),
    ("object-add", {**MAIN_LOOP, "more": 1}),
    ("qom-set", {"path": "/machine", "property": "poll-max-ns", "value": 1}),
    ("qom-set", {"path": "/objects/x", "property": "filename", "value": "/x"}),
    ("migrate-set-parameters", {"max-bandwidth": 1, "block-bitmap-mapping": []}),
    ("migrate-set-parameters", {"direct-io": True}),
    ("migrate-set-capabilities", {"capabilities": [{"capability": "x-colo", "state": True}]}),
    ("nbd-server-start", {"addr": {"type": "inet", "data": {"host": "::", "to": 9}}}),
    *(
        ("nbd-server-start", tcp(host))
        for host in (
            "",
            "0.0.0.0",
            "::",
            "::ffff:0.0.0.0",
            "0",
            "0x0",
            "0.0.0.0x0",
            "224.0.0.1",
            "a b",
            "{host}",
        )
    ),
    *(("nbd-server-start", tcp("10.0.0.2", port)) for port in ("22", "1023", "65536", "", 49216)),
    *(("nbd-server-start", tcp("10.0.0.2", clients=number)) for number in (0, -1, None, True)),
    ("blockdev-mirror", {"job-id": "vmtune-copy-a", "device": "disk0", "target": "disk1"}),
    ("blockdev-mirror", {**MIRROR, "replaces": "disk0"}),
    ("blockdev-mirror", {**MIRROR, "job-id": "backup"}),
    ("block-job-cancel", {"device": "backup"}),
    ("blockdev-add", {"driver": "nbd", "node-name": "vmtune-x", "export": "vmtune-copy-a"}),
    ("blockdev-add", {**REMOTE, "reconnect-delay": 1}),
    ("blockdev-add", {**REMOTE, "server": {"type": "unix", "path": "/run/docker.sock"}}),
    ("blockdev-add", {**REMOTE, "server": {"type": "fd", "str": "x"}}),
    ("blockdev-add", {**REMOTE, "server": {**REMOTE["server"], "to": 65535}}),
    ("block-export-add", {**EXPORT, "node-name": "disk0", "writable": True}),
    ("nbd-server-start", {"addr": {"type": "unix", "data": {"path": "/etc/passwd"}}}),
    ("nbd-server-start", {"addr": {"type": "fd", "data": {"str": "vmtune-nbd.sock"}}}),
    ("nbd-server-start", {}),
    ("nbd-server-start", {**NBD, "tls-key": "x"}),
    ("block-export-add", {**EXPORT, "node-name": "disk0", "writable": True}),
    ("block-export-add", {**EXPORT, "type": "fuse", "mountpoint": "/etc/passwd"}),
    ("block-export-add", {**EXPORT, "type": "vhost-user-blk"}),
    ("block-export-add", {**EXPORT, "id": "backup"}),
    ("block-export-del", {"id": "backup"}),
    ("block-export-del", {}),
    ("blockdev-add", {"driver": "null-co", "node-name": "disk0"}),
    ("blockdev-add", {"driver": "file", "node-name": "vmtune-x", "filename": "/etc/shadow"}),
    ("blockdev-add", {"driver": "qcow2", "node-name": "vmtune-x", "file": "disk0"}),
    (
        "blockdev-add",
        {
            "driver": "raw",
            "node-name": "vmtune-x",
            "file": {"driver": "file", "filename": "/etc/shadow"},
        },
    ),
    ("blockdev-add", {"driver": "null-co", "node-name": "vmtune-x", "cache": {}}),
    ("blockdev-del", {"node-name": "disk0"}),
    ("blockdev-create", {"job-id": "vmtune-x", "options": {"driver": "qcow2", "file": "disk0"}}),
    ("blockdev-create", {"job-id": "vmtune-x", "options": {"driver": "file", "filename": "/x"}}),
    ("blockdev-create", {"job-id": "x", "options": {"driver": "qcow2", "file": "vmtune-x"}}),
    ("job-dismiss", {"id": "backup"}),
    ("migrate", {"uri": "tcp:10.0.0.1:4444", "resume": False}),
    ("migrate", {"uri": "exec:sh", "resume": True}),
    ("migrate-recover", {"uri": "exec:sh"}),
    ("migrate-recover", {}),
    ("x-query-virtio-queue-status", {"path": "/machine/peripheral/a/virtio-backend", "queue": 1}),
    ("x-query-virtio-queue-status", {"path": "/machine/unattached/a/virtio-backend", "queue": 0}),
    ("x-query-virtio-queue-status", {"path": "/machine/peripheral/a", "queue": 0}),
    ("trace-event-set-state", {"name": "*", "enable": True}),
    ("trace-event-set-state", {"name": "kvm_dirty_ring_*", "enable": True}),
]


@pytest.mark.parametrize("command", DANGEROUS)
def test_what_could_harm_is_not_sent(command: str) -> None:
    assert command not in ALLOWED
    with pytest.raises(CommandRefused, match="does not send") as caught:
        check(command, None)
    assert caught.value.problems[0].code == NOT_ALLOWED
    assert "allow_qmp_commands" in caught.value.problems[0].remedy


@pytest.mark.parametrize(("command", "arguments"), BAD_ARGUMENTS)
def test_nor_what_could_with_these_arguments(command: str, arguments: dict[str, Any]) -> None:
    for more in ((), (command,)):  # the operator's consent is to names that are not ours
        with pytest.raises(CommandRefused, match="with these arguments") as caught:
            check(command, arguments, more)
        assert caught.value.problems[0].code == NOT_ALLOWED
    assert command in {c for c, _ in BAD_ARGUMENTS} & set(GUARDS)


@given(st.text(max_size=40))
def test_no_other_name_is_sent(name: str) -> None:
    if name not in ALLOWED:
        with pytest.raises(CommandRefused):
            check(name, {})


def test_every_tunable_of_qemu_can_be_set_and_read() -> None:
    for row in BUILT_IN.values():
        if row.qmp is None:
            continue
        assert set(FOR_TUNABLES[row.qmp.kind]) <= ALLOWED
        match row.qmp.kind:
            case QmpKind.CAPABILITY:
                state = {"capability": row.qmp.name, "state": True}
                check("migrate-set-capabilities", {"capabilities": [state]})
            case QmpKind.PARAMETER:
                check("migrate-set-parameters", {row.qmp.name: 1})
            case QmpKind.IOTHREAD | QmpKind.MAIN_LOOP:
                place = {"path": "/objects/iothread1", "property": row.qmp.name}
                check("qom-set", {**place, "value": 1})
    check("object-add", MAIN_LOOP)
    check("migrate", {"uri": "tcp:10.0.0.1:4444"})
    check("migrate", {"uri": "tcp:10.0.0.1:4444", "resume": True})
    check("migrate-recover", {"uri": "tcp:10.0.0.1:4444"})
    check("trace-event-set-state", {"name": "kvm_dirty_ring_full", "enable": True})


def test_the_operator_may_allow_more_by_name() -> None:
    with pytest.raises(CommandRefused):
        check("x-patched", {"a": 1}, ("x-other",))
    check("x-patched", {"a": 1}, ("x-patched",))


async def test_it_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    direct = QmpMonitor(tmp_path / "none", lambda *_: None, lambda: None)
    lent = LibvirtMonitor(None, UUID(int=1))  # type: ignore[arg-type] # it is not reached
    for monitor in (direct, lent):
        with pytest.raises(CommandRefused, match="does not send"):
            await monitor.execute("quit")
    allowed = QmpMonitor(
        tmp_path / "none", lambda *_: None, lambda: None, more_commands=("x-patched",)
    )
    with pytest.raises(HostUnreachable):  # which is looked at after that
        await allowed.execute("x-patched")


async def test_the_operators_consent_reaches_the_monitors(tmp_path: Path) -> None:
    for uri in (f"qmp+unix://{tmp_path}", "qemu:///system"):
        driver = make_driver(Host("h", uri, "", "", datetime.now(UTC)), ("x-patched",))
        assert driver._more_commands == ("x-patched",)  # type: ignore[attr-defined] # of both
        await driver.close()


def test_there_is_no_way_past_it() -> None:
    """The library's client and libvirt's passthrough are used where the check is, alone."""
    ways = {"QMPClient", "qemuMonitorCommand", "qemuMonitorCommandWithFiles", "execute_msg",
            "qemuAgentCommand", "virDomainQemuMonitorCommand"}  # fmt: skip
    root = Path(vmtune.__file__).parent
    texts = {
        f"{file.parent.name}/{file.name}": file.read_text()
        for file in [*root.glob("**/*.py"), *(root / "api").resolve().glob("**/*.py")]
    }
    found: dict[str, set[str]] = {}
    for place, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
            if name in ways:
                found.setdefault(name, set()).add(place)
    assert found == {
        "QMPClient": {"qmp/client.py", "qmp/monitor.py"},
        "qemuMonitorCommand": {"calls/domain.py"},
        "qemuAgentCommand": {"calls/domain.py"},
    }
    users = {place for place, text in texts.items() if "LeanClient(" in text}
    assert users == {"qmp/client.py", "qmp/monitor.py"}
    callers = {place for place, text in texts.items() if "domain.monitor(" in text}
    assert callers == {"libvirt/monitor.py"}
    assert {place for place, text in texts.items() if ").agent(" in text} == {"libvirt/agent.py"}
    for channel, driver in (
        ("LibvirtChannel(", "libvirt/driver.py"),
        ("SocketChannel(", "qmp/driver.py"),
    ):
        made = {name: text.count(channel) for name, text in texts.items() if channel in text}
        assert made == {driver: 1}, "elsewhere than behind the check of what guests run"
        assert f"GuestAgent({channel}" in texts[driver]


@pytest.mark.parametrize(("command", "arguments"), COPIES)
def test_what_copies_disks_is_sent(command: str, arguments: dict[str, Any]) -> None:
    check(command, arguments)
