"""The systemd units: what systemd has against them, and that they say what the service does."""

from __future__ import annotations

import re
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest

from vmtune.client.cli import COMMANDS
from vmtune.config.settings import Settings
from vmtune.config.template import settings_file

PACKAGING = Path(__file__).parents[2] / "packaging"
FOLDER = PACKAGING / "systemd"
PACKAGE_SETTINGS = PACKAGING / "deb" / "settings"
UNITS = sorted(FOLDER.iterdir())
ANALYZE = shutil.which("systemd-analyze")
NEEDS_SYSTEMD = pytest.mark.skipif(not ANALYZE, reason="there is no systemd-analyze here")
MAX_EXPOSED = 2.5  # of 10, as systemd-analyze security counts


def unit(name: str) -> ConfigParser:
    class Unit(ConfigParser):
        def optionxform(self, optionstr: str) -> str:
            return optionstr

    found = Unit(strict=False, interpolation=None, delimiters=("=",))
    found.read(FOLDER / name)
    return found


@pytest.fixture(scope="module")
def runnable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The units, with a command that is there."""
    folder = tmp_path_factory.mktemp("units")
    for path in UNITS:
        text = path.read_text().replace("/usr/bin/vmtune", "/bin/true")
        (folder / path.name).write_text(text)
    return folder


@NEEDS_SYSTEMD
def test_systemd_has_nothing_against_them(runnable: Path) -> None:
    assert ANALYZE
    ran = subprocess.run(
        [ANALYZE, "verify", "--man=no", *(str(runnable / path.name) for path in UNITS)],
        env={"SYSTEMD_UNIT_PATH": f"{runnable}:"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    ours = [line for line in ran.stderr.splitlines() if "vmtune" in line]
    assert ours == []


@NEEDS_SYSTEMD
@pytest.mark.parametrize("name", ["vmtune.service", "vmtune-host.service"])
def test_they_are_hardened(runnable: Path, name: str) -> None:
    assert ANALYZE
    ran = subprocess.run(
        [ANALYZE, "security", "--offline=yes", str(runnable / name)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", ran.stdout)
    assert found, ran.stderr
    assert float(found[1]) <= MAX_EXPOSED, ran.stdout


def test_the_service_has_no_privileges() -> None:
    service = unit("vmtune.service")["Service"]
    assert service["User"] == "vmtune"
    assert service["CapabilityBoundingSet"] == service["AmbientCapabilities"] == ""
    assert service["NoNewPrivileges"] == "yes"
    assert "libvirt" in service["SupplementaryGroups"].split()


def test_socket_and_service_agree() -> None:
    socket = unit("vmtune.socket")["Socket"]
    assert socket["ListenStream"] == str(Settings().socket_path)
    assert socket["SocketMode"] == "0660"
    service = unit("vmtune.service")["Service"]
    assert Path("/var/lib", service["StateDirectory"]) == Settings().state_dir
    text = (FOLDER / "vmtune.service").read_text()
    assert "VMTUNE_" not in text, "a variable would go before the operator's settings file"
    for command in re.findall(r"/usr/bin/vmtune (\w+)", text):
        assert command in COMMANDS


def test_the_settings_of_the_package_suit_the_units(tmp_path: Path) -> None:
    file = tmp_path / "vmtune.toml"
    pairs = (line.partition("=") for line in PACKAGE_SETTINGS.read_text().splitlines())
    file.write_text(settings_file({name: value for name, _, value in pairs}))
    settings = Settings.load(file, {})
    assert settings.socket_group == unit("vmtune.socket")["Socket"]["SocketGroup"]
    runtime = Path("/run", unit("vmtune.service")["Service"]["RuntimeDirectory"])
    assert settings.runtime_dir == runtime
    for folder in (settings.bench_dir, settings.bench_live_dir):
        assert folder.is_relative_to(runtime), "nothing else is writable"
