"""Bodies that cost more to refuse than to send, at a real served instance."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.api.attacks.conftest import Victim
from vmtune.api.http import bodies
from vmtune.api.main import ROUTERS
from vmtune.api.routes.router import ScopesFirst
from vmtune.errors import MAX_PROBLEMS
from vmtune.model.tunables import rules

MAX_ANSWER_BYTES = 64 << 10
MANY_KEYS = json.dumps({f"k{i}": 1 for i in range(85_000)}).encode()


@pytest.fixture(autouse=True)
def _forgiven(victim: Victim) -> None:
    victim.forgive()


def _parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of bodies that are parsed from now on."""
    sizes: list[int] = []
    parse = bodies.BoundedRequest.json

    async def noted(self: bodies.BoundedRequest) -> object:
        sizes.append(len(await self.body()))
        return await parse(self)

    monkeypatch.setattr(bodies.BoundedRequest, "json", noted)
    return sizes


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/runs/import"), ("POST", "/profiles/check"), ("POST", "/tokens"), ("POST", "/runs"),
     ("PUT", "/profiles/p"), ("POST", "/campaigns/forecast"), ("POST", "/migrations")],
)  # fmt: skip
def test_a_token_for_the_metrics_has_no_body_parsed(
    victim: Victim, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    sizes = _parsed(monkeypatch)
    reply = victim.tcp.ask(method, path, b"[" + b"[]," * 20_000 + b"[]]", victim.tokens["metrics"])
    assert reply.status == 403, reply
    assert reply.codes == ["scope_missing"]
    assert sizes == []


def test_sixty_megabytes_without_the_scope_are_not_kept(victim: Victim) -> None:
    before = _resident_bytes()
    body = b"[" + b"[]," * 20_000_000 + b"[]]"
    grown_by_us = _resident_bytes() - before
    reply = victim.tcp.ask("POST", "/runs/import", body, victim.tokens["metrics"])
    assert reply.status in (0, 403)  # cut off, beyond what is drained
    assert _resident_bytes() - before - grown_by_us < 100 << 20
    assert victim.tcp.ask("GET", "/live").status == 204


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_every_route_checks_scopes_first() -> None:
    for router in ROUTERS:
        for route in router.routes:
            assert isinstance(route, ScopesFirst), route


def test_a_sign_in_takes_four_kib(victim: Victim) -> None:
    reply = victim.tcp.ask("POST", "/session", MANY_KEYS)
    assert (reply.status, reply.codes) == (413, ["body_too_large"])
    fits = victim.tcp.ask("POST", "/session", {"token": victim.tokens["read"], "x": "y" * 3800})
    assert (fits.status, fits.codes) == (422, ["unknown_field"])


def test_a_streamed_sign_in_takes_four_kib_too(victim: Victim) -> None:
    part = b"1000\r\n" + b" " * 4096 + b"\r\n"
    head = (
        b"POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    reply = victim.tcp.send(head + part * 3 + b"0\r\n\r\n", "POST")
    assert reply.status == 413, reply


@pytest.mark.parametrize(
    ("body", "status"),
    [(MANY_KEYS, 413), (b"{", 400), (b"{}", 422), (b'{"token": 3}', 422), (b"[]", 422),
     (b'{"token": "x", "y": 1}', 422)],
)  # fmt: skip
def test_refused_sign_ins_are_counted_whatever_refused_them(
    victim: Victim, body: bytes, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim.stop_the_clock(monkeypatch)
    found = [victim.tcp.ask("POST", "/session", body).status for _ in range(12)]
    assert found == [status] * 10 + [429] * 2
    reply = victim.tcp.ask("POST", "/session", body)
    assert int(reply.header("retry-after")) >= 1
    # A right token is not a guess: it was checked a moment ago, and gets in.
    assert victim.tcp.ask("GET", "/health", token=victim.tokens["read"]).status in (200, 429)


@pytest.mark.parametrize(
    ("headers", "status"),
    [([("Content-Type", "text/plain")], 415), ([("Origin", "https://evil.example")], 403)],
)
def test_so_are_those_that_no_route_sees(
    victim: Victim,
    headers: list[tuple[str, str]],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    victim.stop_the_clock(monkeypatch)
    ask = victim.tcp.ask
    found = [ask("POST", "/session", b"{}", headers=headers).status for _ in range(11)]
    assert found == [status] * 10 + [429]


def test_a_sign_in_with_a_revoked_token_counts(
    victim: Victim, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim.stop_the_clock(monkeypatch)
    made = victim.unix.ask("POST", "/tokens", {"name": "soon-gone", "scopes": ["read"]}).document
    body = {"token": made["token"]}
    assert victim.tcp.ask("POST", "/session", body).status == 201
    victim.unix.ask("DELETE", f"/tokens/{made['id']}")
    found = [victim.tcp.ask("POST", "/session", body).status for _ in range(12)]
    assert found[:10] == [401] * 10
    assert found[-1] == 429


def test_forty_bodies_of_a_stranger_leave_no_trace_to_speak_of(victim: Victim) -> None:
    database = victim.folder / "vmtune.db"
    before = sum(file.stat().st_size for file in victim.folder.glob("vmtune.db*"))
    answers = [victim.tcp.ask("POST", "/session", MANY_KEYS) for _ in range(40)]
    assert all(len(each.content) < MAX_ANSWER_BYTES for each in answers)
    assert {each.status for each in answers} == {413, 429}
    after = sum(file.stat().st_size for file in victim.folder.glob("vmtune.db*"))
    assert database.exists()
    assert after - before < 1 << 20
    assert all(len(entry["codes"]) <= 1 for entry in victim.audited(40))


def test_unknown_names_are_guessed_fifty_times_at_most(
    victim: Victim, monkeypatch: pytest.MonkeyPatch
) -> None:
    guesses: list[str] = []
    guess = rules.difflib.get_close_matches

    def noted(name: str, *given: Any, **more: Any) -> Any:  # as difflib has it
        guesses.append(name)
        return guess(name, *given, **more)

    monkeypatch.setattr(rules.difflib, "get_close_matches", noted)
    names = {f"name_{i}": 1 for i in range(1000)}
    body = {"values": names}
    reply = victim.tcp.ask("POST", "/profiles/check", body, victim.tokens["read"])
    assert reply.status == 422
    assert len(guesses) <= MAX_PROBLEMS
    assert len(reply.codes) == MAX_PROBLEMS + 1
    assert reply.document["errors"][-1]["message"] == "and 950 more"
    assert len(reply.content) < MAX_ANSWER_BYTES


def test_eighty_thousand_names_are_too_many_values(victim: Victim) -> None:
    names = {f"name_{i}": 1 for i in range(80_000)}
    for body in ({"values": names}, names):
        reply = victim.tcp.ask("POST", "/profiles/check", body, victim.tokens["read"])
        assert reply.status == 413


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x", "values": {f"\U0001f600{i}" * 60: 1 for i in range(60)}},
        {"name": "x" * 60_000, "values": {}},
        {"name": "\U0001f600" * 4_000, "values": 3},
        {"name": "x", "values": {}, **{"y" * 900 + str(i): 1 for i in range(60)}},
        {"name": "x", "values": {}, "steps": [{"z" * 700 + str(i): 1 for i in range(70)}]},
        {"name": "x", "values": {"multifd": "y" * 30_000, "x": ["a" * 50] * 400}},
    ],
    ids=["wide-names", "long-name", "wide-name", "long-fields", "long-step", "long-values"],
)
def test_no_refusal_is_larger_than_64_kib(victim: Victim, body: object) -> None:
    reply = victim.tcp.ask("POST", "/profiles", body, victim.tokens["admin"])
    assert reply.status == 422
    assert len(reply.content) < MAX_ANSWER_BYTES
    assert len(reply.codes) <= MAX_PROBLEMS + 1
    newest = victim.audited(1)[0]
    assert len(newest["codes"]) <= 20
    assert len(set(newest["codes"])) == len(newest["codes"])


def test_unknown_parameters_are_counted_too(victim: Victim) -> None:
    query = "&".join(f"p{i}=1" for i in range(2000))
    reply = victim.tcp.ask("GET", f"/vms?{query}", token=victim.tokens["read"])
    assert reply.status == 422
    assert reply.document["errors"][-1]["message"] == "and 1,950 more"
    assert len(reply.content) < MAX_ANSWER_BYTES
