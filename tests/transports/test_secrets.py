"""What vmtune logs, audits, stores and answers, over every transport, has nobody's secret in it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.hosts.broken_ways import TRANSPORTS, hosts, share_known_hosts
from tests.support.hosts.live import Live
from tests.support.hosts.machines import live_machines, on, said, why_no_machines
from tests.support.hosts.ways import tuned_there_and_back
from vmtune.client.connection.errors import Refused
from vmtune.client.connection.sse import stored

NONE = why_no_machines()
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE or "never")
KEYS = (
    "/root/.ssh/id_ed25519",
    "/etc/pki/libvirt/private/clientkey.pem",
    "/etc/pki/libvirt/private/serverkey.pem",
    "/etc/pki/qemu/client-key.pem",
    "/etc/pki/qemu/server-key.pem",
)
TYPED = "hunter2-typed-into-a-uri"
SMALL: dict[str, Any] = {"memory_bytes": 96 << 20}
LISTS = (
    *("/hosts", "/vms", "/tokens", "/audit", "/activity", "/applications", "/migrations"),
    *("/hosts/a", "/hosts/a/findings", "/hosts/b/findings", "/overview", "/services", "/profiles"),
)


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    """The service logs all that it can."""
    with live_machines(https=True, environment={"VMTUNE_LOG_LEVEL": "debug"}) as made:
        share_known_hosts(made)
        yield made


@pytest.fixture(scope="module")
def secret(live: Live) -> dict[str, str]:
    """Each secret that there is, by what it is: of a key its longest lines."""
    found = {"a URI's password": TYPED}
    for host in live.status.hosts:
        (password,) = re.findall(
            "^password=(.+)$", said(host, "cat", "/etc/libvirt/auth.conf"), re.M
        )
        found[f"SASL of {host.name}"] = password
        for path in KEYS:
            lines = [line for line in said(host, "cat", path).splitlines() if "-----" not in line]
            found[f"{path} of {host.name}"] = max(lines, key=len)
    made = live.client.post("/tokens", {"name": "of-a-script", "scopes": ["read"]})
    found["a token"] = made["token"]
    assert all(len(each) >= 20 for each in found.values())
    return found


def told(live: Live, answers: list[str]) -> dict[str, str]:
    """All that is written or said anywhere: logs, the state folder, and what the API answers."""
    folder = live.settings.folder
    files = [*folder.glob("?/log/**/*.log"), *(folder / "service").rglob("*")]
    texts = {str(path): path.read_text(errors="replace") for path in files if path.is_file()}
    assert any(name.endswith("service.log") for name in texts)
    for path in LISTS:
        texts[path] = json.dumps(live.client.get(path))
    for kind in ("applications", "migrations"):
        for each in live.client.get(f"/{kind}")["items"]:
            texts[f"{kind} {each['id']}"] = json.dumps(live.client.get(f"/{kind}/{each['id']}"))
    texts["events"] = repr(list(stored(live.client, "0")))
    return {**texts, "answers": "\n".join(answers)}


def by_https(live: Live, token: str, path: str) -> str:
    """What another machine is answered, status first."""
    url = f"https://{live.host('a').name}:8470/api/v1{path}"
    words = ("--cacert", "/etc/pki/CA/cacert.pem", "-H", f"Authorization: Bearer {token}")
    return said(live.host("b"), "curl", "-sS", "-w", "%{http_code}", *words, url)


def refusals(live: Live, secret: dict[str, str]) -> Iterator[str]:
    """What is said where a way to a host is refused, to the API's client and to the CLI's."""
    a, b = live.status.hosts
    token = secret["a token"]
    yield by_https(live, token, "/hosts")
    yield by_https(live, f"{token}x", "/hosts")
    yield by_https(live, token, "/tokens")
    broken = {
        f"qemu+ssh://root:{TYPED}@{b.name}/system": "true",
        f"qemu+ssh://root@{b.name}/system?password={TYPED}": "true",
        f"qemu+tcp://{b.name}/system": "sed -i 's/^password=/password=x/' /etc/libvirt/auth.conf",
        f"qemu+tls://{b.name}/system": "mv /etc/pki/libvirt/clientcert.pem /root",
        f"qemu+ssh://root@{b.name}/system": "mv /root/.ssh/known_hosts /root/kept",
        f"qemu+libssh://root@{b.name}/system": "true",
    }
    mends = {
        "sed": "sed -i 's/^password=x/password=/' /etc/libvirt/auth.conf",
        "mv /etc": "mv /root/clientcert.pem /etc/pki/libvirt",
        "mv /root": "mv /root/kept /root/.ssh/known_hosts",
    }
    cli = [sys.executable, "-m", "vmtune", "--socket", str(live.client.socket_path)]
    for uri, breaks in broken.items():
        said(a, "sh", "-ec", breaks)
        try:
            with pytest.raises(Refused) as refusal:
                live.client.post("/hosts", {"name": "closed", "uri": uri})
            yield repr(refusal.value.problems)
            ran = on(a, *cli, "host", "add", "closed", uri)
            assert ran.returncode != 0
            yield ran.stdout + ran.stderr
        finally:
            mend = next((how for start, how in mends.items() if breaks.startswith(start)), "true")
            said(a, "sh", "-ec", mend)


def test_no_secret_is_in_logs_audit_errors_or_the_store(live: Live, secret: dict[str, str]) -> None:
    answers = list(refusals(live, secret))
    for transport, (user, query) in TRANSPORTS.items():
        with hosts(live, transport, user, query):
            tuned_there_and_back(live, f"by-{transport}", **SMALL)
            answers.append(json.dumps(live.client.get("/hosts/a/check?to=b")))
            texts = told(live, answers)
        found = [(what, where) for what, key in secret.items() for where, text in texts.items()
                 if key in text]  # fmt: skip
        assert found == []
