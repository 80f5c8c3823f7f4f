"""Signing in by an identity provider: a real one, of the package oidc-provider-mock."""

from __future__ import annotations

import http.client
import importlib.util
import re
import socket
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.support.served.api import Api
from tests.support.served.asking import Door, Reply
from tests.support.served.served_api import served_api
from vmtune.config.oidc import OidcSettings, read_oidc
from vmtune.errors import SetupError
from vmtune.model.access.scopes import Scope
from vmtune.services.access import oidc as access_oidc
from vmtune.services.access.oidc import OidcService

MISSING = [
    n for n in ("authlib", "httpx2", "oidc_provider_mock") if not importlib.util.find_spec(n)
]
NEEDS_PROVIDER = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (extra oidc)"
)
TABLE = {
    "issuer": "https://id.example/", "client_id": "vmtune", "client_secret_file": "/s",
    "base_url": "https://tune.example/", "roles": {"admins": ["admin"], "ops": ["migrate"]},
}  # fmt: skip


@dataclass
class Stage:
    """The provider, the service, and a browser's cookies."""

    issuer: str
    door: Door
    api: Api
    cookie: str = ""

    def begin(self) -> str:
        """Go to the service; the provider's URL that it sends to."""
        reply = self.door.ask("GET", "/session/oidc")
        assert reply.status == 302, reply
        self.cookie = f"vmtune_oidc={reply.cookies['vmtune_oidc']}"
        (set_,) = [v for k, v in reply.headers if k.lower() == "set-cookie"]
        assert "HttpOnly" in set_
        assert "SameSite=lax" in set_
        return reply.header("location")

    def sign_in(self, url: str, sub: str) -> str:
        """Prove to the provider who one is; the path below the API that it sends back to."""
        parts = urlsplit(url)
        assert f"{parts.scheme}://{parts.netloc}" == self.issuer
        connection = http.client.HTTPConnection(parts.netloc, timeout=20)
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", f"{parts.path}?{parts.query}", urlencode({"sub": sub}), form)
        response = connection.getresponse()
        response.read()
        connection.close()
        back = urlsplit(response.headers["Location"])
        return f"{back.path.removeprefix('/api/v1')}?{back.query}"

    def come_back(self, path: str, cookie: str | None = None) -> Reply:
        """What the service says to who comes back."""
        return self.door.ask(
            "GET", path, headers=[("Cookie", self.cookie if cookie is None else cookie)]
        )

    def code(self, reply: Reply) -> str:
        (code,) = reply.codes
        return str(code)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the provider's own, of its libraries
        from oidc_provider_mock import User, run_server_in_thread  # noqa: PLC0415

        users = [
            User(sub="ada", claims={"groups": ["staff", "admins"], "preferred_username": "ada l"}),
            User(sub="bob", claims={"groups": ["ops"]}),
            User(sub="eve", claims={"groups": ["staff"]}),
        ]
        with run_server_in_thread(user_claims=users) as provider:
            issuer = f"http://localhost:{provider.server_port}"
            with socket.create_server(("127.0.0.1", 0)) as free:
                port: int = free.getsockname()[1]
            (tmp_path / "secret").write_text("hush\n")
            oidc = read_oidc(
                {**TABLE, "issuer": issuer, "base_url": f"http://localhost:{port}",
                 "client_secret_file": str(tmp_path / "secret"), "max_token_days": 1}
            )  # fmt: skip
            options = {"listen_port": port, "oidc": oidc}
            with served_api(tmp_path, tmp_path / "s", options) as api:
                yield Stage(issuer, Door(port), api)


@NEEDS_PROVIDER
@pytest.mark.parametrize(
    ("sub", "name", "scopes"),
    [
        ("ada", "ada l", [s.value for s in Scope]),
        ("bob", "bob", ["read", "migrate", "metrics", "hook"]),
    ],
)
def test_somebody_signs_in_by_the_provider(
    stage: Stage, sub: str, name: str, scopes: list[str]
) -> None:
    back = stage.come_back(stage.sign_in(stage.begin(), sub))
    assert back.status == 200, back
    mine = _browser(back)
    word = mine.pop()
    assert stage.door.ask("GET", "/session", headers=mine).status == 401
    mine.append(word)
    session = stage.door.ask("GET", "/session", headers=mine).document
    assert session["who"] == {"kind": "oidc", "id": sub, "name": name}
    assert (session["rights"]["scopes"], session["signed_in"]) == (scopes, True)
    assert session["csrf"] == word[1]
    profile = {"name": "p", "values": {}}
    status = stage.door.ask("POST", "/profiles", profile, headers=mine).status
    assert status == (201 if sub == "ada" else 403)
    assert stage.door.ask("DELETE", "/session", headers=mine).status == 204
    assert stage.door.ask("GET", "/session", headers=mine).status == 401


@NEEDS_PROVIDER
def test_the_sign_in_page_leads_to_the_provider(stage: Stage) -> None:
    page = stage.door.ask("GET", "/docs", headers=[("Accept", "text/html")])
    assert page.status == 401
    assert b'href="/api/v1/session/oidc"' in page.content


@NEEDS_PROVIDER
def test_who_has_no_role_is_refused_and_told_so(stage: Stage) -> None:
    refused = stage.come_back(stage.sign_in(stage.begin(), "eve"))
    assert (refused.status, stage.code(refused)) == (403, "no_role")
    assert not refused.cookies


@NEEDS_PROVIDER
def test_only_the_browser_that_began_can_end_it_and_once(stage: Stage) -> None:
    path = stage.sign_in(stage.begin(), "ada")
    stolen = stage.come_back(path, cookie="")
    assert (stolen.status, stage.code(stolen)) == (401, "oidc_state")
    assert stage.come_back(path).status == 200  # which strangers cannot end
    assert stage.code(stage.come_back(path)) == "oidc_state"
    forged = stage.come_back("/session/oidc/callback?state=x&code=y")
    assert stage.code(forged) == "oidc_state"


@NEEDS_PROVIDER
def test_a_code_of_another_sign_in_is_refused(stage: Stage) -> None:
    theirs = stage.sign_in(stage.begin(), "ada")
    mine = stage.begin()
    state = parse_qs(urlsplit(mine).query)["state"][0]
    code = parse_qs(urlsplit(theirs).query)["code"][0]
    mixed = stage.come_back(f"/session/oidc/callback?state={state}&code={code}")
    assert mixed.status == 401
    assert stage.code(mixed) in ("oidc_code", "oidc_token")
    assert not mixed.cookies


@NEEDS_PROVIDER
def test_the_providers_word_has_to_hold(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each altered in turn: who says it, to whom, of what sign-in, how it is signed."""
    settings = stage.api.container.settings.oidc
    assert settings is not None
    for name, value in (("client_id", "another"), ("issuer", "https://evil.example")):
        path = stage.sign_in(stage.begin(), "ada")
        service = stage.api.container.access.oidc
        assert service is not None
        other = {f: getattr(settings, f) for f in OidcSettings.__dataclass_fields__}
        monkeypatch.setattr(service, "_settings", OidcSettings(**{**other, name: value}))
        refused = stage.come_back(path)
        assert refused.status in (401, 503), name
        assert not refused.cookies
        monkeypatch.setattr(service, "_settings", settings)
    path = stage.sign_in(stage.begin(), "ada")
    monkeypatch.setattr(access_oidc, "_ALGORITHMS", ["ES512"])
    refused = stage.come_back(path)
    assert (refused.status, stage.code(refused)) == (401, "oidc_token")


def _browser(back: Reply) -> list[tuple[str, str]]:
    """What a browser sends once it has come back: the cookie, and the word that the page keeps."""
    found = re.search(rb"data-csrf=([A-Za-z0-9_-]{43})>", back.content)
    assert found is not None, back
    return [
        ("Cookie", f"vmtune_session={back.cookies['vmtune_session']}"),
        ("X-Vmtune-Csrf", found[1].decode()),
    ]


@NEEDS_PROVIDER
def test_parameters_that_the_provider_adds_are_ignored(stage: Stage) -> None:
    """RFC 6749, 4.1.2. Google sends authuser, prompt and hd."""
    path = stage.sign_in(stage.begin(), "ada")
    more = "&authuser=0&prompt=consent&hd=x.example&scope=" + "s" * 3000
    assert stage.come_back(path + more).status == 200


@NEEDS_PROVIDER
def test_starts_of_strangers_evict_nobody(stage: Stage) -> None:
    path = stage.sign_in(stage.begin(), "ada")
    for _ in range(1100):
        assert stage.door.ask("GET", "/session/oidc").status == 302
    assert stage.come_back(path).status == 200


@NEEDS_PROVIDER
def test_a_token_of_a_person_ends_with_the_setting(stage: Stage) -> None:
    mine = _browser(stage.come_back(stage.sign_in(stage.begin(), "ada")))
    body = {"name": "ci", "scopes": ["read"], "expires_at": "2100-01-01T00:00:00Z"}
    made = stage.door.ask("POST", "/tokens", body, headers=mine)
    assert made.status == 201, made
    left = datetime.fromisoformat(made.document["expires_at"]) - datetime.now(UTC)
    assert timedelta(hours=1) < left < timedelta(days=1)


@NEEDS_PROVIDER
def test_who_has_lost_a_role_has_lost_its_tokens_at_the_next_sign_in(stage: Stage) -> None:
    """And is signed out elsewhere."""
    mine = _browser(stage.come_back(stage.sign_in(stage.begin(), "ada")))
    made = {}
    for scope in ("read", "admin"):
        body = {"name": scope, "scopes": [scope]}
        made[scope] = stage.door.ask("POST", "/tokens", body, headers=mine).document["token"]
    settings = stage.api.container.settings.oidc
    assert settings is not None
    fewer = replace(settings, roles={"admins": ("read",)})
    service = stage.api.container.access.oidc
    assert service is not None
    service._settings = fewer
    assert stage.come_back(stage.sign_in(stage.begin(), "ada")).status == 200
    assert stage.door.ask("GET", "/vms", token=made["read"]).status == 200
    assert stage.door.ask("GET", "/vms", token=made["admin"]).codes == ["token_revoked"]
    assert stage.door.ask("GET", "/vms", headers=mine).codes == ["signed_out"]
    service._settings = replace(settings, roles={"nobody": ("read",)})
    gone = stage.come_back(stage.sign_in(stage.begin(), "ada"))
    assert gone.codes == ["no_role"]
    assert stage.door.ask("GET", "/vms", token=made["read"]).codes == ["token_revoked"]


@NEEDS_PROVIDER
async def test_a_provider_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("x")
    with socket.create_server(("127.0.0.1", 0)) as free:
        issuer = f"http://localhost:{free.getsockname()[1]}"
    table = {**TABLE, "issuer": issuer, "client_secret_file": str(tmp_path / "s")}
    with pytest.raises(SetupError, match="identity provider cannot be used"):
        await OidcService(read_oidc(table)).begin()
    table = {**table, "client_secret_file": str(tmp_path / "none")}
    with pytest.raises(SetupError, match="cannot be read"):
        await OidcService(read_oidc(table)).begin()


async def test_without_the_table_there_is_no_provider(api: Api) -> None:
    for path in ("/session/oidc", "/session/oidc/callback"):
        assert await api.refused("GET", path, status=404) == [("", "not_found")]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"issuer": "http://id.example"}, "issuer has to be"),
        ({"base_url": "tune.example"}, "base_url has to be"),
        ({"client_id": ""}, "lacks client_id"),
        ({"client_secret_file": "secret"}, "client_secret_file has to be"),
        ({"client_secret": "hush"}, "nothing called client_secret"),
        ({"claim": 3}, "claim has to be"),
        ({"roles": {}}, "roles has to be"),
        ({"roles": {"a": ["root"]}}, "roles.a has to be"),
        ({"max_token_days": 0}, "max_token_days has to be"),
        ({"max_token_days": True}, "max_token_days has to be"),
    ],
)
def test_a_table_that_cannot_be_is_told(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_oidc({**TABLE, **change})
    with pytest.raises(ValueError, match="expects a table"):
        read_oidc("x")


def test_a_table() -> None:
    read = read_oidc(TABLE)
    assert (read.issuer, read.base_url) == ("https://id.example", "https://tune.example")
    assert (read.claim, read.roles["ops"]) == ("groups", ("migrate",))
