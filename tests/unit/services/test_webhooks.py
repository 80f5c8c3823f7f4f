"""Webhooks against a real HTTP receiver: signed, tried again, replayed."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.served.api import Api, admin_token, running_api
from tests.support.simulated.fakes import VM
from vmtune.services.webhooks import sending
from vmtune.services.webhooks.sending import send


@dataclass
class Receiver:
    """Answers each request with the next status, then with the last one again and again."""

    statuses: list[str]
    port: int = 0
    got: list[tuple[Mapping[str, str], bytes]] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?a=b"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = head.split("\r\n")[1:]
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines if line)}
        self.got.append((headers, await reader.readexactly(int(headers["content-length"]))))
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        if status == "silence":
            await reader.read()  # until the sender hangs up
        else:
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
        writer.close()
        self.over.set()


@asynccontextmanager
async def receiver(*statuses: str) -> AsyncIterator[Receiver]:
    made = Receiver(list(statuses))
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


def verified(secret: str, headers: Mapping[str, str], body: bytes) -> Any:
    """What the how-to's receiver does: the body, if its signature is right."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    given = [each.removeprefix("v1,") for each in headers["webhook-signature"].split()]
    assert any(hmac.compare_digest(each, expected) for each in given)
    return json.loads(body)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(tmp_path, options={"webhook_own_addresses": True}) as made:
        yield made


async def deliveries(api: Api, webhook: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await api.get(f"/webhooks/{webhook}/deliveries"))["items"]
    return found


async def until_over(api: Api, webhook: str) -> dict[str, Any]:
    """The newest delivery, once an attempt was noted."""
    async with asyncio.timeout(60):
        while True:
            found = await deliveries(api, webhook)
            if found and (found[0]["ended_at"] or found[0]["problem"]):
                return found[0]
            await asyncio.sleep(0.05)


async def test_the_end_of_a_migration_is_told_and_signed(api: Api) -> None:
    async with receiver("204 No Content") as there:
        made = await api.post("/webhooks", {"name": "ops", "url": there.url})
        started = await api.post("/migrations", {"vm": str(VM), "destination": "b"}, expect=202)
        await api.ended(started["id"])
        delivery = await until_over(api, made["id"])
        assert (delivery["state"], delivery["status"]) == ("delivered", 204)
        ((headers, body),) = there.got
        said = verified(made["secret"], headers, body)
        assert said["type"] == "migration.ended"
        assert said["subject"] == started["id"] and said["data"]["state"] == "completed"
        assert headers["webhook-id"] == delivery["message"]
        assert "secret" not in await api.get(f"/webhooks/{made['id']}")


async def until_delivered(api: Api, webhook: str) -> None:
    async with asyncio.timeout(60):
        while (await deliveries(api, webhook))[0]["state"] != "delivered":  # noqa: ASYNC110 - asks
            await asyncio.sleep(0.05)


async def test_a_failed_delivery_waits_and_can_be_replayed(api: Api) -> None:
    async with receiver("500 No") as there:
        made = await api.post("/webhooks", {"name": "ops", "url": there.url})
        await api.ask("POST", f"/webhooks/{made['id']}/test")
        failed = await until_over(api, made["id"])
        assert (failed["state"], failed["status"]) == ("pending", 500)
        assert failed["next_at"] and failed["problem"] == "the receiver answered 500"
        there.statuses[:] = ["200 OK"]
        path = f"/webhooks/{made['id']}/deliveries/{failed['number']}/replay"
        await api.ask("POST", path)
        await until_delivered(api, made["id"])
        assert len({headers["webhook-id"] for headers, _ in there.got}) == 1 < len(there.got)
        nothing = f"/webhooks/{made['id']}/deliveries/99/replay"
        await api.refused("POST", nothing, status=404)


async def test_what_was_queued_is_sent_after_a_restart(tmp_path: Path) -> None:
    async with receiver("503 Later", "200 OK") as there:
        options = {"webhook_own_addresses": True}
        async with running_api(tmp_path, options=options) as api:
            made = await api.post("/webhooks", {"name": "ops", "url": there.url})
            await api.ask("POST", f"/webhooks/{made['id']}/test")
            await until_over(api, made["id"])
        with closing(sqlite3.connect(tmp_path / "vmtune.db")) as database:
            database.execute("UPDATE webhook_deliveries SET next_at = created_at")
            database.commit()
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        stored, later = (tmp_path / "vmtune.db").read_bytes(), tmp_path / "later"
        later.mkdir()
        async with running_api(later, (), options=options, stored=stored) as api:
            await until_delivered(api, made["id"])
        assert len(there.got) == 2


async def test_a_new_secret_signs_beside_the_old_one(api: Api) -> None:
    async with receiver("200 OK") as there:
        made = await api.post("/webhooks", {"name": "ops", "url": there.url})
        rotated = await api.ask("POST", f"/webhooks/{made['id']}/secret")
        assert rotated["secret"] != made["secret"] and rotated["old_until"]
        await api.ask("POST", f"/webhooks/{made['id']}/test")
        await until_over(api, made["id"])
        ((headers, body),) = there.got
        for secret in (made["secret"], rotated["secret"]):
            assert verified(secret, headers, body)["type"] == "test"


async def test_only_administrators_of_everything_have_webhooks(tmp_path: Path) -> None:
    async with running_api(tmp_path, base_url="http://localhost:8470") as api:
        body = {"name": "ops", "url": "https://ops.example/"}
        for limited in (
            {"scopes": ["read", "migrate", "host"]},
            {"scopes": ["admin"], "hosts": ["a"]},
        ):
            api.client.headers["Authorization"] = (
                f"Bearer {await admin_token(api.container, **limited)}"
            )
            await api.refused("POST", "/webhooks", body, status=403)
            await api.refused("GET", "/webhooks", status=403)


async def test_filters_changes_and_removal(api: Api) -> None:
    async with receiver("200 OK") as there:
        body = {"name": "ops", "url": there.url, "events": ["vm.drifted"]}
        made = await api.post("/webhooks", body)
        assert made["events"] == ["vm.drifted"]
        await api.refused("POST", "/webhooks", body, status=409)
        started = await api.post("/migrations", {"vm": str(VM), "destination": "b"}, expect=202)
        await api.ended(started["id"])
        changed = await api.ask("PATCH", f"/webhooks/{made['id']}", {"active": False})
        assert (changed["active"], changed["url"]) == (False, there.url)
        await api.ask("PATCH", f"/webhooks/{made['id']}", {"url": "ftp://x"}, 422)
        assert there.got == [] and await deliveries(api, made["id"]) == []
        await api.ask("DELETE", f"/webhooks/{made['id']}", expect=204)
        assert (await api.get("/webhooks"))["items"] == []


async def test_a_redirect_is_not_followed() -> None:
    async with receiver("200 OK") as other:
        async with receiver(f"302 Found\r\nLocation: {other.url}") as there:
            sent = await send(there.url, {}, b"{}", own_addresses=True)
        assert (sent.status, other.got) == (302, [])
        assert "redirects are not followed" in sent.problem


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"])
async def test_nothing_is_sent_to_the_machine_itself(host: str) -> None:
    async with receiver("200 OK") as there:
        sent = await send(f"http://{host}:{there.port}/", {}, b"{}")
        assert sent.status is None and "refused to send" in sent.problem
        assert there.got == []


async def test_the_address_that_was_checked_is_the_one_that_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name may have another address a moment later (DNS rebinding): it is asked once."""
    asked: list[str] = []
    loop = asyncio.get_running_loop()

    async def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        address = "192.0.2.1" if len(asked) == 1 else "127.0.0.1"
        return [(2, 1, 6, "", (address, port))]

    connected: list[str] = []

    async def connect(host: str, *_: Any, **__: Any) -> Any:
        connected.append(host)
        raise OSError("far away")

    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(sending.asyncio, "open_connection", connect)
    sent = await send("http://receiver.example/", {}, b"{}")
    assert (asked, connected) == (["receiver.example"], ["192.0.2.1"])
    assert sent.problem == "OSError: far away"


async def test_a_receiver_that_says_nothing_is_given_up() -> None:
    async with receiver("silence") as there:
        sent = await send(there.url, {}, b"{}", own_addresses=True, within_s=0.2)
        assert sent.problem == "no answer within 0.2 s"
        await there.over.wait()


async def test_an_endless_answer_is_not_read() -> None:
    async with receiver("200 OK\r\nX: " + "y" * 100_000) as there:
        sent = await send(there.url, {}, b"{}", own_addresses=True)
        assert sent.status is None and "LimitOverrunError" in sent.problem
