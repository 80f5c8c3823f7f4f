"""TUNABLE=VALUE arguments and profile files."""

from __future__ import annotations

from pathlib import Path

import pytest

from vmtune.client.values import parse_assignments, read_file
from vmtune.errors import InvalidInput


def test_assignments_keep_what_was_written() -> None:
    given = parse_assignments(["multifd=on", "max_bandwidth_bytes_per_s=10Gbit/s", "x=a=b"])
    assert given == {"multifd": "on", "max_bandwidth_bytes_per_s": "10Gbit/s", "x": "a=b"}


def test_a_trailing_dash_unsets_only_where_that_is_expected() -> None:
    assert parse_assignments(["multifd-", "a=-"], unset=True) == {"multifd": None, "a": "-"}
    with pytest.raises(InvalidInput):
        parse_assignments(["multifd-"])


@pytest.mark.parametrize("argument", ["multifd", "=on", "multifd=", "", " =1", "-"])
def test_each_malformed_argument_is_named(argument: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_assignments([argument, "ok=1", "nonsense"], unset=True)
    fields = [problem.field for problem in caught.value.problems]
    assert fields == [argument or "TUNABLE=VALUE", "nonsense"]
    assert all("TUNABLE-" in problem.remedy for problem in caught.value.problems)


def test_a_tunable_given_twice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="multifd: is given twice"):
        parse_assignments(["multifd=on", "multifd-"], unset=True)


def test_files_of_both_kinds(tmp_path: Path) -> None:
    toml, json = tmp_path / "p.toml", tmp_path / "p.json"
    toml.write_text('note = "n"\n[values]\nmultifd = true\nx = "64Mi"\n')
    json.write_text('{"note": "n", "values": {"multifd": true, "x": "64Mi"}}')
    wanted = {"note": "n", "values": {"multifd": True, "x": "64Mi"}}
    assert read_file(toml) == read_file(json) == wanted


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("p.toml", b"[values", "is not valid"),
        ("p.json", b"{", "is not valid"),
        ("p.json", b"\xff", "is not valid"),
        ("p.json", b"[]", "is not an object"),
        ("p.yaml", b"values:", "has neither the suffix .toml nor .json"),
        ("p.toml", b"multifd = true", "has no \\[values\\] table"),
        ("p.toml", b"vals = 1\n[values]", "did you mean values"),
        ("p.toml", b"note = 1\n[values]", "note is not text"),
        ("p.toml", b"[values]\nx = [1]", "x: expected a number"),
        ("p.toml", b"[values]\nx = 1.5", "x: expected a number"),
        ("p.toml", b" " * (1 << 20) + b"\n", "larger than 1 MiB"),
    ],
)
def test_a_bad_file_is_named_with_the_reason(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=reason) as caught:
        read_file(path)
    assert caught.value.problems[0].field == str(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        read_file(tmp_path / "none.toml")
