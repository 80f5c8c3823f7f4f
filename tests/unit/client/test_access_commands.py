"""Tokens, the audit log and services elsewhere, by the command against the real application."""

from __future__ import annotations

import json
import os
import pwd
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.served.api import Api
from tests.support.served.served_api import served_api
from tests.support.served.stub_service import StubService
from tests.unit.client.conftest import Vmtune
from vmtune.client.connection.http import Url
from vmtune.errors import InvalidInput
from vmtune.remote.credentials import read_token

ME = pwd.getpwuid(os.geteuid()).pw_name


def made(vmtune: Vmtune, *arguments: str) -> str:
    ran = vmtune("token", "create", *arguments)
    assert ran.code == 0, ran.err
    return ran.out.strip()


def test_of_a_new_token_its_text_is_what_other_commands_take(vmtune: Vmtune, real: Api) -> None:
    assert made(vmtune, "other", "--scope", "read", "-o", "name").startswith("vmt_")


def test_the_life_of_a_token(real: Api, vmtune: Vmtune) -> None:
    ran = vmtune(
        "token", "create", "ci", "--scope", "migrate", "--selector", "tier=db", "--host", "a"
    )
    assert ran.code == 0, ran.err
    token = ran.out.strip()
    assert token.startswith("vmt_")  # alone on stdout, for a pipe
    assert "is not shown again" in ran.err
    row = vmtune("token", "list").out.splitlines()[1]
    for cell in ("ci", "active", "read, migrate", "host a, tier=db", f"user {ME}", "never"):
        assert cell in row
    (document,) = vmtune("token", "list", "--json").document["items"]
    ends = datetime.fromisoformat(document["expires_at"])
    assert timedelta(days=89) < ends - datetime.now(UTC) <= timedelta(days=90)
    assert token not in vmtune("token", "list", "--json").out
    assert vmtune("token", "revoke", "ci").code == 0
    assert "no tokens" in vmtune("token", "list").out
    assert "revoked" in vmtune("token", "list", "--all").out
    wrong = vmtune("token", "revoke", "nobody")
    assert wrong.code == 1
    assert "vmtune token list" in wrong.err


def test_a_name_that_several_had_is_told_apart_by_state(real: Api, vmtune: Vmtune) -> None:
    for _ in range(2):
        made(vmtune, "ci", "--scope", "read")
        assert vmtune("token", "revoke", "ci").code == 0
    ambiguous = vmtune("token", "revoke", "ci")
    assert ambiguous.code == 1
    assert "several" in ambiguous.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ci",), "--scope"),
        (("ci", "--scope", "root"), "root"),
        (("ci", "--scope", "read", "--expires", "soon"), "90d"),
        (("ci", "--scope", "read", "--expires", "0d"), "90d"),
        (("ci", "--scope", "read", "--selector", "tier"), "selector"),
        (("Bad Name", "--scope", "read"), "name"),
    ],
)
def test_a_bad_token_is_told(
    real: Api, vmtune: Vmtune, arguments: tuple[str, ...], said: str
) -> None:
    ran = vmtune("token", "create", *arguments)
    assert ran.code == 1
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_never_is_a_time(real: Api, vmtune: Vmtune) -> None:
    made(vmtune, "ci", "--scope", "admin", "--expires", "never")
    (row,) = vmtune("token", "list", "--json").document["items"]
    assert row["expires_at"] is None


def test_the_audit_log_is_shown_verified_and_exported(real: Api, vmtune: Vmtune) -> None:
    assert vmtune("profile", "create", "fast", "multifd=on", "--reason", "ticket №7").code == 0
    assert vmtune("profile", "set", "fast", "multifd=off").code == 0
    assert vmtune("profile", "delete", "nope").code == 1
    shown = vmtune("audit").out
    assert "reason: 'ticket №7'" in shown
    assert f"by user {ME}, unix socket, process" in shown
    assert "profile fast: current 1 -> 2" in shown
    assert 'revision fast 1 created: values {"multifd": true}' in shown
    refused = vmtune("audit", "--outcome", "refused").out
    assert "delete_profile" in refused
    assert "not_found" in refused
    assert "create_profile" not in refused
    assert len(vmtune("audit", "--limit", "1", "--json").document["items"]) == 1
    verified = vmtune("audit", "--verify")
    assert verified.code == 0
    assert "none altered" in verified.out
    lines = vmtune("audit", "--export", "jsonl", "--action", "create_profile").out.splitlines()
    assert [json.loads(line)["reason"] for line in lines] == ["ticket №7"]
    assert vmtune("audit", "--export", "csv").out.startswith("number,at,kind")
    assert vmtune("audit", "--about", "nothing-of-that").out == "the audit log has no entries\n"
    assert vmtune("audit", "--since", "yesterday").code == 1


def test_a_log_that_was_altered_is_told(service: StubService, vmtune: Vmtune) -> None:
    found = {"entries": 3, "dropped": 0, "newest": "ab", "broken_at": 4}
    service.on("GET", "/audit/integrity", found)
    ran = vmtune("audit", "--verify")
    assert ran.code == 2
    assert "entry 4" in ran.out


def test_who_am_i(real: Api, vmtune: Vmtune, monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"user {ME}" in vmtune("token", "whoami").out
    token = made(vmtune, "ci", "--scope", "read", "--host", "b")
    monkeypatch.setenv("VMTUNE_TOKEN", token)
    told = vmtune("token", "whoami").out
    assert "token ci" in told
    assert "host b" in told
    assert "scope read" not in told
    refused = vmtune("profile", "create", "p", "multifd=on")
    assert refused.code == 1
    assert "this needs the scope profile" in refused.err
    assert token not in refused.err


# From elsewhere.


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        number: int = free.getsockname()[1]
    monkeypatch.setenv("VMTUNE_SOCKET", str(tmp_path / "s"))
    monkeypatch.setenv("HOME", str(tmp_path))
    with served_api(tmp_path, tmp_path / "s", {"listen_port": number}):
        yield number


def test_a_service_is_used_by_its_url(
    port: int, vmtune: Vmtune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = made(vmtune, "ci", "--scope", "read")
    url = ("--url", f"http://127.0.0.1:{port}")
    without = vmtune("host", "list", *url)
    assert without.code == 1
    assert "vmtune token create" in without.err
    file = tmp_path / "token"
    file.write_text(token + "\n")
    file.chmod(0o600)
    assert "qmp+unix:///fake/a" in vmtune("host", "list", *url, "--token-file", str(file)).out
    assert vmtune("events", *url, "--token-file", str(file)).code == 0
    own = tmp_path / ".config" / "vmtune"
    own.mkdir(parents=True)
    file.rename(own / "token")
    assert vmtune("host", "list", *url).code == 0
    (own / "token").chmod(0o640)
    assert "chmod 600" in vmtune("host", "list", *url).err
    monkeypatch.setenv("VMTUNE_TOKEN", token)
    assert vmtune("host", "list", *url).code == 0
    monkeypatch.setenv("VMTUNE_TOKEN", token[:-1] + "!")
    refused = vmtune("host", "list", *url)
    assert refused.code == 1
    assert token[-20:-1] not in refused.err


def test_nobody_listens_there(vmtune: Vmtune) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        number = free.getsockname()[1]
    ran = vmtune("host", "list", "--url", f"http://127.0.0.1:{number}")
    assert ran.code == 1
    assert "cannot connect to" in ran.err


@pytest.mark.parametrize(
    "url", ["http://tune.example", "ftp://127.0.0.1", "tune.example:8470", "https://", "https://a:b",
            "https://a/b", ""],
)  # fmt: skip
def test_urls_that_would_give_the_token_away_are_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="is not the URL of a service"):
        Url.read(url)


def test_urls() -> None:
    assert Url.read("https://tune.example") == Url("tune.example", 443, True)
    assert str(Url.read("http://[::1]:8470/")) == "http://[::1]:8470"


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        (b"vmt_x\n", 0o644, "chmod 600"),
        (b"vmt_x\n", 0o620, "chmod 600"),
        (b"", 0o600, "no token"),
        (b"two words", 0o600, "no token"),
        (b"\xff\xfe", 0o600, "no token"),
        (b"vmt_" + b"x" * 300, 0o600, "more than 200 bytes"),
        (None, 0, "cannot be read"),
    ],
)
def test_a_token_file_is_for_its_owner_and_holds_a_token(
    tmp_path: Path, content: bytes | None, mode: int, said: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
        file.chmod(mode)
    with pytest.raises(InvalidInput, match=said):
        read_token(file)
