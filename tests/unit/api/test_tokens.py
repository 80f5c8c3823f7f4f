"""Tokens, browsers that are signed in, and the audit log, over the API."""

from __future__ import annotations

import csv
import http.client
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.served.api import Api, admin_token, running_api
from tests.support.served.asking import Door
from tests.support.served.served_api import served_api
from tests.support.simulated.fakes import VM
from vmtune.model.access.scopes import Scope

TCP = "http://localhost:8470"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_a_token_is_shown_once(api: Api) -> None:
    wanted = {"name": "ci", "scopes": ["read", "apply"], "hosts": ["a"], "selector": {"t": "1"}}
    made = await api.post("/tokens", wanted)
    assert made["token"].startswith(f"vmt_{made['id']}_")
    may = {"scopes": ["read", "apply", "metrics"], "hosts": ["a"], "selector": {"t": "1"}}
    assert made["rights"] == may
    assert made["created_by"] == {"kind": "user", "id": "0", "name": "root"}
    assert (made["state"], made["expires_at"], made["used_at"]) == ("active", None, None)
    shown = await api.get(f"/tokens/{made['id']}")
    assert shown == {key: value for key, value in made.items() if key != "token"}
    assert (await api.get("/tokens"))["items"] == [shown]
    assert await api.refused("POST", "/tokens", wanted, status=409) == [("name", "duplicate_name")]
    assert await api.refused("GET", "/tokens/nope", status=404) == [("token", "not_found")]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"scopes": ["root"]}, "scopes.0"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["read"] * 50}, "scopes"),
        ({"name": "A"}, "name"),
        ({"hosts": [".."]}, "hosts"),
        ({"selector": {"a b": "c"}}, "labels"),
        ({"expires_at": "2026-01-01T00:00:00"}, "expires_at"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
    ],
)
async def test_a_bad_token_is_refused_by_field(
    api: Api, change: dict[str, Any], field: str
) -> None:
    body = {"name": "ci", "scopes": ["read"], **change}
    ((named, _), *_rest) = await api.refused("POST", "/tokens", body, status=422)
    assert named.startswith(field)
    assert (await api.get("/tokens"))["items"] == []


async def test_a_token_lets_in_over_tcp_until_it_is_revoked(tmp_path: Path) -> None:
    async with running_api(tmp_path, base_url=TCP) as api:
        made = await api.post("/tokens", {"name": "ci", "scopes": ["read"]})
        mine = bearer(made["token"])
        assert (await api.send("GET", "/vms", **mine)).status_code == 200
        who = (await api.send("GET", "/session", **mine)).json()
        assert who["who"] == {"kind": "token", "id": made["id"], "name": "ci"}
        scopes = who["rights"]["scopes"]
        assert (scopes, who["signed_in"], who["csrf"]) == (["read", "metrics"], False, None)
        await api.ask("DELETE", f"/tokens/{made['id']}", expect=204)
        refused = await api.send("GET", "/vms", **mine)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == 'Bearer realm="vmtune"'
        assert (await api.get(f"/tokens/{made['id']}"))["state"] == "revoked"


@pytest.mark.parametrize(("scheme", "name"), [("http", ""), ("https", "__Host-")])
async def test_a_browser_signs_in_and_out(tmp_path: Path, scheme: str, name: str) -> None:
    base = f"{scheme}://localhost:8470"
    async with running_api(tmp_path, base_url=base) as api:
        token = api.client.headers.pop("Authorization").removeprefix("Bearer ")
        assert (await api.send("GET", "/live")).status_code == 204
        assert await api.refused("GET", "/session", status=401) == [
            ("Authorization", "token_missing")
        ]
        made = await api.send("POST", "/session", {"token": f" {token}\n"}, Origin=base)
        assert made.status_code == 201
        set_ = {cookie.split("=")[0]: cookie for cookie in made.headers.get_list("set-cookie")}
        hidden = set_[f"{name}vmtune_session"].lower()
        assert ("secure" in hidden) == (scheme == "https")
        assert "httponly" in hidden
        for cookie in set_.values():
            assert "samesite=strict" in cookie.lower()
            assert "path=/" in cookie.lower()
        word = made.json()["csrf"]
        assert list(set_) == [f"{name}vmtune_session"]  # and the word is no cookie
        assert word not in str(set_)
        assert await api.refused("GET", "/session", status=401) == [("Cookie", "signed_out")]
        session = await api.ask("GET", "/session", X_Vmtune_CSRF=word)
        assert await api.get(f"/session?csrf={word}") == session
        assert (session["signed_in"], session["csrf"]) == (True, word)
        body = {"name": "p", "values": {}}
        assert await api.refused("POST", "/profiles", body, status=403) == [
            ("x-vmtune-csrf", "csrf")
        ]
        await api.ask("POST", "/profiles", body, expect=201, X_Vmtune_CSRF=word)
        kept = dict(api.client.cookies)
        assert (await api.send("DELETE", "/session")).status_code == 403
        out = await api.send("DELETE", "/session", X_Vmtune_CSRF=word)
        assert out.status_code == 204
        assert not api.client.cookies
        old = "; ".join(f"{cookie}={value}" for cookie, value in kept.items())
        for sent in ({"Cookie": old}, {"Cookie": old, "X_Vmtune_CSRF": word}):
            assert await api.refused("GET", "/session", status=401, **sent) == [
                ("Cookie", "signed_out")
            ]
        # With an old cookie one can still sign in.
        again = await api.send("POST", "/session", {"token": token}, Cookie=old)
        assert again.status_code == 201


async def test_an_admin_sees_browsers_and_signs_them_out(tmp_path: Path) -> None:
    async with running_api(tmp_path, base_url=TCP) as api:
        admin = {"Authorization": api.client.headers.pop("Authorization")}
        made = (
            await api.send("POST", "/tokens", {"name": "ci", "scopes": ["read"]}, **admin)
        ).json()
        for origin in (TCP, TCP):  # two of the same token
            api.client.cookies.clear()
            word = (
                await api.send("POST", "/session", {"token": made["token"]}, Origin=origin)
            ).json()["csrf"]
        cookie = dict(api.client.cookies)["vmtune_session"]
        assert (await api.send("GET", "/browsers", X_Vmtune_CSRF=word)).status_code == 403
        api.client.cookies.clear()
        first = (await api.send("GET", "/browsers?limit=1", **admin)).json()
        second = (await api.send("GET", f"/browsers?after={first['next']}", **admin)).json()
        shown = [*first["items"], *second["items"]]
        assert second["next"] is None
        assert [row["who"] for row in shown] == 2 * [
            {"kind": "token", "id": made["id"], "name": "ci"}
        ]
        assert [row["own"] for row in shown] == [False, False]
        assert shown[0]["rights"]["scopes"] == ["read", "metrics"]
        assert cookie not in str(shown)
        mine = {"Cookie": f"vmtune_session={cookie}", "X_Vmtune_CSRF": word}
        assert (await api.send("GET", "/session", **mine)).status_code == 200
        for row in shown:
            gone = await api.send("DELETE", f"/browsers/{row['id']}", **admin)
            assert gone.status_code == 204, gone.text
        assert (await api.send("GET", "/session", **mine)).status_code == 401
        assert (await api.send("GET", "/browsers", **admin)).json()["items"] == []
        again = await api.send("DELETE", f"/browsers/{shown[0]['id']}", **admin)
        assert again.status_code == 404
        noted = (await api.send("GET", "/audit?limit=9", **admin)).json()["items"]
        ended = [e for e in noted if e["action"] == "sign_browser_out" and e["changes"]]
        assert [e["subject"] for e in ended] == 2 * [f"session {made['id']}"]


async def test_a_person_is_shown_where_to_sign_in(tmp_path: Path) -> None:
    async with running_api(tmp_path, base_url=TCP) as api:
        del api.client.headers["Authorization"]
        for path in ("/api/v1/docs", "/", "/vms/some-page"):
            page = await api.client.get(path, headers={"Accept": "text/html,*/*"})
            assert page.status_code == 401
            assert "Sign in" in page.text
            policy = page.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
        program = await api.client.get("/api/v1/docs", headers={"Accept": "*/*"})
        assert program.headers["content-type"] == "application/problem+json"
        token = await admin_token(api.container, scopes=["read"])
        word = (await api.send("POST", "/session", {"token": token})).json()["csrf"]
        assert "Sign in" not in (await api.client.get("/vms")).text
        docs = await api.client.get(
            f"/api/v1/docs/plain?csrf={word}", headers={"Accept": "text/html"}
        )
        assert docs.status_code == 200
        assert "/api/v1/vms" in docs.text


def test_following_ends_when_the_token_is_revoked(tmp_path: Path) -> None:
    door = Door(tmp_path / "s")
    with served_api(tmp_path, tmp_path / "s"), door.connect() as stream:
        made = door.ask("POST", "/tokens", {"name": "ci", "scopes": ["read"]}).document
        lines = ["GET /api/v1/events HTTP/1.1", "Host: localhost"]
        lines += ["Connection: close", f"Authorization: Bearer {made['token']}", "", ""]
        stream.sendall("\r\n".join(lines).encode())
        response = http.client.HTTPResponse(stream)
        response.begin()
        assert response.readline().startswith(b": following")
        assert door.ask("DELETE", f"/tokens/{made['id']}").status == 204
        body = {"name": "after", "values": {}}
        assert door.ask("POST", "/profiles", body).status == 201
        assert b"after" not in response.read()  # to its end


# The audit log.


async def test_the_log_tells_who_what_and_why(api: Api) -> None:
    await api.ask(
        "POST", "/profiles", {"name": "p", "values": {"multifd": True}}, expect=201,
        X_Vmtune_Reason="ticket%20%E2%84%967",
    )  # fmt: skip
    (entry,) = (await api.get("/audit?action=create_profile"))["items"]
    assert entry["who"] == {"kind": "user", "id": "0", "name": "root"}
    assert entry["origin"] == "unix socket, process 1 of user 0"
    assert (entry["reason"], entry["outcome"], entry["subject"]) == (
        "ticket №7", "changed", "profile p")  # fmt: skip
    assert entry["changes"][1]["after"]["values"] == {"multifd": True}
    assert (await api.get("/audit/integrity"))["broken_at"] is None


async def test_an_application_and_its_revert_are_told(api: Api) -> None:
    await api.profile(downtime_limit_ms=200)
    record = await api.post(f"/vms/{VM}/applications", {"profile": "p"})
    await api.post(f"/applications/{record['id']}/revert", expect=200)
    listed = (await api.get(f"/audit?about={record['id']}"))["items"]
    states = [e["changes"][0]["after"]["state"] for e in reversed(listed)]
    assert states == ["intended", "applied", "reverting", "reverted"]
    assert {e["action"] for e in listed} == {"apply_to_vm", "revert_application"}
    assert all(e["who"]["name"] == "root" for e in listed)
    assert listed[-1]["changes"][0]["after"]["journal"][0]["value"] == 300


async def test_reading_is_not_told_and_a_refused_change_is(api: Api) -> None:
    before = (await api.get("/audit"))["items"]
    await api.get("/vms")
    await api.post(f"/vms/{VM}/plan", {}, expect=200)
    await api.refused("GET", "/profiles/nope", status=404)
    assert (await api.get("/audit"))["items"] == before
    await api.refused("POST", "/profiles", {"name": "A", "values": {}}, status=422)
    await api.refused("DELETE", "/profiles/nope", status=404)
    newest, second = (await api.get("/audit?limit=2"))["items"]
    assert (newest["action"], newest["outcome"], newest["status"], newest["codes"]) == (
        "delete_profile", "refused", 404, ["not_found"])  # fmt: skip
    assert newest["subject"] == "profile nope"
    assert (second["action"], second["status"]) == ("create_profile", 422)


async def test_a_fault_of_ours_is_told_as_a_failure(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(type(api.container.profiles), "create", broken)
    assert (await api.send("POST", "/profiles", {"name": "p", "values": {}})).status_code == 500
    (entry, *_) = (await api.get("/audit?limit=1"))["items"]
    assert (entry["outcome"], entry["status"]) == ("failed", 500)
    assert "secret" not in json.dumps(entry)


async def test_hammering_is_told_as_a_number(api: Api) -> None:
    audit = api.container.access.audit
    for _ in range(45):
        await api.refused("POST", "/profiles", {}, status=422)
    told = (await api.get("/audit?outcome=refused&limit=200"))["items"]
    assert len(told) == 30
    await audit.note_suppressed()
    assert len((await api.get("/audit?outcome=refused&limit=200"))["items"]) == 30
    audit._since -= 61
    await audit.note_suppressed()
    newest = (await api.get("/audit?limit=1"))["items"][0]
    assert newest["subject"] == "15 more attempts within a minute"
    await api.refused("POST", "/profiles", {}, status=422)
    assert (await api.get("/audit?limit=1"))["items"][0]["number"] == newest["number"] + 1


async def test_the_log_is_exported(api: Api) -> None:
    await api.profile("p")
    await api.ask(
        "POST", "/profiles", {"name": "q", "values": {}}, expect=201, X_Vmtune_Reason="=1"
    )
    lines = (await api.send("GET", "/audit/export")).text.splitlines()
    entries = [json.loads(line) for line in lines]
    assert [e["number"] for e in entries] == list(range(1, len(entries) + 1))
    response = await api.send("GET", "/audit/export?form=csv&about=profile")
    assert response.headers["content-disposition"].endswith('"vmtune-audit.csv"')
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert [row["subject"] for row in rows] == ["profile p", "profile q"]
    assert rows[1]["reason"] == "'=1"  # no formula
    assert json.loads(rows[0]["changes"])[0]["key"] == "p"
    assert await api.refused("GET", "/audit/export?form=xml", status=422)
    assert await api.refused("GET", "/audit?sice=2026-01-01T00:00:00Z", status=422) == [
        ("sice", "unknown_parameter")
    ]


async def test_all_scopes_are_explained(api: Api) -> None:
    document = (await api.send("GET", "/openapi.json")).json()
    told = document["components"]["schemas"]["TokenCreate"]["properties"]["scopes"]["description"]
    for scope in Scope:
        assert f"`{scope}`" in told
