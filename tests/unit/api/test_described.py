"""The OpenAPI document is enough for others: how to sign in, where, and what each part means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from vmtune.api.auth.security import OPEN
from vmtune.api.described import PARAMETERS, TAGS
from vmtune.api.docstrings import parted
from vmtune.api.field_words import FIELDS, WORDS
from vmtune.api.main import create_app
from vmtune.config.settings import Settings


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:  # any: OpenAPI
    return create_app(Settings()).openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def test_it_says_how_to_sign_in_and_where_the_service_is(document: dict[str, Any]) -> None:
    schemes = document["components"]["securitySchemes"]
    assert {name for each in document["security"] for name in each} == set(schemes)
    assert schemes["token"]["scheme"] == "bearer"
    assert [server["url"] for server in document["servers"]] == ["/"]


def test_each_operation_has_a_title_in_plain_words(document: dict[str, Any]) -> None:
    titles = {operation["summary"] for _, operation in operations(document)}
    assert {"Apply to VM", "List VMs", "Begin OIDC", "Look for changes"} <= titles
    assert not [each for each in titles if "_" in each or not each[0].isupper()]


def test_only_what_is_answered_without_credentials_is_told_to_need_none(
    document: dict[str, Any],
) -> None:
    told = {where for where, operation in operations(document) if operation.get("security") == []}
    assert told == {f"{method} {path}" for method, path in OPEN}


def test_each_group_operation_and_parameter_is_described(document: dict[str, Any]) -> None:
    assert all(tag["description"] for tag in document["tags"])
    found = [where for where, operation in operations(document) if not operation.get("description")]
    found += [
        f"{where}: {one['name']}"
        for where, operation in operations(document)
        for one in operation.get("parameters", ())
        if not one.get("description")
    ]
    assert found == []


def test_each_schema_and_field_is_described(document: dict[str, Any]) -> None:
    """A field that is another schema is described by that one."""
    schemas = document["components"]["schemas"]
    found = [name for name, schema in schemas.items() if not schema.get("description")]
    found += [
        f"{name}.{field}"
        for name, schema in schemas.items()
        for field, part in schema.get("properties", {}).items()
        if not part.get("description") and "$ref" not in part
    ]
    assert found == []


def test_descriptions_are_sentences_of_markdown(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    texts = {name: schema["description"] for name, schema in schemas.items()} | {
        f"{name}.{field}": part["description"]
        for name, schema in schemas.items()
        for field, part in schema.get("properties", {}).items()
        if "description" in part
    }
    wrong = ("``", ":param", ":mod:", ":class:", ":data:", "None ", "likewise *")
    assert {where: text for where, text in texts.items() if any(w in text for w in wrong)} == {}
    assert {where: text for where, text in texts.items() if text[-1] not in ".`)"} == {}


def test_a_class_tells_its_fields() -> None:
    said = parted(
        "A thing, see :mod:`vmtune.a.b`.\n\n:param one: ``x``; None where\n    *two* is.\n"
        ":param two: it.\n:raise InvalidInput: never."
    )
    assert said.summary == "A thing, see `b`."
    assert said.parameters == {"one": "`x`; null where `two` is.", "two": "It."}


def test_the_words_are_for_names_that_there_are(document: dict[str, Any]) -> None:
    names = {
        one["name"]
        for _, operation in operations(document)
        for one in operation.get("parameters", ())
    }
    assert set(PARAMETERS) <= names
    fields = {
        name
        for schema in document["components"]["schemas"].values()
        for name in schema.get("properties", {})
    }
    assert set(FIELDS) <= fields
    schemas = document["components"]["schemas"]
    told = {f"{name}.{field}" for name, own in WORDS.items() for field in own}
    said = {
        f"{name}.{field}"
        for name, own in WORDS.items()
        for field, words in own.items()
        if schemas.get(name, {}).get("properties", {}).get(field, {}).get("description") == words
    }
    assert told - said == set()
    assert set(TAGS) == {tag["name"] for tag in document["tags"]}


def test_every_choice_of_a_field_is_a_schema_of_its_own(document: dict[str, Any]) -> None:
    """A generator gives an enum within a field a name that nobody knows."""
    inline = [
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, part in schema.get("properties", {}).items()
        if len(part.get("enum", ())) > 1
    ]
    assert inline == []
