"""A request with an Idempotency-Key is carried out once, however often it is sent."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from tests.support.served.api import Api, admin_token, problems, running_api
from tests.support.simulated.fakes import VM
from tests.unit.api.test_route_scopes import READING_POSTS, ROUTES
from vmtune.api.http.idempotency import REPLAYED, keyed_of
from vmtune.api.openapi import document
from vmtune.model.access.scopes import Kind
from vmtune.model.idempotency import Begun, Claim, fingerprint
from vmtune.services.idempotency import IdempotencyService
from vmtune.services.migrations.migrations import MigrationService

HONOUR_NONE = {
    "/api/v1/session": "its answer has a secret",
    "/api/v1/tokens": "its answer has a secret",
    "/api/v1/webhooks": "its answer has a secret",
    "/api/v1/webhooks/{webhook}/secret": "its answer has a secret",
    "/api/v1/runs/import": "a run that exists already is refused",
    "/api/v1/hooks/qemu": "libvirt's hook sends none",
}
"""POSTs that change something and honour no key, and why."""


def whole(file: Path) -> bytes:
    """A database without what SQLite keeps beside it."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file.read_bytes()


MIGRATE = {"vm": str(VM), "destination": "b"}
POSTS = [
    pytest.param(path, route, id=path)
    for path, route in ROUTES
    if isinstance(route, APIRoute) and "POST" in (route.methods or ())
]


@pytest.mark.parametrize(("path", "route"), POSTS)
def test_every_post_that_begins_work_honours_keys(path: str, route: APIRoute) -> None:
    keyed = keyed_of(route)
    only_reads = ("POST", path) in READING_POSTS
    assert (keyed is not None) or only_reads or path in HONOUR_NONE, f"{path}: say keyed(...)"
    if keyed is None:
        return
    assert path not in HONOUR_NONE
    if route.status_code in (201, 202) and not only_reads:
        assert keyed.begins is not None, f"{path}: say what it begins"


def test_what_honours_keys_says_so_in_openapi() -> None:
    paths = json.loads(document())["paths"]
    for path, route in ROUTES:
        if isinstance(route, APIRoute) and keyed_of(route) is not None:
            operation = paths[path]["post"]
            named = [each["name"] for each in operation["parameters"]]
            assert "Idempotency-Key" in named, path
            assert "409" in operation["responses"], path


async def test_the_same_request_gets_the_same_answer(api: Api) -> None:
    first = await api.send("POST", "/migrations", MIGRATE, Idempotency_Key="k1")
    assert first.status_code == 202
    entries = len((await api.get("/audit"))["items"])
    await api.ended(first.json()["id"])
    body = {"destination": "b", "vm": str(VM)}  # the order of keys says nothing
    again = await api.send("POST", "/migrations", body, Idempotency_Key="k1")
    assert (again.status_code, again.text) == (202, first.text)
    assert again.headers["location"] == first.headers["location"]
    assert again.headers["content-type"] == first.headers["content-type"]
    assert again.headers[REPLAYED] == "true" and REPLAYED not in first.headers
    assert len((await api.get("/migrations"))["items"]) == 1
    made = [e for e in (await api.get("/audit"))["items"] if e["action"] == "start_migration"]
    assert len(made) == 1 and entries


async def test_a_key_is_of_one_request(api: Api) -> None:
    await api.ask("POST", "/profiles", {"name": "p", "values": {}}, 201, Idempotency_Key="k")
    for path, body in (
        ("/profiles", {"name": "q", "values": {}}),
        ("/migrations", MIGRATE),
    ):
        found = await api.refused("POST", path, body, status=422, Idempotency_Key="k")
        assert found == [("Idempotency-Key", "idempotency_key_reused")]
    assert [each["name"] for each in (await api.get("/profiles"))["items"]] == ["p"]


async def test_callers_do_not_share_keys(tmp_path: Path) -> None:
    async with running_api(tmp_path, base_url="http://localhost:8470") as api:
        for name in ("p", "q"):
            token = await admin_token(api.container)
            answer = await api.client.post(
                "/api/v1/profiles",
                json={"name": name, "values": {}},
                headers={"Authorization": f"Bearer {token}", "Idempotency-Key": "k"},
            )
            assert answer.status_code == 201, answer.text


async def test_while_it_is_carried_out_the_same_request_is_told_so(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    start = MigrationService.start

    async def slow(self: MigrationService, *given: Any, **named: Any) -> Any:
        begun.set()
        await go_on.wait()
        return await start(self, *given, **named)

    monkeypatch.setattr(MigrationService, "start", slow)
    first = asyncio.create_task(api.send("POST", "/migrations", MIGRATE, Idempotency_Key="k"))
    await begun.wait()
    found = await api.refused("POST", "/migrations", MIGRATE, status=409, Idempotency_Key="k")
    assert found == [("Idempotency-Key", "request_in_progress")]
    other = {**MIGRATE, "priority": 1}
    found = await api.refused("POST", "/migrations", other, status=422, Idempotency_Key="k")
    assert found == [("Idempotency-Key", "idempotency_key_reused")]
    go_on.set()
    answered = await first
    again = await api.send("POST", "/migrations", MIGRATE, Idempotency_Key="k")
    assert (again.status_code, again.text) == (202, answered.text)


async def test_a_refused_request_may_be_sent_again(api: Api) -> None:
    body = {**MIGRATE, "destination": "c"}
    await api.refused("POST", "/migrations", body, status=404, Idempotency_Key="k")
    await api.post("/hosts", {"name": "c", "uri": "qmp+unix:///fake/c"})
    answer = await api.send("POST", "/migrations", body, Idempotency_Key="k")
    assert answer.status_code == 202 and REPLAYED not in answer.headers


async def test_a_service_that_was_killed_before_it_answered_begins_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: object) -> None:
        """What a killed service comes to."""

    with monkeypatch.context() as killed:
        killed.setattr(IdempotencyService, "keep", lost)
        async with running_api(tmp_path) as api:
            first = await api.ask("POST", "/migrations", MIGRATE, 202, Idempotency_Key="k")
            applied = await api.send(
                "POST", "/profiles", {"name": "p", "values": {}}, Idempotency_Key="p"
            )
            await api.ended(first["id"])
    stored = whole(tmp_path / "vmtune.db")
    later = tmp_path / "later"
    later.mkdir()
    async with running_api(later, (), stored=stored) as api:
        again = await api.send("POST", "/migrations", MIGRATE, Idempotency_Key="k")
        assert again.status_code == 202 and again.headers[REPLAYED] == "true"
        assert again.headers["location"] == f"/api/v1/migrations/{first['id']}"
        assert again.json()["id"] == first["id"] and again.json()["ended_at"] is not None
        assert len((await api.get("/migrations"))["items"]) == 1
        profile = await api.send(
            "POST", "/profiles", {"name": "p", "values": {}}, Idempotency_Key="p"
        )
        assert (profile.status_code, profile.json()) == (201, applied.json())


async def test_what_was_not_begun_is_carried_out_after_a_restart(tmp_path: Path) -> None:
    async with running_api(tmp_path) as api:
        said = fingerprint("POST", "/api/v1/migrations?", httpx.Request(
            "POST", "http://a", json=MIGRATE
        ).content)  # fmt: skip
        key = Claim(Kind.USER, "0", "k", said, "start_migration", Begun.MIGRATION)
        assert await api.container.idempotency.claim(key) is None
    stored = whole(tmp_path / "vmtune.db")
    later = tmp_path / "later"
    later.mkdir()
    async with running_api(later, (), stored=stored) as api:
        answer = await api.send("POST", "/migrations", MIGRATE, Idempotency_Key="k")
        assert answer.status_code == 202 and REPLAYED not in answer.headers


async def test_an_error_after_something_began_leads_to_it(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = MigrationService.start

    async def fails(self: MigrationService, *given: Any, **named: Any) -> Any:
        await start(self, *given, **named)
        raise RuntimeError("after it began")

    with monkeypatch.context() as patched:
        patched.setattr(MigrationService, "start", fails)
        failed = await api.send("POST", "/migrations", MIGRATE, Idempotency_Key="k")
        assert failed.status_code == 500
    again = await api.ask("POST", "/migrations", MIGRATE, 202, Idempotency_Key="k")
    assert [each["id"] for each in (await api.get("/migrations"))["items"]] == [again["id"]]


@pytest.mark.parametrize("key", ["", " ", "a b", "k" * 256, "ü"])
async def test_a_key_that_is_none_is_refused(api: Api, key: str) -> None:
    answer = await api.client.post(
        "/api/v1/migrations", json=MIGRATE, headers={"Idempotency-Key": key.encode()}
    )
    assert answer.status_code == 422
    assert problems(answer) == [("Idempotency-Key", "idempotency_key_malformed")]


async def test_a_route_that_honours_none_says_so(api: Api) -> None:
    body = {"name": "ci", "scopes": ["read"]}
    found = await api.refused("POST", "/tokens", body, status=422, Idempotency_Key="k")
    assert found == [("Idempotency-Key", "idempotency_key_unsupported")]
    await api.ask("POST", "/profiles/check", {"values": {}}, Idempotency_Key="k")  # only reads


async def test_what_leaves_no_record_is_answered_again_too(api: Api) -> None:
    await api.profile("p", multifd=True)
    made = await api.post(f"/vms/{VM}/applications", {"profile": "p"})
    path = f"/applications/{made['id']}/revert"
    first = await api.send("POST", path, Idempotency_Key="k")
    again = await api.send("POST", path, Idempotency_Key="k")
    assert first.status_code == again.status_code == 200 and again.text == first.text
    assert again.headers[REPLAYED] == "true"
