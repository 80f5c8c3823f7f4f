from __future__ import annotations

import base64
import json
import string
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.errors import InvalidInput
from vmtune.storage.paging import make_cursor, page, read_cursor

UUID_1 = UUID(int=1)


@given(
    st.text(st.characters(exclude_characters="\0", codec="utf-8")),
    st.uuids(),
    st.integers(0, (1 << 63) - 1),
)
def test_a_cursor_brings_its_keys_back(name: str, uuid: UUID, number: int) -> None:
    cursor = make_cursor("vms", name, uuid, number)
    assert set(cursor) <= set(string.ascii_letters + string.digits + "-_")
    assert read_cursor("vms", cursor, str, UUID, int) == [name, uuid, number]


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "!",
        "a",
        "ä",
        "\0",
        "AAAA",
        encoded(None),
        encoded({}),
        encoded([]),
        encoded(["hosts"]),
        encoded(["hosts", "a", "b"]),
        encoded(["hosts", 1]),
        encoded(["hosts", None]),
        encoded(["hosts", "nul\0"]),
        encoded(["vms", "a"]),
        base64.urlsafe_b64encode(b"[" * 100_000).decode(),
    ],
)
def test_anything_else_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_cursor("hosts", cursor, str)
    problem = caught.value.problems[0]
    assert (problem.field, problem.code) == ("after", "invalid_cursor")
    assert problem.remedy


@pytest.mark.parametrize("number", [True, -1, 1 << 63, 1.5, "1"])
def test_a_number_must_be_one_that_a_row_can_have(number: object) -> None:
    with pytest.raises(InvalidInput):
        read_cursor("events", encoded(["events", number]), int)


def test_a_uuid_must_be_one() -> None:
    assert read_cursor("x", make_cursor("x", UUID_1), UUID) == [UUID_1]
    with pytest.raises(InvalidInput):
        read_cursor("x", make_cursor("x", "no-uuid"), UUID)


def test_a_page_shows_at_most_its_limit() -> None:
    full = page([1, 2, 3], 2, str, lambda row: f"after {row}")
    assert (full.items, full.next) == (("1", "2"), "after 2")
    last = page([1, 2], 2, str, lambda row: f"after {row}")
    assert (last.items, last.next) == (("1", "2"), None)
    assert page([], 2, str, str).items == ()
