"""The published tables over the API: paged, cached, with ratios and changes."""

from __future__ import annotations

import pytest

from tests.support.served.api import Api
from vmtune.reference.facts import in_order
from vmtune.reference.loading import references


async def test_all_sources_are_listed_page_by_page(api: Api) -> None:
    listed = await api.get("/reference")
    assert [each["id"] for each in listed["items"]] == list(references())
    assert listed["next"] is None
    seen, after = [], ""
    while True:
        page = await api.get(f"/reference?limit=3{after}")
        seen += [each["id"] for each in page["items"]]
        if page["next"] is None:
            break
        assert len(page["items"]) == 3
        after = f"&after={page['next']}"
    assert seen == list(references())
    of_ring = next(each for each in listed["items"] if each["id"] == "dirty-ring-reaper")
    assert [(table["name"], table["rows"]) for table in of_ring["tables"]] == [
        ("drop", 30),
        ("memory_update", 30),
    ]


@pytest.mark.parametrize("name", references())
async def test_every_source_is_shown_whole(api: Api, name: str) -> None:
    shown = await api.get(f"/reference/{name}")
    each = references()[name]
    assert [table["name"] for table in shown["tables"]] == list(each.tables)
    for table in shown["tables"]:
        assert len(table["rows"]) == len(each.tables[table["name"]].rows)
    assert [fact["name"] for fact in shown["setup"]] == list(in_order(each.setup))


async def test_changes_come_recomputed(api: Api) -> None:
    shown = await api.get("/reference/coroutine-pool-global")
    changes = [row["change"] for row in shown["tables"][0]["rows"] if row["change"]]
    assert len(changes) == 10
    assert all(change["agrees"] for change in changes)
    assert [change["printed"] for change in changes] == [change["recomputed"] for change in changes]


async def test_ranges_and_what_was_never_reached(api: Api) -> None:
    (table,) = (await api.get("/reference/zero-copy-multifd?table=time_reduction"))["tables"]
    first = table["rows"][0]
    assert (first["low"], first["high"], first["printed"]) == (10, 21, "10% to 21%")
    assert first["ratios"][0] | {"title": ""} == {
        "title": "", "base": "copied", "low": 0.79, "high": 0.9, "approximate": False,
        "text": "0.790 to 0.900",
    }  # fmt: skip
    shown = await api.get("/reference/dirty-limit-convergence")
    never = shown["tables"][0]["rows"][-2]
    assert (never["printed"], never["low"], never["ratios"]) == ("never", None, [])
    assert shown["tables"][0]["rows"][-1]["ratios"][0]["low"] is None
    assert not shown["source"]["checked"]


async def test_what_is_known_already_is_not_sent_again(api: Api) -> None:
    first = await api.send("GET", "/reference/srcu-boot-time")
    etag = first.headers["etag"]
    for known in (etag, f'"other", W/{etag}', "*"):
        again = await api.send("GET", "/reference/srcu-boot-time", if_none_match=known)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == etag
    part = await api.send("GET", "/reference/srcu-boot-time?table=boot_time", if_none_match=etag)
    assert part.status_code == 200
    assert part.headers["etag"] != etag


@pytest.mark.parametrize(
    ("path", "status", "problem"),
    [
        ("/reference/dirty-ring", 404, ("id", "not_found")),
        ("/reference/dirty-ring-reaper?table=iops", 404, ("table", "not_found")),
        ("/reference/dirty-ring-reaper?tabel=drop", 422, ("tabel", "unknown_parameter")),
        ("/reference?limit=0", 422, ("limit", "invalid_value")),
        ("/reference?after=x", 422, ("after", "invalid_cursor")),
    ],
)
async def test_what_is_not_there(
    api: Api, path: str, status: int, problem: tuple[str, str]
) -> None:
    assert await api.refused("GET", path, status=status) == [problem]
