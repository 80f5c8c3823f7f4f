"""What libvirt knows of emulators, from one lab to the next."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from vmtune.lab.capabilities import kept_in, recall, remember
from vmtune.lab.host import HostPlan, plan_hosts
from vmtune.lab.settings import LabSettings

WITHIN = "cache/qemu/capabilities"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose sockets' paths are short enough, whatever runs the tests."""
    with tempfile.TemporaryDirectory(prefix="vmtune-", dir="/tmp") as folder:
        yield Path(folder)


def _host(folder: Path) -> tuple[HostPlan, LabSettings]:
    settings = LabSettings(folder=folder)
    return plan_hosts(settings)[0], settings


def _knows(host: HostPlan, **answers: str) -> None:
    (host.folder / WITHIN).mkdir(parents=True, exist_ok=True)
    for name, text in answers.items():
        (host.folder / WITHIN / f"{name}.xml").write_text(text)


def _known(host: HostPlan) -> dict[str, str]:
    return {file.stem: file.read_text() for file in (host.folder / WITHIN).iterdir()}


def test_what_one_lab_found_out_the_next_one_knows(short: Path) -> None:
    first, settings = _host(short / "one")
    _knows(first, ab="<qemuCaps>1</qemuCaps>")
    remember(first, settings)
    _knows(first, ab="<qemuCaps>2</qemuCaps>", cd="<qemuCaps/>")
    remember(first, settings)
    second, settings = _host(short / "two")
    recall(second, settings)
    assert _known(second) == {"ab": "<qemuCaps>2</qemuCaps>", "cd": "<qemuCaps/>"}
    assert kept_in(settings).stat().st_mode & 0o777 == 0o700
    assert not list(kept_in(settings).glob(".*"))  # no half of one


def test_another_libvirt_has_answers_of_its_own(short: Path) -> None:
    host, settings = _host(short / "one")
    _knows(host, ab="<qemuCaps/>")
    remember(host, settings)
    other, _ = _host(short / "two")
    recall(other, replace(settings, libvirtd=Path("/opt/libvirt/libvirtd")))
    assert not other.folder.exists()


def test_where_nothing_can_be_kept_labs_still_come_up(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    host, settings = _host(short / "one")
    _knows(host, ab="<qemuCaps/>")
    remember(host, settings)
    recall(host, settings)
    assert _known(host) == {"ab": "<qemuCaps/>"}
