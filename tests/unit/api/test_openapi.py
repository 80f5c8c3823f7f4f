"""The OpenAPI document is committed and current, complete, and readable as a page."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.support.api import Api
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
