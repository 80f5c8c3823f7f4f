"""libvirt's hook on a machine of its own: it asks the service on another one, by HTTPS."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.hosts.broken_ways import hosts
from tests.support.hosts.live import Live
from tests.support.hosts.machines import live_machines, on, said, why_no_machines
from tests.support.hosts.ways import (
    HOOK,
    STOCK_ROUNDS,
    TOKEN,
    WANTED_ROUNDS,
    arrivals,
    reload_hooks,
    rounds,
)
from vmtune import lab
from vmtune.errors import LabError
from vmtune.hook.script import TEMPLATE
from vmtune.model.workload import Workload

NONE = why_no_machines()
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE or "never")
SMALL: dict[str, Any] = {
    "memory_bytes": 64 << 20,
    "workload": Workload(region_bytes=4 << 20, idle_ms=200),
}
WAIT = ("--timeout", "20s")


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with live_machines(https=True) as made, hosts(made, "tls"):
        made.profile("loud", announce_rounds=WANTED_ROUNDS, downtime_limit_ms=450)
        made.client.post("/assignments", {"target": "default", "key": "", "profile": "loud"})
        # As the package ships it: set to a service of the same host, which is not there.
        shipped = made.settings.folder / "shipped"
        shipped.write_text(TEMPLATE.read_text())
        said(made.host("b"), "install", "-D", "-m", "755", str(shipped), HOOK)
        reload_hooks(made, "b")
        yield made


def token(live: Live, **more: Any) -> None:
    """A new token for the hook, in a file of root's on host b."""
    made = live.client.post("/tokens", {"name": f"hook-{secrets.token_hex(3)}", **more})
    there = live.settings.folder / "token"
    there.write_text(made["token"])
    said(live.host("b"), "install", "-D", "-m", "600", str(there), TOKEN)
    there.unlink()


def install(live: Live, *arguments: str) -> dict[str, Any]:
    """On host b, with what is in its own root."""
    url = f"https://{live.host('a').name}:8470"
    words = ("install-hook", "--service-url", url, "--hook-token-file", TOKEN, *arguments, "--json")
    answer = said(live.host("b"), sys.executable, "-m", "vmtune", *words)
    return dict(json.loads(answer))


def migrate(live: Live, vm: lab.LabVm, source: str, to: str) -> None:
    """As anybody would who has never heard of vmtune."""
    options = ("--live", "--p2p", "--persistent", "--undefinesource")
    lab.virsh(live.host(source).uri, "migrate", *options, vm.name, live.host(to).peer_uri)
    assert live.states(vm) == {to: "running"}


def test_the_hook_of_the_package_is_set_to_the_service_elsewhere(live: Live) -> None:
    token(live, scopes=["hook"], hosts=["b"])
    done = install(live, *WAIT, "--ca-file", "/etc/pki/CA/cacert.pem")
    assert (done["changed"], done["reload_libvirt"]) == (True, False)
    assert live.host("a").name in said(live.host("b"), "grep", "^url=", HOOK)
    with live.vm(**SMALL) as vm:
        migrate(live, vm, "a", "b")
        assert rounds(live, vm, "b") == WANTED_ROUNDS
        [told] = arrivals(live, vm)
        assert (told["destination"], told["profile"]) == ("b", "loud")
        # Host a has no hook, and is told of nobody.
        migrate(live, vm, "b", "a")
        assert len(arrivals(live, vm)) == 1


def test_what_is_wrong_is_told_by_virsh(live: Live) -> None:
    refuse = (*WAIT, "--fail-closed")
    own = ("--ca-file", "/etc/pki/CA/cacert.pem")
    token(live, scopes=["read"])
    wrong = {
        own: "the service refuses the token",
        (): "has no certificate that is trusted",  # by those of the system, which lack the lab's
    }
    with live.vm(**SMALL) as vm:
        for arguments, said_ in wrong.items():
            install(live, *refuse, *arguments)
            with pytest.raises(LabError, match=said_):
                migrate(live, vm, "a", "b")
            assert live.states(vm) == {"a": "running"}
        # Without it the migration continues.
        install(live, *WAIT, *own)
        migrate(live, vm, "a", "b")
        assert rounds(live, vm, "b") == STOCK_ROUNDS
        assert arrivals(live, vm) == []


def test_the_token_is_readable_by_root_alone_and_nowhere_else(live: Live) -> None:
    token(live, scopes=["hook"], hosts=["b"])
    install(live, *WAIT, "--ca-file", "/etc/pki/CA/cacert.pem")
    b = live.host("b")
    secret = said(b, "cat", TOKEN)
    for user in ("operator", "visitor"):
        assert on(b, "setpriv", f"--reuid={user}", "--clear-groups", "cat", TOKEN).returncode != 0
    assert secret not in said(b, "cat", HOOK)
    with live.vm(**SMALL) as vm:
        migrate(live, vm, "a", "b")
    folder = live.settings.folder
    logs = [*folder.glob("?/log/**/*.log"), Path(folder / "service/service.log")]
    assert logs
    assert not [path for path in logs if secret in path.read_text(errors="replace")]
    audited = json.dumps(live.client.get("/audit"))
    assert secret not in audited
    said(b, "chmod", "644", TOKEN)
    url = f"https://{live.host('a').name}:8470"
    words = ("install-hook", "--service-url", url, "--hook-token-file", TOKEN)
    refused = on(b, sys.executable, "-m", "vmtune", *words)
    assert refused.returncode != 0
    assert "other users than root can read it" in refused.stderr
