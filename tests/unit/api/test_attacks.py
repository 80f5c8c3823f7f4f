"""What people would try who are not let in, each tried at a real served instance, and refused.

Slow clients are in test_slow_clients.py, and the folder of the socket in test_peers.py.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.served.api import Api
from tests.support.served.asking import Door, Headers, Reply
from tests.support.served.served_api import served_api
from tests.support.simulated.fakes import VM
from vmtune.api.pages.web import BUILT
from vmtune.model.access.scopes import FULL, Identity, Kind, Reach, Rights, Scope
from vmtune.model.access.tokens import Secret, Token
from vmtune.services.access.tokens import _HASHER
from vmtune.storage import Store

NOW = datetime.now(UTC)
ROOT = Identity(Kind.USER, "0", "root", FULL)
PROFILE = {"name": "theirs", "values": {"multifd": True}}


@dataclass
class Target:
    """A service, and what an attacker holds."""

    tcp: Door
    unix: Door
    tokens: dict[str, str]
    api: Api
    cookie: str = ""
    word: str = ""
    old_cookie: str = ""
    old_word: str = ""

    def signed_in(self, *more: tuple[str, str]) -> Headers:
        """What a browser that is signed in sends."""
        return [("Cookie", f"vmtune_session={self.cookie}"), *more]

    def forgive(self) -> None:
        """Forget earlier attacks: else those that come after them are slowed down, and told
        in the log as a number."""
        access = self.api.container.access
        access.tokens._by_address._records.clear()
        access.tokens._by_token._records.clear()
        access.audit._refused.clear()

    def changed(self) -> bool:
        """Whether an attack came through."""
        return bool(self.unix.ask("GET", "/profiles/theirs").status == 200)


def made(store: Store, name: str, rights: Rights, by: Identity = ROOT, **more: Any) -> str:
    secret = Secret.make()
    token = Token(secret.id, name, rights, by, NOW - timedelta(days=2), **more)
    store.tokens.add(token, _HASHER.hash(secret.secret))
    return secret.text


def tokens(store: Store) -> dict[str, str]:
    read, everything = Rights(frozenset({Scope.READ})), FULL
    gone = Identity(Kind.USER, "54321", "gone")
    found = {
        "admin": made(store, "admin", everything),
        "reader": made(store, "reader", read),
        "migrate": made(store, "migrate", Rights(frozenset({Scope.MIGRATE, Scope.APPLY}))),
        "of-b": made(store, "of-b", Rights(frozenset({Scope.ADMIN}), Reach(frozenset({"b"})))),
        "of-web": made(
            store, "of-web", Rights(FULL.scopes, Reach(None, frozenset({("tier", "web")})))
        ),
        "expired": made(store, "expired", everything, expires_at=NOW - timedelta(days=1)),
        "revoked": made(store, "revoked", everything),
        "creator-gone": made(store, "creator-gone", everything, gone),
        "parent": made(store, "parent", everything),
    }
    for name in ("revoked", "parent"):
        id = found[name].split("_")[1]
        if name == "parent":
            by = Identity(Kind.TOKEN, id, "parent")
            found["child"] = made(store, "child", everything, by)
        store.tokens.revoke(id)
    narrow = made(store, "narrow", read)
    by = Identity(Kind.TOKEN, narrow.split("_")[1], "narrow")
    found["more-than-its-parent"] = made(store, "wide", everything, by)
    return found


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("attacked")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    options = {"listen_port": port, "max_body_bytes": 65536}
    with served_api(folder, folder / "s", options) as api:
        with Store.open(api.container.settings.database_url) as store:
            store.vms.remember_all("a", {VM: "guest"}, NOW)
            store.vms.set_labels(VM, {"tier": "db"})
            it = Target(Door(port), Door(folder / "s"), tokens(store), api)
        old = it.tcp.ask("POST", "/session", {"token": it.tokens["admin"]})
        assert old.status == 201
        it.old_cookie, it.old_word = old.cookies["vmtune_session"], old.document["csrf"]
        out = it.tcp.ask(
            "DELETE",
            "/session",
            headers=[("Cookie", f"vmtune_session={it.old_cookie}"), ("X-Vmtune-Csrf", it.old_word)],
        )
        assert out.status == 204
        new = it.tcp.ask("POST", "/session", {"token": it.tokens["admin"]})
        it.cookie, it.word = new.cookies["vmtune_session"], new.document["csrf"]
        yield it


Try = Callable[[Target], Reply]
ATTACKS: dict[str, tuple[Try, int, str]] = {}


def attack(status: int, code: str = "") -> Callable[[Try], Try]:
    """A row of the table: how it has to end."""

    def remember(tried: Try) -> Try:
        ATTACKS[tried.__name__] = (tried, status, code)
        return tried

    return remember


def with_token(name: str, method: str, path: str, body: object = None) -> Try:
    return lambda t: t.tcp.ask(method, path, body, t.tokens[name])


ATTACKS |= {
    "read_without_token": (lambda t: t.tcp.ask("GET", "/vms"), 401, "token_missing"),
    "read_health_without_token": (lambda t: t.tcp.ask("GET", "/health"), 401, "token_missing"),
    "change_without_token": (
        lambda t: t.tcp.ask("POST", "/profiles", PROFILE), 401, "token_missing"),
    "ask_what_there_is": (lambda t: t.tcp.ask("GET", "/openapi.json"), 401, "token_missing"),
    "read_the_docs": (lambda t: t.tcp.ask("GET", "/docs"), 401, "token_missing"),
    "follow_events_without_token": (lambda t: t.tcp.ask("GET", "/events"), 401, "token_missing"),
    "guess_paths_without_token": (lambda t: t.tcp.ask("GET", "/secret"), 401, "token_missing"),
    "options_without_token": (lambda t: t.tcp.ask("OPTIONS", "/vms"), 401, "token_missing"),
    "token_in_the_query": (
        lambda t: t.tcp.ask("GET", f"/vms?token={t.tokens['admin']}"), 401, "token_missing"),
    "another_scheme": (
        lambda t: t.tcp.ask("GET", "/vms", headers=[("Authorization", "Basic cm9vdDo=")]),
        401, "authorization_malformed"),
    "two_authorizations": (
        lambda t: t.tcp.ask("GET", "/vms", token=t.tokens["admin"],
                            headers=[("Authorization", f"Bearer {t.tokens['admin']}")]),
        401, "authorization_malformed"),
    "right_id_wrong_secret": (
        lambda t: t.tcp.ask("GET", "/vms", token=t.tokens["admin"][:-4] + "AAAA"),
        401, "token_unknown"),
    "no_such_id": (
        lambda t: t.tcp.ask("GET", "/vms", token=Secret.make().text), 401, "token_unknown"),
    "long_token": (
        lambda t: t.tcp.ask("GET", "/vms", token="vmt_" + "a" * 8000), 401, "token_unknown"),
    "token_that_is_sql": (
        lambda t: t.tcp.ask("GET", "/vms", token="vmt_' OR 1=1 --_x"), 401, "token_unknown"),
    "token_in_capitals": (
        lambda t: t.tcp.ask("GET", "/vms", token=t.tokens["admin"].upper()), 401, "token_unknown"),
    "expired_token": (with_token("expired", "GET", "/vms"), 401, "token_expired"),
    "revoked_token": (with_token("revoked", "GET", "/vms"), 401, "token_revoked"),
    "token_of_a_revoked_token": (with_token("child", "GET", "/vms"), 401, "token_revoked"),
    "token_of_a_deleted_user": (with_token("creator-gone", "GET", "/vms"), 401, "creator_gone"),
    "token_that_says_more_than_its_creator": (
        with_token("more-than-its-parent", "POST", "/profiles", PROFILE), 403, "scope_missing"),
    "read_only_token_changes": (
        with_token("reader", "POST", "/profiles", PROFILE), 403, "scope_missing"),
    "read_only_token_removes_a_host": (
        with_token("reader", "DELETE", "/hosts/a"), 403, "scope_missing"),
    "read_only_token_applies": (
        with_token("reader", "POST", f"/vms/{VM}/applications", {}), 403, "scope_missing"),
    "migrating_token_makes_tokens": (
        with_token("migrate", "POST", "/tokens", {"name": "x", "scopes": ["admin"]}),
        403, "scope_missing"),
    "migrating_token_reads_the_audit_log": (
        with_token("migrate", "GET", "/audit"), 403, "scope_missing"),
    "another_hosts_vm": (with_token("of-b", "GET", f"/vms/{VM}"), 404, "not_found"),
    "apply_to_another_hosts_vm": (
        with_token("of-b", "POST", f"/vms/{VM}/applications", {}), 404, "not_found"),
    "migrate_another_hosts_vm": (
        with_token("of-b", "POST", "/migrations", {"vm": str(VM), "destination": "b"}),
        404, "not_found"),
    "look_at_another_host": (with_token("of-b", "GET", "/hosts/a"), 404, "not_found"),
    "a_vm_with_other_labels": (with_token("of-web", "GET", f"/vms/{VM}"), 404, "not_found"),
    "label_ones_own_way_in": (
        with_token("of-web", "PUT", f"/vms/{VM}/labels", {"labels": {"tier": "web"}}),
        404, "not_found"),
    "assign_to_everything_from_one_host": (
        with_token("of-b", "POST", "/assignments", {"target": "default", "profile": "p"}),
        403, "out_of_reach"),
    "change_everybodys_profiles_from_one_host": (
        with_token("of-b", "POST", "/profiles", PROFILE), 403, "out_of_reach"),
    "make_a_token_for_more_than_ones_own": (
        with_token("of-b", "POST", "/tokens", {"name": "x", "scopes": ["read"]}),
        403, "beyond_own_rights"),
    "be_libvirts_hook_from_elsewhere": (
        lambda t: t.tcp.ask("POST", "/hooks/qemu", b"<domain/>", t.tokens["reader"],
                            [("Content-Type", "application/xml")]),
        403, "scope_missing"),
    "entities_that_grow_in_the_hooks_xml": (
        lambda t: t.unix.ask("POST", "/hooks/qemu",
                             b'<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><domain>&b;'
                             b"</domain>", headers=[("Content-Type", "application/xml")]),
        422, "xml_refused"),
    "forged_cookie": (
        lambda t: t.tcp.ask("GET", "/vms", headers=[("Cookie", f"vmtune_session={'A' * 43}")]),
        401, "signed_out"),
    "long_cookie": (
        lambda t: t.tcp.ask("GET", "/vms", headers=[("Cookie", f"vmtune_session={'A' * 8000}")]),
        401, "signed_out"),
    "replayed_cookie": (
        lambda t: t.tcp.ask(
            "GET", "/vms", headers=[("Cookie", f"vmtune_session={t.old_cookie}")]),
        401, "signed_out"),
    "change_without_the_word": (
        lambda t: t.tcp.ask("POST", "/profiles", PROFILE, headers=t.signed_in()), 403, "csrf"),
    "change_with_another_sessions_word": (
        lambda t: t.tcp.ask("POST", "/profiles", PROFILE,
                            headers=t.signed_in(("X-Vmtune-Csrf", t.old_word))),
        401, "signed_out"),
    "read_with_the_cookie_that_another_port_was_sent": (
        lambda t: t.tcp.ask("GET", "/vms", headers=t.signed_in()), 401, "signed_out"),
    "ask_for_the_word_with_that_cookie": (
        lambda t: t.tcp.ask("GET", "/session", headers=t.signed_in()), 401, "signed_out"),
    "follow_events_with_that_cookie": (
        lambda t: t.tcp.ask("GET", "/events", headers=t.signed_in()), 401, "signed_out"),
    "change_with_that_cookie_and_the_word_in_the_query": (
        lambda t: t.tcp.ask("POST", f"/profiles?csrf={t.word}", PROFILE, headers=t.signed_in()),
        403, "csrf"),
    "read_with_that_cookie_and_another_sessions_word": (
        lambda t: t.tcp.ask("GET", f"/vms?csrf={t.old_word}", headers=t.signed_in()),
        401, "signed_out"),
    "the_word_without_the_cookie": (
        lambda t: t.tcp.ask("GET", "/vms", headers=[("X-Vmtune-Csrf", t.word)]),
        401, "token_missing"),
    "change_from_another_site": (
        lambda t: t.tcp.ask("POST", "/profiles", PROFILE, headers=t.signed_in(
            ("X-Vmtune-Csrf", t.word), ("Origin", "https://evil.example"))),
        403, "foreign_origin"),
    "change_that_the_browser_calls_cross_site": (
        lambda t: t.tcp.ask("POST", "/profiles", PROFILE, headers=t.signed_in(
            ("X-Vmtune-Csrf", t.word), ("Sec-Fetch-Site", "cross-site"))),
        403, "csrf"),
    "sign_in_by_a_form_of_another_site": (
        lambda t: t.tcp.ask("POST", "/session", b"token=x", headers=[
            ("Content-Type", "application/x-www-form-urlencoded")]),
        415, "wrong_media_type"),
    "sign_in_from_another_site": (
        lambda t: t.tcp.ask("POST", "/session", {"token": t.tokens["admin"]},
                            headers=[("Origin", "null")]),
        403, "foreign_origin"),
    "a_name_that_leads_here": (
        lambda t: t.tcp.ask("GET", "/vms", token=t.tokens["admin"], host="evil.example"),
        421, "foreign_host"),
    "an_address_that_means_all": (
        lambda t: t.tcp.ask("GET", "/vms", token=t.tokens["admin"], host="0.0.0.0"),
        421, "foreign_host"),
    "large_body": (
        lambda t: t.tcp.ask("POST", "/profiles", b" " * 70_000, t.tokens["admin"]),
        413, "body_too_large"),
    "large_body_without_token": (
        lambda t: t.tcp.ask("POST", "/profiles", b" " * 70_000), 401, "token_missing"),
    "broken_json_without_token": (
        lambda t: t.tcp.ask("POST", "/profiles", b"{"), 401, "token_missing"),
    "a_proxys_word_for_a_stranger": (
        lambda t: t.unix.ask("POST", "/profiles", PROFILE,
                             headers=[("X-Forwarded-For", "192.0.2.1")]),
        401, "token_missing"),
    "a_bad_token_where_a_user_would_do": (
        lambda t: t.unix.ask("POST", "/profiles", PROFILE, token="nonsense"),
        401, "token_unknown"),
    "a_narrow_token_where_a_user_would_do": (
        lambda t: t.unix.ask("POST", "/profiles", PROFILE, token=t.tokens["reader"]),
        403, "scope_missing"),
    "a_line_break_in_a_name": (
        with_token("admin", "POST", "/profiles",
                   {**PROFILE, "name": "theirs\r\nSet-Cookie: x=y"}),
        422, "invalid_input"),
    "a_path_as_a_host": (
        with_token("admin", "POST", "/hosts", {"name": "x", "uri": "qmp+unix:///tmp/../etc"}),
        422, "invalid_input"),
    "a_command_as_a_host": (
        with_token("admin", "POST", "/hosts",
                   {"name": "x", "uri": "qemu+ssh://a/system?command=/tmp/x"}),
        422, "invalid_input"),
    "a_command_in_a_socket": (
        with_token("admin", "POST", "/hosts", {"name": "x", "uri":
                   "qemu+ssh://root@n2/system?proxy=netcat&socket=/x%3Btouch%20/tmp/x%3B%23"}),
        422, "invalid_input"),
    "a_command_in_a_proxy": (
        with_token("admin", "POST", "/hosts", {"name": "x", "uri":
                   "qemu+ssh://root@n2/system?proxy=native%3Bid"}),
        422, "invalid_input"),
    "a_command_in_a_netcat": (
        with_token("admin", "POST", "/hosts", {"name": "x", "uri":
                   "qemu+ssh://root@n2/system?netcat=/tmp/x"}),
        422, "invalid_input"),
    "a_key_of_somebody_elses": (
        with_token("admin", "POST", "/hosts", {"name": "x", "uri":
                   "qemu+ssh://root@n2/system?keyfile=/root/.ssh/id_ed25519"}),
        422, "invalid_input"),
    "known_hosts_of_ones_own": (
        with_token("admin", "POST", "/hosts", {"name": "x", "uri":
                   "qemu+libssh2://root@n2/system?known_hosts=/etc/vmtune/keys/../../../tmp/x"}),
        422, "invalid_input"),
    "a_command_in_a_peers_uri": (
        with_token("admin", "POST", "/hosts", {"name": "x", "uri": "qemu+ssh://root@n2/system",
                   "peer_uri": "qemu+ssh://root@n3/system?socket=/x%3Bid%3B%23"}),
        422, "invalid_input"),
    "a_password_in_a_uri": (
        with_token("admin", "POST", "/hosts", {"name": "x", "uri": "qemu+ssh://a:b@c/system"}),
        422, "invalid_input"),
    "sql_in_a_cursor": (
        with_token("admin", "GET", "/profiles?after=%27%20OR%201%3D1%20--"),
        422, "invalid_cursor"),
    "sql_in_a_path": (
        with_token("admin", "GET", "/tokens/%27%20OR%20%271%27%3D%271"), 404, "not_found"),
    "a_long_reason": (
        lambda t: t.tcp.ask("POST", "/profiles", PROFILE, t.tokens["admin"],
                            headers=[("X-Vmtune-Reason", "x" * 501)]),
        422, "invalid_input"),
    "a_method_in_a_header": (
        lambda t: t.tcp.ask("GET", "/hosts/a", token=t.tokens["reader"],
                            headers=[("X-HTTP-Method-Override", "DELETE")]),
        200, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused(target: Target, name: str) -> None:
    tried, status, code = ATTACKS[name]
    target.forgive()
    before = target.unix.ask("GET", "/audit?limit=1").document["items"][0]["number"]
    reply = tried(target)
    assert reply.status == status, reply
    assert not target.changed()
    text = reply.content.decode()
    assert "Traceback" not in text
    for token in target.tokens.values():
        assert token.split("_", 2)[2] not in text
    if not code:
        return
    assert code in reply.codes
    newest = target.unix.ask("GET", "/audit?limit=1").document["items"][0]
    if status in (401, 403, 421) or "vm" in name or "host" in name:
        assert newest["number"] == before + 1
        assert (newest["outcome"], newest["status"]) == ("refused", status)
        assert code in newest["codes"]
        assert newest["origin"]


@pytest.mark.parametrize(
    "path",
    [
        "//api/v1/../v1/vms", "//./api/v1/vms", "///api/v1/vms", "//api//v1/vms", "//API/v1/vms",
        "//api/v1/vms/", "//api/v1/vms/..", "//api/v1/vms%2f", "//%2e%2e/api/v1/vms",
        "//api/v1/vms;x=.js", "//api/v1/vms.js", "//x.js/../api/v1/vms", "//assets/../api/v1/vms",
        "//assets/..%2f..%2f..%2fetc/passwd", "//assets/%2e%2e/%2e%2e/vmtune/errors.py",
        "//..%2f..%2fetc%2fpasswd.txt", "//api/v1/hosts/..%2f..%2fetc%2fpasswd",
        "//%61pi/v1/vms", "//api%2fv1%2fvms", "//api/v1/live/../vms", "//api/v1/session/../vms",
        "//api/v1/vms?x=/api/v1/live", "//api/v1/vms%00.js", "//api\\v1\\vms.js",
    ],
)  # fmt: skip
def test_no_path_leads_past_the_door(target: Target, path: str) -> None:
    for method in ("GET", "HEAD", "POST"):
        reply = target.tcp.ask(method, path)
        if reply.status == 200 and not BUILT.is_dir():
            assert reply.header("content-length") == target.tcp.ask("GET", "//x.y").header(
                "content-length"
            )  # the web UI's own word for not being there
            continue
        assert reply.status in (400, 401, 404, 405), (method, reply.status)
        assert b"root:" not in reply.content
        assert b"VmtuneError" not in reply.content
        assert b'"items"' not in reply.content


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /api/v1/vms HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b: c\x00\r\n\r\n",
        b"GET /api/v1/vms HTTP/1.1\r\n\r\n",
        b"GET /api/v1/vms HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
        b"POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
        b"Content-Length: 6\r\n\r\n{}   ",
        b"POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api/v1/vms HTTP/1.1\r\n\r\n",
        b"GET /api/v1/vms\r\nX-Injected: 1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET http://evil.example/api/v1/vms HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_malformed_requests_are_refused(target: Target, raw: bytes) -> None:
    reply = target.tcp.send(raw + b"\r\n\r\n")
    assert reply.status in (0, 400, 401, 404, 415, 421, 422), reply
    assert b'"items"' not in reply.content


def test_a_new_sign_in_is_a_new_cookie(target: Target) -> None:
    chosen = [("Cookie", "vmtune_session=" + "B" * 43)]
    reply = target.tcp.ask("POST", "/session", {"token": target.tokens["reader"]}, headers=chosen)
    assert reply.status == 201
    assert reply.cookies["vmtune_session"] != "B" * 43
    assert target.tcp.ask("GET", "/vms", headers=chosen).status == 401


def test_a_reason_cannot_forge_a_line_of_the_export(target: Target) -> None:
    reason = "%0d%0a{%22number%22:1}=cmd()"
    body = {"name": "forged", "values": {}}
    made = target.tcp.ask(
        "POST", "/profiles", body, target.tokens["admin"], [("X-Vmtune-Reason", reason)]
    )
    assert made.status == 201
    lines = target.unix.ask("GET", "/audit/export?about=forged").content.decode().splitlines()
    assert len(lines) == 1
    assert target.unix.ask("GET", "/audit/integrity").document["broken_at"] is None


def test_no_secret_is_in_the_log_the_database_or_the_audit(
    target: Target, capfd: pytest.CaptureFixture[str]
) -> None:
    exported = target.unix.ask("GET", "/audit/export").content.decode()
    listed = target.unix.ask("GET", "/tokens?limit=200").content.decode()
    printed = "".join(capfd.readouterr())
    secrets = [token.split("_", 2)[2] for token in target.tokens.values()]
    assert len(exported) > 10_000
    for secret in (*secrets, target.cookie, target.word, target.old_cookie):
        for text in (exported, listed, printed):
            assert secret not in text


def test_failures_are_slowed_down_and_the_right_token_gets_in_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    with served_api(tmp_path, tmp_path / "s", {"listen_port": port}) as api:
        door = Door(port)
        unix = Door(tmp_path / "s")
        access = api.container.access.tokens
        for throttle in (access._by_address, access._by_token):
            monkeypatch.setattr(throttle, "_clock", lambda: 1000.0)  # no wait ends by itself
        known = unix.ask("POST", "/tokens", {"name": "known", "scopes": ["read"]}).document
        assert door.ask("GET", "/vms", token=known["token"]).status == 200
        answers = [door.ask("GET", "/vms", token=Secret.make().text) for _ in range(12)]
        assert [a.status for a in answers[:10]] == [401] * 10
        assert answers[-1].status == 429
        assert int(answers[-1].header("retry-after")) >= 1
        spoofed = [("X-Forwarded-For", "192.0.2.7")]
        assert door.ask("GET", "/vms", token=Secret.make().text, headers=spoofed).status == 429
        # Who was let in a moment ago still is, and the unix socket is another place.
        assert door.ask("GET", "/vms", token=known["token"]).status == 200
        other = unix.ask("POST", "/tokens", {"name": "other", "scopes": ["read"]}).document
        # Nor does who guesses there keep out the other tokens that come from there.
        assert door.ask("GET", "/vms", token=other["token"]).status == 200
        wrong = [door.ask("GET", "/vms", token=other["token"][:-4] + "AAAA") for _ in range(24)]
        assert [wrong[0].status, wrong[-1].status] == [401, 429]
        for mine in (known, other):  # right before, and so not a guess
            access._proven.clear()
            assert door.ask("GET", "/vms", token=mine["token"]).status == 200


HEADER = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=200)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.sampled_from(["Authorization", "Cookie", "X-Vmtune-Reason", "Origin", "Host"]), HEADER)
def test_no_header_lets_a_stranger_in_or_breaks_anything(
    target: Target, name: str, value: str
) -> None:
    target.forgive()
    for prefix in ("", "Bearer ", "vmtune_session=", "Bearer vmt_"):
        reply = target.tcp.ask("POST", "/profiles", PROFILE, headers=[(name, prefix + value)])
        assert reply.status in (400, 401, 403, 421, 422, 429), (name, prefix + value)
    assert not target.changed()
    assert target.unix.ask("GET", "/health").status == 200
