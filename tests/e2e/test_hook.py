"""Plain ``virsh migrate`` between two real libvirt hosts, one of which has the hook."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.hosts.live import Live, live, wait_for, why_no_lab
from tests.support.hosts.relay import relayed
from tests.support.served.browser import free_port
from tests.unit.api.test_tls import certificate
from vmtune import lab
from vmtune.client.connection.sse import stored
from vmtune.errors import LabError
from vmtune.model.workload import Workload

NO_LAB = why_no_lab()
pytestmark = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")
STOCK_ROUNDS, WANTED_ROUNDS = 5, 8
SMALL: dict[str, Any] = {
    "memory_bytes": 64 << 20,
    "workload": Workload(region_bytes=4 << 20, idle_ms=200),
}


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VMTUNE_DESTINATION_COMMAND_LINE", "true")
        folder = tmp_path_factory.mktemp("live")
        cert, key = certificate(folder)
        patch.setenv("VMTUNE_TLS_CERT", str(cert))
        patch.setenv("VMTUNE_TLS_KEY", str(key))
        with live(folder, number=88, port=free_port()) as made:
            made.profile("loud", announce_rounds=WANTED_ROUNDS, downtime_limit_ms=450)
            made.client.post("/assignments", {"target": "default", "key": "", "profile": "loud"})
            yield made


@pytest.fixture(autouse=True)
def _serving(it: Live) -> Iterator[None]:
    """Each test begins with a service, and without hooks."""
    it.service.revive()
    yield
    for path in sorted(hooks(it).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def hooks(it: Live) -> Path:
    """What is /etc/libvirt/hooks on host b."""
    return it.settings.folder / "b/etc/hooks"


def command(it: Live, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "vmtune", *arguments, "--hooks-dir", str(hooks(it)),
         "--socket", str(it.client.socket_path), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def a_hook(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def reload(it: Live) -> None:
    """As `systemctl reload libvirtd` does; libvirt tells its daemon hook once it has looked
    which hooks there are."""
    seen = it.settings.folder / "b/reloaded"
    a_hook(hooks(it) / "daemon", f'[ "$2" != reload ] || touch {seen}')
    pid = it.host("b").libvirtd_pid
    assert pid is not None
    os.kill(pid, signal.SIGHUP)
    wait_for(seen.exists, "libvirt to look for hooks")
    seen.unlink()


def migrate(it: Live, vm: lab.LabVm, source: str, to: str) -> None:
    """As anybody would who has never heard of vmtune."""
    options = ("--live", "--p2p", "--persistent", "--undefinesource")
    lab.virsh(it.host(source).uri, "migrate", *options, vm.name, it.host(to).peer_uri)
    assert it.states(vm) == {to: "running"}


def rounds(it: Live, vm: lab.LabVm, on: str) -> int:
    """How many announcements the VM's QEMU would send, as it says itself."""
    text = '{"execute": "query-migrate-parameters"}'
    answer = json.loads(lab.virsh(it.host(on).uri, "qemu-monitor-command", vm.name, text))
    return int(answer["return"]["announce-rounds"])


def arrivals(it: Live, vm: lab.LabVm) -> list[dict[str, Any]]:
    told = [event.data for event in stored(it.client, "0")]
    return [e["data"] for e in told if e["topic"] == "arrival" and e["subject"] == vm.uuid]


def test_virsh_migrate_passes_through_the_hook(it: Live) -> None:
    with it.vm(**SMALL) as vm:
        done = command(it, "install-hook", "--timeout", "20s")
        assert done["reload_libvirt"] is True
        migrate(it, vm, "a", "b")
        assert rounds(it, vm, "b") == STOCK_ROUNDS, "libvirt was not told to look for hooks"
        migrate(it, vm, "b", "a")
        # Others' hooks: one before ours, one after.
        calls, got = it.settings.folder / "b/calls", it.settings.folder / "b/got.xml"
        a_hook(hooks(it) / "qemu", f'echo "$2 $3" >>{calls}')
        a_hook(hooks(it) / "qemu.d/zz", f'[ "$2" != migrate ] || cat >{got}')
        reload(it)
        migrate(it, vm, "a", "b")
        assert rounds(it, vm, "b") == WANTED_ROUNDS
        xml = lab.virsh(it.host("b").uri, "dumpxml", vm.name)
        assert xml.count("migration.announce-rounds=8") == 1
        assert got.read_text().count("migration.announce-rounds=8") == 1
        assert calls.read_text().split("\n")[:2] == ["migrate begin", "prepare begin"]
        assert "migration" not in lab.virsh(it.host("b").uri, "dumpxml", "--inactive", vm.name)
        # And away again: nobody is told of the stop, and nothing fails by it.
        migrate(it, vm, "b", "a")
        (told,) = arrivals(it, vm)
        assert told["profile"] == "loud"
        assert told["given"] == {"announce_rounds": WANTED_ROUNDS}
        command(it, "uninstall-hook")
        assert sorted(p.name for p in hooks(it).rglob("*")) == ["daemon", "qemu", "qemu.d", "zz"]
        migrate(it, vm, "a", "b")
        assert len(arrivals(it, vm)) == 1


def test_the_hook_of_another_host_asks_by_https(it: Live, tmp_path: Path) -> None:
    """As where the service does not run on the host that the VM arrives on."""
    made = it.client.post("/tokens", {"name": "hook-of-b", "scopes": ["hook"], "hosts": ["b"]})
    token = tmp_path / "hook.token"
    token.write_text(made["token"])
    token.chmod(0o600)
    url, ca = f"https://localhost:{it.service.port}", os.environ["VMTUNE_TLS_CERT"]
    where = ("--service-url", url, "--hook-token-file", str(token), "--ca-file", ca)
    command(it, "install-hook", "--timeout", "20s", *where)
    reload(it)
    with relayed(it.host("b").name, it.service.port), it.vm(**SMALL) as vm:
        migrate(it, vm, "a", "b")
        assert rounds(it, vm, "b") == WANTED_ROUNDS
        [told] = arrivals(it, vm)
        assert told["destination"] == "b"


@pytest.mark.parametrize("how", ["stopped", "hanging"])
def test_a_service_that_does_not_answer_holds_no_migration_up(it: Live, how: str) -> None:
    command(it, "install-hook", "--timeout", "200ms")
    reload(it)
    process = it.service.process
    assert process is not None
    with it.vm(**SMALL) as vm:
        process.send_signal(signal.SIGSTOP if how == "hanging" else signal.SIGTERM)
        try:
            if how == "stopped":
                process.wait(20)
                assert not it.client.socket_path.exists()
            migrate(it, vm, "a", "b")
        finally:
            process.send_signal(signal.SIGCONT)
        assert rounds(it, vm, "b") == STOCK_ROUNDS


def test_an_operator_may_have_it_refuse(it: Live) -> None:
    command(it, "install-hook", "--fail-closed", "--timeout", "20s")
    reload(it)
    with it.vm(**SMALL) as vm:
        it.service.kill()
        with pytest.raises(LabError, match="vmtune: the service does not listen at") as refused:
            migrate(it, vm, "a", "b")
        assert "--fail-closed" in str(refused.value)
        assert it.states(vm) == {"a": "running"}
        it.service.revive()
        migrate(it, vm, "a", "b")
        assert rounds(it, vm, "b") == WANTED_ROUNDS
