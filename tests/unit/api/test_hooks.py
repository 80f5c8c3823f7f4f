"""What libvirt's hook asks, and what it is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.served.api import PREFIX, Api, admin_token, problems, running_api
from tests.support.simulated.fakes import VM
from vmtune.api.routes.hooks import _program
from vmtune.errors import Forbidden
from vmtune.model.access.scopes import FULL, Identity, Kind
from vmtune.model.migration.record import MigrationState, Trigger
from vmtune.storage import Store

SECRET = "hunter2"
DOMAIN = f"""<domain type='kvm'>
  <name>guest é</name>
  <uuid>{VM}</uuid>
  <memory unit='KiB'>131072</memory>
  <devices><graphics type='vnc' port='-1' passwd='{SECRET}'/></devices>
</domain>
"""
ALLOWED = {"destination_command_line": True}
XML = {"content-type": "application/xml"}
WANTED = "migration.announce-rounds=8"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(tmp_path, options=ALLOWED) as made:
        yield made


async def ask(api: Api, xml: str | bytes = DOMAIN, **headers: str) -> httpx.Response:
    content = xml.encode() if isinstance(xml, str) else xml
    return await api.client.post(
        f"{PREFIX}/hooks/qemu", content=content, headers={**XML, **headers}
    )


async def tuned(api: Api, target: str = "vm", key: str = str(VM), **more: object) -> None:
    """A profile for it, that is more than the hook can give."""
    await api.profile("p", announce_rounds=8, downtime_limit_ms=200, **more)
    await api.post("/assignments", {"target": target, "key": key, "profile": "p"})


def kept(folder: Path) -> bytes:
    """All that the store has on the disk."""
    return b"".join(file.read_bytes() for file in folder.glob("vmtune.db*"))


async def arrivals(api: Api) -> list[dict[str, Any]]:
    await api.container.bus.drain()
    with Store.open(api.container.settings.database_url) as store:
        events = store.events.since(0, 500)
    return [{"subject": e.subject, **e.data} for e in events if e.topic == "arrival"]


async def test_a_vm_without_a_profile_arrives_as_it_is(api: Api) -> None:
    answer = await ask(api)
    assert (answer.status_code, answer.content) == (204, b"")
    (told,) = await arrivals(api)
    assert told == {
        "subject": str(VM), "vm": str(VM), "name": "guest é", "profile": "", "revision": 0,
        "given": {}, "withheld": {},
    }  # fmt: skip


async def test_what_the_profile_wants_of_the_destination_is_in_the_xml(api: Api) -> None:
    await tuned(api, postcopy=True, max_postcopy_bandwidth_bytes_per_s=4 << 20)
    answer = await ask(api)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/xml"
    assert answer.text.startswith("<domain ")
    assert answer.text.endswith("</domain>")
    assert WANTED in answer.text
    assert f"migration.max-postcopy-bandwidth={4 << 20}" in answer.text
    assert "downtime" not in answer.text
    assert "guest é" in answer.text
    (told,) = await arrivals(api)
    assert told["profile"] == "p"
    assert told["given"] == {
        "announce_rounds": 8,
        "max_postcopy_bandwidth_bytes_per_s": 4 << 20,
    }
    assert told["withheld"] == {}
    # And so it needs no change the next time.
    assert (await ask(api, answer.content)).status_code == 204


async def test_what_only_some_qemus_have_is_not_given(api: Api) -> None:
    await tuned(api, compress=True, decompress_threads=3)
    answer = await ask(api)
    assert WANTED in answer.text
    assert "threads" not in answer.text
    assert (await arrivals(api))[0]["withheld"] == {"decompress_threads": "not_in_every_qemu"}


async def test_without_leave_nothing_is_changed_and_it_is_told(tmp_path: Path) -> None:
    async with running_api(tmp_path) as api:
        await tuned(api)
        assert (await ask(api)).status_code == 204
        (told,) = await arrivals(api)
        assert told["given"] == {}
        assert told["withheld"] == {"announce_rounds": "destination_needs_command_line"}


@pytest.mark.parametrize(("target", "key"), [("default", ""), ("selector", "t=d"), ("host", "a")])
async def test_labels_and_the_host_where_it_was_seen_count(api: Api, target: str, key: str) -> None:
    with Store.open(api.container.settings.database_url) as store:
        store.vms.remember_all("a", {VM: "guest"}, datetime.now(UTC))
        store.vms.set_labels(VM, {"t": "d"})
    await tuned(api, target, key)
    assert WANTED in (await ask(api)).text
    assert [told["source"] for told in await arrivals(api)] == ["a"]


async def test_of_a_migration_that_vmtune_carries_out_nothing_is_changed(api: Api) -> None:
    """It put its own values there, of another profile perhaps."""
    await tuned(api)
    with Store.open(api.container.settings.database_url) as store:
        begun = store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="b")
        assert (await ask(api)).status_code == 204
        (told,) = await arrivals(api)
        assert (told["migration"], told["given"]) == (str(begun.id), {})
        store.migrations.update(begun.id, state=MigrationState.CANCELLED)
        assert (await ask(api)).status_code == 200
        store.migrations.begin(
            vm=VM, vm_name="vm", source="b", destination="a", trigger=Trigger.OBSERVED
        )
    assert (await ask(api)).status_code == 200


async def test_it_asks_no_host(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """libvirt waits for the hook, and must not be called back."""
    await tuned(api)

    async def never(*_: object, **__: object) -> None:
        raise AssertionError("a host was asked")

    for name in ("driver", "facts", "locate", "list_vms"):
        monkeypatch.setattr(type(api.container.hosts), name, never)
    assert (await ask(api)).status_code == 200


async def test_it_is_in_the_audit_log_and_nothing_secret_is(
    api: Api, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    await tuned(api)
    assert SECRET in (await ask(api)).text
    broken = await ask(api, DOMAIN.replace("</domain>", "</domian>"))
    assert problems(broken) == [("xml", "xml_refused")]
    refused, done = (await api.get("/audit?limit=2"))["items"]
    assert (done["action"], done["outcome"], done["status"]) == ("vm_arrives", "done", 200)
    assert done["subject"] == f"vm {VM}"
    assert (refused["outcome"], refused["codes"]) == ("refused", ["xml_refused"])
    assert SECRET not in broken.text
    await api.container.bus.drain()
    assert SECRET.encode() not in kept(tmp_path)
    printed = capfd.readouterr()
    assert SECRET not in printed.out + printed.err


class TestWhoMayAsk:
    async def test_over_tcp_only_with_a_token_of_the_scope(self, tmp_path: Path) -> None:
        async with running_api(tmp_path, base_url="http://localhost:8470") as api:
            del api.client.headers["Authorization"]
            assert (await ask(api)).status_code == 401
            for scope, status in (("hook", 204), ("migrate", 204), ("read", 403), ("metrics", 403)):
                token = await admin_token(api.container, scopes=[scope])
                answer = await ask(api, Authorization=f"Bearer {token}")
                assert answer.status_code == status, scope

    async def test_nobody_who_may_see_only_vms_with_labels(self, api: Api) -> None:
        token = await admin_token(api.container, scopes=["hook"], labels={"tier": "web"})
        answer = await ask(api, Authorization=f"Bearer {token}")
        assert problems(answer) == [("Authorization", "hook_reach")]

    async def test_nobody_who_signed_in_with_an_identity_provider(self, api: Api) -> None:
        with pytest.raises(Forbidden) as refused:
            await _program(Identity(Kind.OIDC, "ada", rights=FULL))
        assert [p.code for p in refused.value.problems] == ["hook_only"]

    async def test_where_it_arrives_is_told_of_a_token_for_one_host(self, api: Api) -> None:
        for hosts in (["a"], ["a", "b"]):
            token = await admin_token(api.container, scopes=["hook"], hosts=hosts)
            await ask(api, Authorization=f"Bearer {token}")
        told = await arrivals(api)
        assert [each.get("destination") for each in told] == ["a", None]


@pytest.mark.parametrize(
    ("xml", "field", "code", "status"),
    [
        ("", "xml", "xml_refused", 422),
        ("<domain>", "xml", "xml_refused", 422),
        (b"\xff\xfe<", "xml", "xml_refused", 422),
        ('<!DOCTYPE d [<!ENTITY a "b">]><domain/>', "xml", "xml_refused", 422),
        ("<a>" * 101 + "</a>" * 101, "xml", "xml_refused", 422),
        ("<domain/>", "xml", "no_domain", 422),
        (f"<network><name>n</name><uuid>{VM}</uuid></network>", "xml", "no_domain", 422),
        (f"<domain><uuid>{VM}</uuid><name> </name></domain>", "xml", "no_domain", 422),
        ("<domain><name>n</name><uuid>7</uuid></domain>", "xml", "no_domain", 422),
        ("<domain>" + "x" * (1 << 20) + "</domain>", "body", "body_too_large", 413),
    ],
)
async def test_what_is_no_domain_is_refused_with_the_reason(
    api: Api, xml: str | bytes, field: str, code: str, status: int
) -> None:
    answer = await ask(api, xml)
    assert answer.status_code == status, answer.text
    assert problems(answer) == [(field, code)]
    assert await arrivals(api) == []


async def test_another_type_is_refused_and_says_which_is_taken(api: Api) -> None:
    answer = await ask(api, **{"content-type": "application/json"})
    assert problems(answer) == [("Content-Type", "wrong_media_type")]
    assert "application/xml" in answer.text
    elsewhere = await api.client.post(f"{PREFIX}/profiles", content=DOMAIN.encode(), headers=XML)
    assert elsewhere.status_code == 415
    assert "send application/json" in elsewhere.text


NAMES = st.sampled_from(
    ["domain", "name", "uuid", "qemu:commandline", "qemu:arg", "q:arg", "metadata", "x:y", "é"]
)
TEXTS = st.one_of(
    st.sampled_from([str(VM), "-global", WANTED, "migration.announce-rounds", "&#0;", "&amp;", ""]),
    st.text(max_size=20),
)
ATTRIBUTES = st.sampled_from(
    [
        "", " value='-global'", f" value='{WANTED}'", " value=''", " xmlns:x='y'",
        " xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'", " xmlns='}'", " xmlns=' '",
        " xmlns='http://libvirt.org/schemas/domain/qemu/1.0'", " xmlns:qemu=''", " q:a='b'",
    ]
)  # fmt: skip


def element(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(
        lambda name, attributes, inside: f"<{name}{attributes}>{''.join(inside)}</{name}>",
        NAMES, ATTRIBUTES, st.lists(children, max_size=4),
    )  # fmt: skip


TREES = st.recursive(TEXTS, element, max_leaves=12)
WHOLE = st.builds(
    lambda attributes, inside: (
        f"<domain{attributes}><name>n</name><uuid>{VM}</uuid>{''.join(inside)}</domain>"
    ),
    ATTRIBUTES,
    st.lists(TREES, max_size=4),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A domain with some of its bytes lost, doubled or changed."""
    xml = bytearray(DOMAIN.encode())
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(xml) - 1))
        xml[at : at + draw(st.integers(0, 20))] = draw(st.binary(max_size=8))
    return bytes(xml)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None
)
@example(b"")
@example(b"<domain><x:y/></domain>")
@example(f"<domain xmlns='}}'><name>n</name><uuid>{VM}</uuid></domain>".encode())
@example(f"<domain><name>n</name><uuid>{VM}</uuid><qemu:commandline/></domain>".encode())
@given(st.one_of(st.binary(max_size=60), TREES.map(str.encode), WHOLE.map(str.encode), damaged()))
async def test_whatever_is_sent_is_answered(api: Api, body: bytes) -> None:
    """Never with a fault; and what libvirt would get is again a domain, the same one."""
    if not getattr(api, "is_tuned", False):
        await tuned(api, "default", "")
        api.is_tuned = True  # type: ignore[attr-defined]  # once for all examples
    answer = await ask(api, body)
    assert answer.status_code in (200, 204, 413, 422), answer.text
    if answer.status_code == 422:
        assert problems(answer)[0][0] == "xml"
    if answer.status_code == 200:
        assert WANTED in answer.text
        assert (await ask(api, answer.content)).status_code == 204
    assert "Traceback" not in answer.text


def test_the_route_is_documented() -> None:
    document = json.loads((Path(__file__).parents[3] / "api/openapi.json").read_text())
    operation = document["paths"]["/api/v1/hooks/qemu"]["post"]
    assert list(operation["requestBody"]["content"]) == ["application/xml"]
    assert "application/xml" in operation["responses"]["200"]["content"]
    assert "204" in operation["responses"]
