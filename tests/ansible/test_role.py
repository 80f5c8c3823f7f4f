"""The role installs and configures the service in a Debian that boots. The tests are of its stages,
in their order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.packages.booted import Booted
from tests.support.hosts.ansible import why_no_ansible

WHY_NOT = why_no_ansible()
pytestmark = [
    pytest.mark.timeout(1800, func_only=True),
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never"),
]


def play(debian: Booted, *options: str, fails: bool = False, **variables: Any) -> str:
    """What Ansible says, run in it."""
    role = {"role": "vmtune.vmtune.service", "vmtune_package_file": "/mnt/new.deb", **variables}
    site = [{"hosts": "localhost", "connection": "local", "roles": [role]}]
    return debian.run(
        f"""cat >/root/site.yml <<'END'
{json.dumps(site)}
END
export PYTHONPATH=/mnt/ansible ANSIBLE_COLLECTIONS_PATH=/mnt/collections
export ANSIBLE_PYTHON_INTERPRETER=/usr/bin/python3
python3 /mnt/ansible/bin/ansible-playbook {" ".join(options)} /root/site.yml""",
        fails=fails,
        within_s=900,
    )


def test_it_installs_and_starts_the_service(debian: Booted) -> None:
    debian.run("useradd --create-home alice")
    said = play(debian, vmtune_members=["alice"], vmtune_settings={"listen_port": 0})
    assert "failed=0" in said
    assert "status:           ok" in debian.run("runuser -u alice -- vmtune health")
    assert "listen_port = 0" in debian.run("cat /etc/vmtune/vmtune.toml")
    for unit in ("vmtune.socket", "vmtune.service"):
        assert debian.shown(unit, "ActiveState", "UnitFileState") == {
            "ActiveState": "active",
            "UnitFileState": "enabled",
        }


def test_again_nothing_changes(debian: Booted) -> None:
    before = debian.shown("vmtune", "MainPID")
    said = play(debian, vmtune_members=["alice"], vmtune_settings={"listen_port": 0})
    assert "changed=0" in said
    assert debian.shown("vmtune", "MainPID") == before


def test_check_mode_shows_a_change_and_makes_none(debian: Booted) -> None:
    roles = {"oidc": {"issuer": "https://id.example", "roles": {"admins": ["admin"]}}}
    said = play(debian, "--check", "--diff", vmtune_settings={"sample_hz": 5, **roles})
    assert "+sample_hz = 5" in said
    assert '+roles = {admins = ["admin"]}' in said
    assert "sample_hz" not in debian.run("cat /etc/vmtune/vmtune.toml")


def test_a_changed_setting_restarts_it(debian: Booted) -> None:
    before = debian.shown("vmtune", "MainPID")
    assert "failed=0" in play(debian, vmtune_settings={"listen_port": 0, "sample_hz": 5})
    assert debian.shown("vmtune", "MainPID") != before
    assert "status:           ok" in debian.run("vmtune health")


def test_settings_with_which_it_does_not_start_are_taken_back(debian: Booted) -> None:
    said = play(debian, fails=True, vmtune_settings={"listen_port": "many"})
    assert "listen_port" in said
    assert "status:           ok" in debian.run("vmtune health")
    assert "sample_hz = 5" in debian.run("cat /etc/vmtune/vmtune.toml")
