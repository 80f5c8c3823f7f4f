"""The package vmtune-client against the real application at its real sockets."""

from __future__ import annotations

import asyncio
import gc
import inspect
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest
import vmtune_client
from vmtune_client import AsyncClient, Client, Connected, ServerEvent
from vmtune_client.async_operations import Operations as AsyncOperations
from vmtune_client.operations import Operations
from vmtune_client.remote import errors as theirs

from tests.support.benchmarks.studies import study_json
from tests.support.served.api import Api
from tests.support.served.served_api import served_api
from tests.support.served.stub_service import Reply, StubService, event, refusal
from tests.support.simulated.fakes import VM
from vmtune.api.openapi import document

GENERATE = Path(__file__).parents[3] / "packaging" / "client" / "generate.py"
MIGRATE: Any = {"vm": str(VM), "destination": "b"}
STUDY: Any = study_json(budget={"runs": 26})


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Api, Path]]:
    address = tmp_path / "vmtune.sock"
    with served_api(tmp_path, address) as api:
        yield api, address


class Lossy(httpx.HTTPTransport):
    """Loses the answer of each POST once: the service got it, and the client does not know."""

    def __init__(self, socket: Path) -> None:
        super().__init__(uds=str(socket))
        self.keys: list[str | None] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if request.method == "POST":
            self.keys.append(request.headers.get("Idempotency-Key"))
            if len(self.keys) == 1:
                response.read()
                raise httpx.ReadError("cut off")
        return response


def test_the_generated_parts_are_current() -> None:
    ran = subprocess.run([sys.executable, GENERATE, "--check"], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()


def test_every_operation_has_a_method_in_both_clients() -> None:
    import json  # noqa: PLC0415

    ids = {
        operation["operationId"]
        for methods in json.loads(document())["paths"].values()
        for operation in methods.values()
    }
    left_out = {
        "follow_events", "vm_arrives", "sign_in", "sign_out", "begin_oidc", "finish_oidc"
    }  # fmt: skip
    for kind in (Operations, AsyncOperations):
        assert {name for name in vars(kind) if not name.startswith("_")} == ids - left_out
    for own in vars(Client):
        if own.startswith("__") or own not in vars(AsyncClient):
            continue
        call = getattr(Client, own)
        if inspect.isfunction(call):
            other = inspect.signature(getattr(AsyncClient, own))
            assert list(inspect.signature(call).parameters) == list(other.parameters), own


def test_a_migration_is_started_waited_for_and_listed(served: tuple[Api, Path]) -> None:
    with Client(socket=str(served[1])) as vmtune:
        vmtune.create_profile({"name": "p", "values": {"multifd": True}})
        started = vmtune.start_migration({"vm": str(VM), "destination": "b", "profile": "p"})
        ended = vmtune.wait_migration(started["id"], within_s=60)
        assert (ended["id"], ended["state"]) == (started["id"], "completed")
        listed = list(vmtune.items(vmtune.list_migrations, state=["completed"], limit=1))
        assert [each["id"] for each in listed] == [started["id"]]
        assert b"vmtune" in vmtune.get_metrics()
        changed = vmtune.amend_profile("p", {"values": {"multifd": None}}, if_match='"1"')
        assert changed["revision"] == 2
        vmtune.delete_profile("p")


async def test_the_same_without_blocking(served: tuple[Api, Path]) -> None:
    async with AsyncClient(socket=str(served[1])) as vmtune:
        started = await vmtune.start_migration(MIGRATE)
        ended, refused = await asyncio.gather(
            vmtune.wait_migration(started["id"], within_s=60),
            vmtune.get_host("nowhere"),
            return_exceptions=True,
        )
        assert isinstance(ended, dict) and ended["state"] == "completed"
        assert isinstance(refused, vmtune_client.Missing)
        hosts = [each["name"] async for each in vmtune.items(vmtune.list_hosts, limit=1)]
        assert hosts == ["a", "b"]


async def test_a_study_is_waited_for(served: tuple[Api, Path]) -> None:
    with Client(socket=str(served[1])) as vmtune:
        started = vmtune.start_study(STUDY)
        ended = await asyncio.to_thread(vmtune.wait_study, started["id"], 120)
        assert (ended["id"], ended["state"]) == (started["id"], "completed")
        assert ended["result"] is not None
    async with AsyncClient(socket=str(served[1])) as waiting:
        again = await waiting.wait_study(started["id"], within_s=10)
        assert again == ended


@pytest.mark.parametrize("ends", ["completed", "cancelled", "failed"])
def test_a_study_that_pauses_has_not_ended(service: StubService, ends: str) -> None:
    states = ["searching", "paused", "confirming", ends]
    data = {"topic": "study", "entity_id": str(VM), "data": {"state": "any"}}
    changes = [event(data, "study", number) for number in range(3)]
    service.on("GET", "/events", Reply(chunks=[b": following\n\n", *changes]))
    records = [{"id": str(VM), "state": state, "ended": state == ends} for state in states]
    service.on("GET", f"/studies/{VM}", *records)
    with Client(socket=str(service.socket)) as vmtune:
        assert vmtune.wait_study(str(VM), within_s=60)["state"] == ends
    assert service.asked[0].query["topic"] == ["study"]
    looked = [asked for asked in service.asked if asked.path == f"/studies/{VM}"]
    assert len(looked) == len(states)


def test_a_lost_answer_begins_nothing_twice(served: tuple[Api, Path]) -> None:
    transport = Lossy(served[1])
    with Client(socket=str(served[1]), transport=transport) as vmtune:
        made = vmtune.start_migration(MIGRATE)
        assert len(transport.keys) == 2 and len(set(transport.keys)) == 1
        assert [each["id"] for each in vmtune.items(vmtune.list_migrations)] == [made["id"]]


def test_a_request_that_honours_no_key_is_not_repeated(served: tuple[Api, Path]) -> None:
    transport = Lossy(served[1])
    with Client(socket=str(served[1]), transport=transport) as vmtune:
        with pytest.raises(vmtune_client.ConnectionLost, match="check the state"):
            vmtune.create_token({"name": "ci", "scopes": ["read"]})
        assert transport.keys == [None]


def test_errors_have_the_problems_of_the_service(served: tuple[Api, Path]) -> None:
    with Client(socket=str(served[1])) as vmtune:
        wrong: Any = {"name": "p", "values": {"multifd_channels": 0}, "x": 1}
        with pytest.raises(vmtune_client.Invalid) as caught:
            vmtune.create_profile(wrong)
        assert "x" in [problem.field for problem in caught.value.problems]
        assert caught.value.status == 422 and all(each.remedy for each in caught.value.problems)
        with pytest.raises(vmtune_client.Missing) as missing:
            vmtune.start_migration({**MIGRATE, "destination": "nowhere"})
        assert missing.value.problem_code == "not_found"
        with pytest.raises(vmtune_client.Missing):
            vmtune.wait_migration(str(VM))


def test_what_goes_on_is_late(service: StubService) -> None:
    service.on("GET", "/events", Reply(chunks=[b": following\n\n"]))
    service.on("GET", f"/migrations/{VM}", {"ended": False})
    late = pytest.raises(vmtune_client.Late, match="has not ended within 0 s")
    with Client(socket=str(service.socket)) as vmtune, late:
        vmtune.wait_migration(str(VM), within_s=0)


def test_events_go_on_after_the_last_one(service: StubService) -> None:
    following = b": following\n\n"
    first = [following, event({"n": 1}, id=41), event({"n": 2})]
    again = [following, b": ping\n\n", event({"n": 3}, id=42)]
    busy = refusal(503, {"field": "", "code": "starting", "message": "m", "remedy": "r"})
    service.on("GET", "/events", Reply(chunks=first), busy, Reply(chunks=again))
    with Client(socket=str(service.socket)) as vmtune:
        items = list(islice(vmtune.events("vm", after="40"), 6))
    assert [type(each).__name__ for each in items] == [
        "Connected", "ServerEvent", "ServerEvent", "Connected", "Heartbeat", "ServerEvent"
    ]  # fmt: skip
    assert isinstance(items[-1], ServerEvent) and items[-1].id == "42"
    assert items[0] == Connected()
    resumed = [each.headers["Last-Event-ID"] for each in service.asked]
    assert resumed == ["40", "41", "41"]


# httpx leaves the socket whose connection was refused to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_nobody_there_is_told_as_such(tmp_path: Path) -> None:
    nobody = pytest.raises(vmtune_client.ServiceUnreachable, match="cannot connect")
    with Client(socket=str(tmp_path / "none"), retry_for_s=0) as vmtune, nobody:
        vmtune.get_health()
    del nobody  # it has the error, whose frames have the socket
    gc.collect()
    with pytest.raises(vmtune_client.InvalidInput, match="is not the URL"):
        Client("http://example.org")


def test_it_finds_the_service_as_the_command_does(served: tuple[Api, Path]) -> None:
    with Client.from_environment({"VMTUNE_SOCKET": str(served[1]), "HOME": "/nowhere"}) as vmtune:
        assert vmtune.get_health()["status"] == "ok"


def test_it_needs_nothing_of_vmtune() -> None:
    """Of which it has copies: the package stands alone."""
    program = (
        "import sys, vmtune_client; "
        "print([name for name in sys.modules if name.split('.')[0] == 'vmtune'])"
    )
    path = str(GENERATE.parent)
    ran = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": path}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert ran.stdout == "[]\n"
    assert theirs.__name__ == "vmtune_client.remote.errors"
