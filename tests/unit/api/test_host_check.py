"""The host check over HTTP."""

from __future__ import annotations

from tests.support.served.api import Api


async def test_a_pair_is_checked_by_new_connections(api: Api) -> None:
    found = await api.get("/hosts/a/check?to=b")
    assert (found["host"], found["to"]) == ("a", "b")
    steps = [(step["host"], step["what"]) for step in found["steps"]]
    assert ("a", "connection") in steps
    assert ("b", "connection") in steps
    assert ("b", "identity") in steps
    alone = await api.get("/hosts/a/check")
    assert {step["host"] for step in alone["steps"]} == {"a"}


async def test_the_host_itself_and_unknown_ones_are_refused(api: Api) -> None:
    refused = await api.refused("GET", "/hosts/a/check?to=a", status=422)
    assert [field for field, _ in refused] == ["to"]
    await api.refused("GET", "/hosts/a/check?to=nowhere", status=404)
