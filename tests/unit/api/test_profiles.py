"""Profiles: values echoed converted, revisions, ETags, paging."""

from typing import Any

import pytest

from tests.support.served.api import Api

VALUES = {"multifd": True, "multifd_channels": 8, "max_bandwidth_bytes_per_s": "64Mi"}


async def test_a_created_profile_echoes_converted_values(api: Api) -> None:
    response = await api.send("POST", "/profiles", {"name": "fast", "values": VALUES})
    assert response.status_code == 201
    assert response.headers["location"] == "/api/v1/profiles/fast"
    assert response.headers["etag"] == '"1"'
    made = response.json()
    assert made["values"]["max_bandwidth_bytes_per_s"] == 67108864
    assert made["texts"]["max_bandwidth_bytes_per_s"] == "64 MiB/s"
    assert made["values"]["multifd"] is True
    assert made["texts"]["multifd"] == "on"
    assert made == await api.get("/profiles/fast")


async def test_false_zero_and_unset_are_three_things(api: Api) -> None:
    await api.profile(multifd=False, announce_rounds=0)
    values = (await api.get("/profiles/p"))["values"]
    assert values == {"multifd": False, "announce_rounds": 0}


async def test_a_check_converts_and_stores_nothing(api: Api) -> None:
    checked = await api.post("/profiles/check", {"values": VALUES}, expect=200)
    assert checked["values"]["max_bandwidth_bytes_per_s"] == 67108864
    assert (await api.get("/profiles"))["items"] == []


async def test_a_check_judges_the_intent_too(api: Api) -> None:
    good = {"values": VALUES, "intent": {"max_silence_ms": "500ms"}}
    await api.post("/profiles/check", good, expect=200)
    bad = {"values": VALUES, "intent": {"max_silence_ms": "60s", "deadline_s": 30}}
    assert await api.refused("POST", "/profiles/check", bad, status=422) == [
        ("intent.max_silence_ms", "longer_than_deadline")
    ]


async def test_a_check_tells_what_was_rounded_and_what_a_plan_refuses(api: Api) -> None:
    values = {
        "postcopy": True,
        "max_bandwidth_bytes_per_s": "10Gbit/s",
        "max_postcopy_bandwidth_bytes_per_s": 5,
    }
    checked = await api.post("/profiles/check", {"values": values}, expect=200)
    assert checked["texts"]["max_bandwidth_bytes_per_s"] == "1,192 MiB/s"
    assert checked["notes"] == [
        {
            "tunable": "max_bandwidth_bytes_per_s",
            "kind": "rounded",
            "message": "10Gbit/s is rounded to 1,192 MiB/s: libvirt takes whole MiB/s",
        },
        {
            "tunable": "max_postcopy_bandwidth_bytes_per_s",
            "kind": "refused by libvirt",
            "message": "a plan refuses it on hosts with libvirt, which takes whole MiB/s: "
            "use 1 MiB/s",
        },
    ]


async def test_who_stores_a_value_that_is_rounded_is_told_in_the_answer(api: Api) -> None:
    ten = {"max_bandwidth_bytes_per_s": "10Gbit/s"}
    note = {
        "tunable": "max_bandwidth_bytes_per_s",
        "kind": "rounded",
        "message": "10Gbit/s is rounded to 1,192 MiB/s: libvirt takes whole MiB/s",
    }
    made = await api.post("/profiles", {"name": "wide", "values": {**ten, "multifd": True}})
    assert made["notes"] == [note]
    assert (await api.get("/profiles/wide"))["notes"] == []
    body = {"values": ten}
    put = await api.ask("PUT", "/profiles/wide", body, if_match='"1"')
    assert put["notes"] == [note]
    patched = await api.ask("PATCH", "/profiles/wide", body, if_match='"2"')
    assert patched["notes"] == [note]
    other = {"values": {"multifd": True}}
    assert (await api.ask("PATCH", "/profiles/wide", other, if_match='"2"'))["notes"] == []


async def test_tunables_are_grouped_by_subject(api: Api) -> None:
    subjects = [row["subject"] for row in (await api.get("/tunables"))["items"]]
    assert subjects[0] == "Parallel migration"
    blocks = [s for place, s in enumerate(subjects) if place == 0 or subjects[place - 1] != s]
    assert len(blocks) == len(set(blocks)), "a subject is in two places"


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"multifd_chanels": 4}, ("values.multifd_chanels", "unknown_tunable")),
        ({"multifd_channels": 256}, ("values.multifd_channels", "invalid_value")),
        ({"downtime_limit_ms": "3MiB"}, ("values.downtime_limit_ms", "invalid_value")),
        ({"downtime_limit_ms": 1.5}, ("values.downtime_limit_ms", "invalid_value")),
        ({"multifd": 1}, ("values.multifd", "invalid_value")),
        ({"multifd": []}, ("values.multifd", "invalid_value")),
        ({"multifd_channels": 4}, ("values.multifd_channels", "needs_multifd")),
        (
            {"multifd": True, "zero_copy_send": True, "multifd_compression": "zstd"},
            ("values.zero_copy_send", "excludes_multifd_compression"),
        ),
    ],
)
async def test_bad_values_are_refused_by_name_and_change_nothing(
    api: Api, values: dict[str, Any], problem: tuple[str, str]
) -> None:
    body = {"name": "p", "values": values}
    assert problem in await api.refused("POST", "/profiles", body, status=422)
    assert problem in await api.refused("POST", "/profiles/check", {"values": values}, status=422)
    assert (await api.get("/profiles"))["items"] == []
    await api.profile(multifd=False)
    change = {"values": values}
    assert problem in await api.refused("PUT", "/profiles/p", change, status=422, If_Match='"1"')
    assert (await api.get("/profiles/p"))["revision"] == 1


async def test_a_misspelt_tunable_comes_with_the_right_one(api: Api) -> None:
    body = {"name": "p", "values": {"multifd_chanels": 4}}
    response = await api.send("POST", "/profiles", body)
    assert "multifd_channels" in response.json()["errors"][0]["remedy"]


async def test_every_bad_value_is_told_at_once(api: Api) -> None:
    body = {"name": "p", "values": {"nope": 1, "multifd": 3, "multifd_channels": 0}}
    fields = [field for field, _ in await api.refused("POST", "/profiles", body, status=422)]
    assert fields == ["values.multifd", "values.multifd_channels", "values.nope"]


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", "a" * 64, "../etc", "\x00"])
async def test_a_bad_name_is_refused(api: Api, name: str) -> None:
    body = {"name": name, "values": {}}
    assert await api.refused("POST", "/profiles", body, status=422) == [("name", "invalid_input")]


async def test_a_name_is_taken_once(api: Api) -> None:
    await api.profile(multifd=True)
    body = {"name": "p", "values": {}}
    assert await api.refused("POST", "/profiles", body, status=409) == [("name", "duplicate_name")]
    assert (await api.get("/profiles/p"))["values"] == {"multifd": True}


async def test_a_change_needs_the_current_etag(api: Api) -> None:
    await api.profile(multifd=True)
    body = {"values": {"multifd": False}}
    for method, path, sent in (
        ("PUT", "/profiles/p", body),
        ("PATCH", "/profiles/p", body),
        ("POST", "/profiles/p/revisions/1/restore", None),
    ):
        missing = await api.refused(method, path, sent, status=428)
        assert missing == [("If-Match", "precondition_required")]
        stale = await api.refused(method, path, sent, status=412, If_Match='"7"')
        assert stale == [("If-Match", "stale_revision")]
        bad = await api.refused(method, path, sent, status=422, If_Match="1")
        assert bad == [("If-Match", "invalid_input")]
    assert (await api.get("/profiles/p"))["revision"] == 1


async def test_the_second_of_two_changes_on_one_revision_is_refused(api: Api) -> None:
    await api.profile(multifd=True)
    first = await api.send("PUT", "/profiles/p", {"values": {"multifd": False}}, If_Match='"1"')
    assert (first.status_code, first.headers["etag"]) == (200, '"2"')
    await api.refused("PUT", "/profiles/p", {"values": {}}, status=412, If_Match='"1"')
    star = await api.ask("PUT", "/profiles/p", {"values": {}}, If_Match="*")
    assert (star["revision"], star["values"]) == (3, {})


async def test_put_replaces_everything(api: Api) -> None:
    body = {"name": "p", "values": VALUES, "description": "old"}
    await api.post("/profiles", body)
    put = await api.ask("PUT", "/profiles/p", {"values": {"multifd": False}}, If_Match='"1"')
    assert (put["values"], put["description"]) == ({"multifd": False}, "")


async def test_patch_changes_what_it_names_and_null_unsets(api: Api) -> None:
    await api.profile(**VALUES)
    body = {"values": {"multifd_channels": None, "downtime_limit_ms": "1.5s"}, "note": "why"}
    patched = await api.ask("PATCH", "/profiles/p", body, If_Match='"1"')
    assert patched["values"] == {
        "multifd": True,
        "max_bandwidth_bytes_per_s": 67108864,
        "downtime_limit_ms": 1500,
    }
    assert (patched["revision"], patched["note"]) == (2, "why")


async def test_patch_of_a_description_makes_no_revision(api: Api) -> None:
    await api.profile(multifd=True)
    body = {"description": "for rack 7"}
    patched = await api.ask("PATCH", "/profiles/p", body, If_Match='"1"')
    assert (patched["description"], patched["revision"]) == ("for rack 7", 1)


async def test_patch_refuses_nothing_and_the_unknown(api: Api) -> None:
    await api.profile(multifd=True)
    empty = await api.refused("PATCH", "/profiles/p", {}, status=422, If_Match='"1"')
    assert empty == [("values", "invalid_input")]
    unset = {"values": {"multifdd": None}}
    refused = await api.refused("PATCH", "/profiles/p", unset, status=422, If_Match='"1"')
    assert refused == [("values.multifdd", "unknown_tunable")]


async def test_revisions_are_kept_and_restored(api: Api) -> None:
    await api.profile(multifd=True)
    await api.ask("PUT", "/profiles/p", {"values": {"multifd": False}}, If_Match='"1"')
    listed = (await api.get("/profiles/p/revisions"))["items"]
    assert [(r["revision"], r["values"]["multifd"]) for r in listed] == [(2, False), (1, True)]
    assert (await api.get("/profiles/p/revisions/1"))["texts"] == {"multifd": "on"}
    path = "/profiles/p/revisions/1/restore"
    restored = await api.ask("POST", path, If_Match='"2"')
    assert (restored["revision"], restored["values"]) == (3, {"multifd": True})
    for missing in ("/profiles/p/revisions/9", "/profiles/q/revisions/1", "/profiles/q/revisions"):
        await api.refused("GET", missing, status=404)


async def test_delete_keeps_the_revisions_and_heeds_if_match(api: Api) -> None:
    await api.profile(multifd=True)
    await api.refused("DELETE", "/profiles/p", status=412, If_Match='"2"')
    await api.ask("DELETE", "/profiles/p", expect=204, If_Match='"1"')
    assert await api.refused("GET", "/profiles/p", status=404) == [("profile", "not_found")]
    assert (await api.get("/profiles/p/revisions/1"))["values"] == {"multifd": True}


async def test_delete_is_refused_while_assigned(api: Api) -> None:
    await api.profile(multifd=True)
    await api.post("/assignments", {"target": "default", "profile": "p"})
    refused = await api.refused("DELETE", "/profiles/p", status=409)
    assert refused == [("name", "profile_in_use")]


async def test_pages_continue_where_they_ended(api: Api) -> None:
    for name in ("c", "a", "b"):
        await api.profile(name)
    first = await api.get("/profiles?limit=2")
    assert [p["name"] for p in first["items"]] == ["a", "b"]
    second = await api.get(f"/profiles?limit=2&after={first['next']}")
    assert [p["name"] for p in second["items"]] == ["c"]
    assert second["next"] is None
    assert [p["name"] for p in (await api.get("/profiles?contains=B"))["items"]] == ["b"]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("limit=0", ("limit", "invalid_value")),
        ("limit=201", ("limit", "invalid_value")),
        ("limit=x", ("limit", "invalid_value")),
        ("after=nonsense", ("after", "invalid_cursor")),
        ("limt=3", ("limt", "unknown_parameter")),
    ],
)
async def test_bad_paging_is_refused(api: Api, query: str, problem: tuple[str, str]) -> None:
    assert await api.refused("GET", f"/profiles?{query}", status=422) == [problem]


async def test_a_profiles_intent_is_kept_changed_restored_and_removed(api: Api) -> None:
    goals = {"max_silence_ms": "500ms", "deadline_s": "2min"}
    made = await api.post("/profiles", {"name": "gently", "values": VALUES, "intent": goals})
    assert made["intent"]["stated"]["max_silence_ms"] == 500
    assert made["intent"]["text"].startswith("silence at most 500 ms, within 120 s")

    async def send(method: str, body: object, revision: int) -> dict[str, Any]:
        answer = await api.send(method, "/profiles/gently", body, if_match=f'"{revision}"')
        assert answer.status_code == 200, answer.text
        return answer.json()

    kept = await send("PATCH", {"values": {"multifd_channels": 4}}, 1)
    assert (kept["revision"], kept["intent"]) == (2, made["intent"])
    changed = await send("PATCH", {"intent": {"deadline_s": 60}}, 2)
    assert changed["intent"]["stated"]["deadline_s"] == 60
    assert (await send("PATCH", {"intent": {"deadline_s": 60}}, 3))["revision"] == 3
    # Of a client that does not know intents.
    unknown = await send("PUT", {"values": VALUES}, 3)
    assert (unknown["revision"], unknown["intent"]) == (4, changed["intent"])
    gone = await send("PUT", {"values": VALUES, "intent": None}, 4)
    assert gone["intent"] is None
    first = await api.get("/profiles/gently/revisions/1")
    assert first["intent"] == made["intent"]
    back = await api.send("POST", "/profiles/gently/revisions/1/restore", if_match='"5"')
    assert back.json()["intent"] == made["intent"]


async def test_a_bad_intent_of_a_profile_names_its_field(api: Api) -> None:
    bad = {"name": "bad", "values": {}, "intent": {"deadline_s": "2kg"}}
    refused = await api.send("POST", "/profiles", bad)
    assert refused.status_code == 422
    assert [each["field"] for each in refused.json()["errors"]] == ["intent.deadline_s"]
    assert (await api.get("/profiles"))["items"] == []
