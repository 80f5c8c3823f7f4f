"""The hook's script on another host than the service: it asks by HTTPS, with a token."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.served.api import Api
from tests.support.served.asking import Door
from tests.support.served.browser import free_port
from tests.support.served.served_api import served_api
from tests.support.simulated.fakes import VM
from tests.unit.api.test_tls import certificate
from vmtune.hook import HookSettings, Script
from vmtune.model.host.inventory import EventTopic
from vmtune.storage import Store

DOMAIN = (
    f"<domain type='kvm'><name>g</name><uuid>{VM}</uuid><memory unit='KiB'>1024</memory></domain>"
)


@dataclass
class Remote:
    """A service that is reached by TLS, and files of a host that asks it."""

    api: Api
    local: Door
    folder: Path
    url: str
    ca: Path
    token: Path = field(init=False)

    def __post_init__(self) -> None:
        self.token = self.folder / "hook.token"
        self.give({"scopes": ["hook"], "hosts": ["b"]})

    def give(self, rights: dict[str, Any]) -> str:
        """Give the host a new token."""
        name = f"t{len(self.local.ask('GET', '/tokens').document['items'])}"
        made = self.local.ask("POST", "/tokens", {"name": name, **rights}).document
        self.token.write_text(made["token"] + "\n")
        self.token.chmod(0o600)
        return str(made["id"])

    def run(self, fail_closed: bool = False, **changed: str) -> subprocess.CompletedProcess[str]:
        """Run the script for a VM that arrives."""
        where = {"url": self.url, "token_file": str(self.token), "ca_file": str(self.ca), **changed}
        given = HookSettings("/nowhere/s", 20_000, fail_closed, **where)
        script = self.folder / "hook"
        script.write_text(Script.shipped().with_settings(given).text)
        return subprocess.run(
            ["/bin/sh", str(script), "vm", "migrate", "begin", "-"],
            input=DOMAIN,
            env={"PATH": os.environ["PATH"], "token": "of somebody"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Remote]:
    cert, key = certificate(tmp_path)
    port = free_port()
    options = {
        **{"listen_port": port, "tls_cert": cert, "tls_key": key},
        "destination_command_line": True,
    }
    with served_api(tmp_path, tmp_path / "s", options) as api:
        local = Door(tmp_path / "s")
        local.ask("POST", "/profiles", {"name": "p", "values": {"announce_rounds": 8}})
        local.ask("POST", "/assignments", {"target": "default", "key": "", "profile": "p"})
        yield Remote(api, local, tmp_path, f"https://localhost:{port}", cert)


def test_it_gets_the_vms_values_and_says_where_the_vm_arrives(remote: Remote) -> None:
    done = remote.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert "migration.announce-rounds=8" in done.stdout
    with Store.open(remote.api.container.settings.database_url) as store:
        [told] = [e for e in store.events.since(0, 500) if e.topic is EventTopic.ARRIVAL]
    assert told.data["destination"] == "b"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"url": "https://localhost:1"}, "does not listen at https://localhost:1"),
        ({"url": "https://no-such-host.invalid"}, "the name of https://no-such-host.invalid"),
        ({"ca_file": ""}, "no certificate that is trusted"),
        ({"ca_file": "/nowhere.pem"}, "no certificate in /nowhere.pem"),
        ({"token_file": "/nowhere"}, "there is no token in /nowhere"),
        ({"token_file": "/etc/hostname_is_no_file"}, "there is no token in"),
    ],
)
def test_each_fault_has_its_cause_and_holds_nothing_up(
    remote: Remote, changed: dict[str, str], said: str
) -> None:
    done = remote.run(**changed)
    assert (done.returncode, done.stdout) == (0, "")
    assert said in done.stderr
    assert remote.run(fail_closed=True, **changed).returncode == 1


def test_only_the_authority_that_was_named_is_trusted(remote: Remote) -> None:
    other, _ = certificate(remote.folder, "other")
    assert "no certificate that is trusted" in remote.run(ca_file=str(other)).stderr


@pytest.mark.parametrize(
    "text", ["", "\n", 'x"\nurl = "file:///etc/passwd"\n', "a b", "$(id)", "\x00"]
)
def test_what_is_no_token_is_not_sent(remote: Remote, text: str) -> None:
    remote.token.write_text(text)
    done = remote.run()
    assert done.stdout == ""
    refused = ("there is no token in", "refuses the token")
    assert any(each in done.stderr for each in refused), done.stderr


@pytest.mark.parametrize("rights", [{"scopes": ["read"]}, {"scopes": ["metrics"]}])
def test_a_token_of_another_scope_is_refused(remote: Remote, rights: dict[str, Any]) -> None:
    remote.give(rights)
    assert f"the service refuses the token in {remote.token}" in remote.run().stderr


def test_a_revoked_token_is_refused(remote: Remote) -> None:
    made = remote.give({"scopes": ["hook"], "hosts": ["b"]})
    assert remote.run().stdout
    remote.local.ask("DELETE", f"/tokens/{made}")
    assert f"the service refuses the token in {remote.token}" in remote.run().stderr


def test_a_token_for_labels_is_refused(remote: Remote) -> None:
    remote.give({"scopes": ["hook"], "selector": {"tier": "web"}})
    assert f"the service refuses the token in {remote.token}" in remote.run().stderr


def test_its_token_does_nothing_else(remote: Remote) -> None:
    token = remote.token.read_text().strip()
    for method, path in (("GET", "/vms"), ("GET", "/metrics"), ("POST", "/migrations")):
        assert remote.local.ask(method, path, {}, token).status == 403


def test_the_token_is_in_no_arguments(remote: Remote) -> None:
    """Which every user of the host can read."""
    bin_ = remote.folder / "bin"
    bin_.mkdir()
    curl = bin_ / "curl"
    curl.write_text('#!/bin/sh\necho "$@" >"$0.args"; env >"$0.env"; cat <&3 >"$0.config"\n')
    curl.chmod(0o755)
    given = HookSettings("/s", 1000, False, remote.url, str(remote.token), str(remote.ca))
    subprocess.run(
        ["/bin/sh", "-c", Script.shipped().with_settings(given).text, "hook", "vm", "migrate",
         "begin", "-"],
        stdin=subprocess.DEVNULL, env={"PATH": f"{bin_}:{os.environ['PATH']}"}, check=True,
    )  # fmt: skip
    token = remote.token.read_text().strip()
    seen = {name: (bin_ / f"curl.{name}").read_text() for name in ("args", "env", "config")}
    assert [token in text for text in seen.values()] == [False, False, True]
    assert f"--cacert {remote.ca}" in seen["args"]
