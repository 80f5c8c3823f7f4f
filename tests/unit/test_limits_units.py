"""The root part of raising the host's limits agrees with the service about where things are."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from vmtune.api.wiring.limits import WISHES
from vmtune.client.commands.hosts.host import host
from vmtune.config.settings import Settings
from vmtune.hypervisor.linux.sysctl import SYSCTL_D
from vmtune.hypervisor.linux.sysctl_unit import ROOT_JOURNAL

FOLDER = Path(__file__).parents[2] / "packaging" / "systemd"
SERVICE = (FOLDER / "vmtune-limits.service").read_text()
PATH = (FOLDER / "vmtune-limits.path").read_text()
ANALYZE = shutil.which("systemd-analyze")
MAX_EXPOSED = 2.5  # of 10, as systemd-analyze security counts


def settings(text: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


def test_the_path_unit_watches_what_the_service_writes() -> None:
    watched = str(Settings().state_dir / WISHES)
    assert settings(PATH)["PathChanged"] == watched
    assert settings(PATH)["Unit"] == "vmtune-limits.service"
    assert settings(SERVICE)["ExecStart"].split()[-1] == watched


def test_the_root_unit_runs_a_command_that_there_is() -> None:
    _, group, command, _ = settings(SERVICE)["ExecStart"].split()
    assert group == "host"
    found = host.get_command(click.Context(host), command)
    assert found is not None
    assert found.hidden


def test_its_folders_are_the_only_ones_it_may_write() -> None:
    found = settings(SERVICE)
    assert Path("/var/lib", found["StateDirectory"]) == ROOT_JOURNAL.parent
    assert found["StateDirectoryMode"] == "0755", "the service has to read the journal"
    assert (found["ProtectSystem"], found["ReadWritePaths"]) == ("strict", str(SYSCTL_D))


@pytest.mark.skipif(not ANALYZE, reason="there is no systemd-analyze here")
def test_it_is_hardened(tmp_path: Path) -> None:
    assert ANALYZE
    (tmp_path / "vmtune-limits.service").write_text(SERVICE.replace("/usr/bin/vmtune", "/bin/true"))
    ran = subprocess.run(
        [ANALYZE, "security", "--offline=yes", str(tmp_path / "vmtune-limits.service")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", ran.stdout)
    assert found, ran.stderr
    assert float(found[1]) <= MAX_EXPOSED, ran.stdout
