"""What `make test-releases` keeps for the page of releases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.hosts import releases

OLD = {"older_has": {"qemu": "7.2.22", "libvirt": "9.0.0"}}
NEW = {"newer_has": {"qemu": "10.0.13", "libvirt": "11.3.0"}}
PLAIN = [{"profile": "plain", "to": to, "effective": ["multifd"]} for to in ("newer", "older")]
ALL = ["plan", "hook"]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With what a whole run has seen."""
    made = tmp_path / "releases.json"
    monkeypatch.setattr(releases, "RECORD", made)
    monkeypatch.setenv("RECORD_RELEASES", "1")
    record(migrations={"plain": PLAIN}, stays="machine_not_offered")
    record(transports={"ssh": ALL, "tls": ALL})
    return made


def record(**seen: Any) -> None:
    releases.record("bookworm", "trixie", **{**OLD, **NEW, **seen})


def kept(file: Path) -> dict[str, Any]:
    (pair,) = json.loads(file.read_text())
    return dict(pair)


def test_what_was_not_tried_again_stays(file: Path) -> None:
    record(transports={"tcp": ALL})
    record(migrations={"encrypted": PLAIN[:0]})
    assert kept(file)["migrations"] == PLAIN
    assert kept(file)["failed"] == ["encrypted"]
    assert kept(file)["transports"] == {"ssh": ALL, "tls": ALL, "tcp": ALL}
    assert kept(file)["stays"] == "machine_not_offered"


def test_what_failed_now_does_not_stay(file: Path) -> None:
    record(transports={"ssh": ["plan"]})
    record(migrations={"plain": PLAIN[:1]}, stays="")
    assert kept(file)["transports"] == {"ssh": ["plan"], "tls": ALL}
    assert (kept(file)["migrations"], kept(file)["stays"]) == (PLAIN[:1], "")
    assert kept(file)["failed"] == ["plain"]
    record(migrations={"plain": PLAIN})
    assert kept(file)["failed"] == []


def test_what_other_versions_did_does_not_stay(file: Path) -> None:
    newer = {"newer_has": {"qemu": "10.0.14", "libvirt": "11.3.0"}}
    record(transports={"tls": ALL}, **newer)
    seen = kept(file)
    assert (seen["transports"], seen["migrations"], seen.get("stays")) == ({"tls": ALL}, [], None)


def test_a_run_that_reached_no_host_changes_nothing(file: Path) -> None:
    before = file.read_text()
    releases.record("bookworm", "trixie", transports={"ssh": []})
    assert file.read_text() == before


def test_unasked_nothing_is_kept(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = file.read_text()
    monkeypatch.delenv("RECORD_RELEASES")
    record(transports={"ssh": []})
    assert file.read_text() == before
