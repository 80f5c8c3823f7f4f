"""The Ansible collection against the rest of the checkout, and one play. `make test-ansible` tries
all of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from structlog.testing import capture_logs

from tests.support.hosts.ansible import COLLECTION, Ansible, changed, task, three, why_no_ansible
from tests.support.served.served_api import served_api
from vmtune import __version__

WHY_NOT = why_no_ansible()


@pytest.mark.integration
@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never")
def test_a_play_describes_a_profile(tmp_path: Path) -> None:
    with capture_logs(), served_api(tmp_path, tmp_path / "s.sock"):
        ansible = Ansible(tmp_path, {"socket": str(tmp_path / "s.sock")})
        wrong = task("profile", name="x", values={"multifd_chanels": 4})
        *made, refused = ansible.tasks(*three("profile", name="x", values={"multifd": True}), wrong)
        assert changed(made) == [True, True, False]
        assert "multifd_channels" in refused["msg"]
        assert ansible.inventory()["vmtune_hosts"]["hosts"] == ["a", "b"]


def test_the_collection_agrees_with_the_checkout() -> None:
    galaxy = yaml.safe_load((COLLECTION / "galaxy.yml").read_text())
    assert galaxy["version"] == __version__
    modules = {path.stem for path in (COLLECTION / "plugins/modules").glob("*.py")}
    group = yaml.safe_load((COLLECTION / "meta/runtime.yml").read_text())["action_groups"]["all"]
    assert set(group) == {f"vmtune.vmtune.{name}" for name in modules}
    defaults = yaml.safe_load((COLLECTION / "roles/service/defaults/main.yml").read_text())
    packaged = (COLLECTION.parent / "deb/settings").read_text().split()
    assert defaults["vmtune_package_settings"] == dict(line.split("=", 1) for line in packaged)
