"""The OpenAPI document is committed and current, complete, and readable as a page."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.support.served.api import Api
from vmtune.api import openapi

DOCUMENT: dict[str, Any] = json.loads(openapi.document())
OPERATIONS = [
    pytest.param(operation, method, id=f"{method} {path}")
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]


def test_the_committed_document_is_current() -> None:
    assert openapi.main(["--check"]) == 0


def test_a_document_that_is_not_current_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(openapi, "FILE", tmp_path / "openapi.json")
    monkeypatch.setattr(openapi, "FILE_3_0", tmp_path / "openapi-3.0.json")
    assert openapi.main(["--check"]) == 1
    assert openapi.main([]) == 0
    assert openapi.main(["--check"]) == 0
    (tmp_path / "openapi.json").write_text("{}")
    assert openapi.main(["--check"]) == 1
    assert "make openapi" in capsys.readouterr().err
    assert openapi.main(["--chek"]) == 2


@pytest.mark.parametrize(("operation", "method"), OPERATIONS)
def test_every_operation_is_described(operation: dict[str, Any], method: str) -> None:
    assert operation["description"].endswith(".")
    answers = operation["responses"]
    assert {"421", "422", "500", "503"} <= answers.keys()
    problems = [answer for status, answer in answers.items() if int(status) >= 400]
    assert all("application/problem+json" in answer["content"] for answer in problems)
    if "requestBody" in operation:
        assert {"400", "413", "415"} <= answers.keys()
    for status in ("201", "202"):
        if status in answers and method == "post":
            assert "Location" in answers[status]["headers"]


def test_every_reference_leads_somewhere() -> None:
    text = json.dumps(DOCUMENT)
    for part in text.split('"#/components/schemas/')[1:]:
        assert part.partition('"')[0] in DOCUMENT["components"]["schemas"]


def test_nothing_unknown_is_accepted() -> None:
    for name, schema in DOCUMENT["components"]["schemas"].items():
        if "properties" in schema:
            assert schema["additionalProperties"] is False, name


SCHEMAS: dict[str, dict[str, Any]] = DOCUMENT["components"]["schemas"]


def _each(node: Any) -> Iterator[dict[str, Any]]:
    """Every object within, itself included."""
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _each(each)


def test_names_of_operations_are_unique_and_readable() -> None:
    ids = [row.values[0]["operationId"] for row in OPERATIONS]  # type: ignore[index,call-overload]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z]+(_[a-z0-9]+)*", each) and len(each) <= 30 for each in ids)


def test_names_of_schemas_are_short_and_readable() -> None:
    """No path of a module, and no -Input and -Output of the same class."""
    assert [name for name in SCHEMAS if not re.fullmatch(r"([A-Z][a-z0-9]*)+", name)] == []
    assert all(schema["title"] == name for name, schema in SCHEMAS.items())


def test_every_enumeration_and_each_of_its_words_has_a_name() -> None:
    for part in _each(DOCUMENT):
        assert "enum" not in part or part in SCHEMAS.values(), f"name it: {part['enum']}"
    for name, schema in SCHEMAS.items():
        if "enum" in schema:
            names = schema["x-enum-varnames"]
            assert len(set(names)) == len(schema["enum"]), name
            assert all(re.fullmatch(r"[A-Z][A-Z0-9_]*", each) for each in names), name


def test_every_error_has_the_schema_of_problems() -> None:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            for status, answer in operation["responses"].items():
                if int(status) >= 400:
                    (content,) = answer["content"].items()
                    problem = {"$ref": "#/components/schemas/ProblemDocument"}
                    expected = ("application/problem+json", {"schema": problem})
                    assert content == expected, f"{method} {path} {status}"


def test_it_says_how_callers_authenticate() -> None:
    assert DOCUMENT["security"] == [{"token": []}, {"session": [], "csrf": []}]
    assert DOCUMENT["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


async def test_openapi_3_0_says_the_same_to_older_generators(api: Api) -> None:
    """Such as oapi-codegen, which knows no null type."""
    older: dict[str, Any] = json.loads(openapi.document_3_0())
    assert older["openapi"] == "3.0.3"
    assert older["paths"].keys() == DOCUMENT["paths"].keys()
    for name, schema in older["components"]["schemas"].items():
        properties = SCHEMAS[name].get("properties", {})
        assert schema.get("properties", {}).keys() == properties.keys()
        assert schema.get("required") == SCHEMAS[name].get("required")
    for part in _each(older):
        assert part.get("type") != "null"
        assert not isinstance(part.get("type"), list)
        if "properties" not in part:  # which may have any name
            assert not {"const", "prefixItems", "$defs"} & part.keys()
            assert not isinstance(part.get("examples"), list)
        assert "$ref" not in part or len(part) == 1, "what is beside a reference is ignored in 3.0"
    assert (await api.send("GET", "/openapi-3.0.json")).json() == older


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.ids: set[str] = set()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.add(value or "")
            if name in ("href", "src"):
                self.targets.add(value or "")


async def test_the_page_needs_nothing_from_the_network(api: Api) -> None:
    response = await api.send("GET", "/docs/plain")
    assert response.status_code == 200
    page = _Links()
    page.feed(response.text)
    assert page.targets - {"openapi.json"} <= {f"#{name}" for name in page.ids}
    assert not page.tags & {"script", "link", "img", "iframe"}
    assert "default-src 'none'" in response.headers["content-security-policy"]
    for path in DOCUMENT["paths"]:
        assert path in response.text
    assert (await api.send("GET", "/openapi.json")).json() == DOCUMENT
