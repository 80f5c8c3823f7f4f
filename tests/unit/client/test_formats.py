"""``-o``, ``--sort`` and ``--wide``: what programs and people get of a list."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import api_documents as docs
from tests.support.served.stub_service import StubService, page, refusal
from tests.unit.client.conftest import Vmtune
from vmtune.client.ids import distinct
from vmtune.client.views.formats import to_csv, to_names, to_yaml

ONE, TWO = "5f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e10", "5f5b1f5e-6c1e-4c8f-9d1a-0d9f6a1c7e10"
_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT | st.sampled_from(["yes", "1e3", "- a", "a: b", "#", "~", "", " x", "2026-11-25"]),
    lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(_TEXT, _JSON))
def test_yaml_is_read_back_as_it_was(document: dict[str, Any]) -> None:
    class Loader(yaml.SafeLoader):
        """PyYAML reads 1e16 as text, by YAML 1.1; every other number it reads as it is."""

    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        __import__("re").compile(r"^-?\d+(\.\d+)?[eE][-+]?\d+$"),
        list("-0123456789"),
    )
    assert yaml.load("\n".join(to_yaml(document)), Loader) == document


def test_csv_has_a_column_for_each_field_of_any_item() -> None:
    rows = [
        {"name": "a,b", "totals": {"downtime_ms": 5}, "hosts": ["x"], "on": True},
        {"name": "c", "totals": None, "hosts": [], "note": "new\nline"},
    ]
    first, second = csv.DictReader(io.StringIO("\n".join(to_csv({"items": rows}))))
    assert (first["name"], first["totals.downtime_ms"], first["on"]) == ("a,b", "5", "true")
    assert json.loads(first["hosts"]) == ["x"]
    assert (second["totals.downtime_ms"], second["hosts"], second["note"]) == ("", "", "new\nline")
    assert list(to_csv({"items": []})) == []


def test_names_are_what_other_commands_take() -> None:
    rows = [{"name": "web", "uuid": ONE}, {"name": "web", "uuid": TWO}, {"name": "db", "uuid": "x"}]
    assert list(to_names({"items": rows})) == [ONE, TWO, "db"]
    assert list(to_names({"id": ONE, "vm": TWO})) == [ONE]
    # A VM that migrates is listed on both hosts.
    twice = [{"name": "db", "uuid": ONE, "host": host} for host in "ab"]
    assert list(to_names({"items": twice})) == ["db"]


def test_ids_are_as_short_as_they_are_distinct() -> None:
    assert distinct([ONE, ONE]) == ["5f5b1f5e", "5f5b1f5e"]
    assert distinct([ONE, TWO, "t1", ""]) == ["5f5b1f5e-6c0", "5f5b1f5e-6c1", "t1", ""]


@pytest.fixture
def hosts(service: StubService) -> StubService:
    rows = (
        docs.host("rack10", vm_count=3, qemu_version=None),
        docs.host("rack2", vm_count=30),
        docs.host("rack1", vm_count=4, qemu_version="7.2.22"),
    )
    service.on("GET", "/hosts", page(*rows))
    return service


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("name", ["rack1", "rack2", "rack10"]),
        ("-VMS", ["rack2", "rack1", "rack10"]),
        ("vm_count", ["rack10", "rack1", "rack2"]),
        ("qemu", ["rack1", "rack2", "rack10"]),
        ("-qemu-version", ["rack2", "rack1", "rack10"]),
        ("state,-name", ["rack10", "rack2", "rack1"]),
    ],
)
@pytest.mark.usefixtures("hosts")
def test_lists_are_sorted_in_every_format(vmtune: Vmtune, order: str, names: list[str]) -> None:
    ran = vmtune("host", "list", "--sort", order, "-o", "name")
    assert ran.out.split() == names, ran.err
    shown = vmtune("host", "list", "--sort", order, "-o", "json").document
    assert [row["name"] for row in shown["items"]] == names
    lines = vmtune("host", "list", "--sort", order).out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == names


@pytest.mark.usefixtures("hosts")
def test_a_column_that_is_not_there_is_refused_with_one_that_is(vmtune: Vmtune) -> None:
    ran = vmtune("host", "list", "--sort", "memry")
    assert ran.code == 1
    assert "error: --sort: there is no column memry" in ran.err
    assert "did you mean memory?" in ran.err


@pytest.mark.parametrize("way", [("--json",), ("-o", "json"), ("--output=json",), ("-ojson",)])
def test_errors_are_json_however_it_was_asked_for(
    service: StubService, vmtune: Vmtune, way: tuple[str, ...]
) -> None:
    service.on("GET", "/hosts", refusal(403, {"code": "forbidden", "message": "no"}))
    assert json.loads(vmtune("host", "list", *way).err)["errors"][0]["code"] == "forbidden"
    assert json.loads(vmtune("host", "lst", *way).err)["errors"][0]["code"] == "usage"


@pytest.mark.usefixtures("hosts")
def test_yaml_and_csv_print_nothing_for_people(vmtune: Vmtune) -> None:
    document = vmtune("host", "list", "--json").document
    assert yaml.safe_load(vmtune("host", "list", "-o", "yaml").out) == document
    rows = list(csv.DictReader(io.StringIO(vmtune("host", "list", "-o", "csv").out)))
    assert [row["vm_count"] for row in rows] == ["3", "30", "4"]
    assert vmtune("host", "list", "-o", "xml").code == 1
