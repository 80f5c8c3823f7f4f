"""``vmtune pack``: checks files and lists packs, without a service."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.served.api import Api
from tests.unit.client.conftest import Vmtune
from vmtune.packs import shipped


def test_a_good_pack_is_shown_with_what_the_operator_has_to_allow(vmtune: Vmtune) -> None:
    ran = vmtune("pack", "check", "qemu-patched")
    assert ran.code == 0
    assert "qemu_reaper_policy" in ran.out
    assert "stock, fixed, levels, aimd" in ran.out
    assert 'allow_qom = ["x-vmtune", "x-vmtune.pool-hard-limit"' in ran.out
    shown = vmtune("pack", "check", str(shipped()["qemu-live"]), "--json").document
    assert shown["name"] == "qemu-live"
    assert "throttle-group.limits" in shown["needs"]["allow_qom"]


def test_a_bad_pack_is_refused_with_line_and_column(vmtune: Vmtune, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    text = shipped()["qemu-live"].read_text().replace('unit = "s"', 'unit = "weeks"')
    file.write_text(text)
    line = text.split("\n").index('unit = "weeks"') + 1
    ran = vmtune("pack", "check", str(file))
    assert ran.code == 1
    assert f"{file}:{line}:1: 'weeks' is not one of" in ran.err
    assert "tunable.0.unit" in ran.err
    assert vmtune("pack", "check", str(tmp_path / "none.toml")).code == 1


def test_packs_are_listed_with_what_the_settings_say(
    vmtune: Vmtune, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {row["name"]: row for row in vmtune("pack", "list", "--json").document["items"]}
    assert set(rows) == set(shipped())
    assert not any(row["loaded"] for row in rows.values())
    monkeypatch.setenv("VMTUNE_PACKS", "qemu-live")
    monkeypatch.setenv("VMTUNE_ALLOW_QOM", "throttle-group.limits")
    rows = {row["name"]: row for row in vmtune("pack", "list", "--json").document["items"]}
    assert rows["qemu-live"]["loaded"] is True
    lacking = rows["qemu-live"]["not_allowed"]["allow_qom"]
    assert len(lacking) == 3
    assert all(name.endswith(".guest-stats-polling-interval") for name in lacking)
    table = vmtune("pack", "list").out
    assert "qemu-patched" in table
    monkeypatch.setenv("VMTUNE_PACKS", "no-such")
    assert "qemu-live or qemu-patched" in vmtune("pack", "list").err


@pytest.mark.parametrize("text", ["virtio balloon", "a.b.c", "../x", "x.", ".x"])
def test_a_consent_that_names_nothing_is_refused(
    vmtune: Vmtune, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("VMTUNE_ALLOW_QOM", text)
    ran = vmtune("pack", "list")
    assert ran.code == 1
    assert "allow_qom" in ran.err


def test_a_tunable_of_vmtunes_own_has_no_pack(real: Api, vmtune: Vmtune) -> None:
    shown = vmtune("tunables", "multifd", "--json").document
    assert (shown["pack"], shown["read_only"]) == ("", False)
