"""The Debian that the role is tried in: one that boots, without vmtune."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.packages.booted import Booted, booted
from tests.packages.conftest import Root, base, deb
from tests.support.hosts.ansible import BIN, COLLECTION, copied

__all__ = ["base", "deb"]  # fixtures


@pytest.fixture(scope="session")
def debian(base: Path) -> Iterator[Booted]:
    """It has Ansible in /mnt/ansible, the collection in /mnt/collections, the package as
    /mnt/new.deb, and no network."""
    lower = f"{base}/needed/upper:{base}/base"
    Root(lower, base / "bootable", base / "shared").run(
        "apt-get update -q && apt-get install -y -q --no-install-recommends "
        "systemd-sysv dbus python3-apt adduser",
        network=True,
    )
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    subprocess.run(
        [BIN / "uv", "pip", "install", "--quiet", "--python-version", python, "--target",
         base / "shared/ansible", f"ansible-core=={version('ansible-core')}"],
        check=True,
    )  # fmt: skip
    copied(base / "shared/collections")
    assert COLLECTION.exists()
    with booted(f"{base}/bootable/upper:{lower}", base / "booted", base / "shared") as made:
        yield made
