"""ansible-test's own checks of the collection."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.hosts.ansible import BIN, Ansible, copied, why_no_ansible

WHY_NOT = why_no_ansible()
pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never"),
]
CHECKS = ("validate-modules", "pep8", "yamllint", "runtime-metadata", "ansible-doc", "no-assert",
          "symlinks", "line-endings", "shebang", "compile", "ignores")  # fmt: skip
PIP = """\
import ensurepip, subprocess, sys
ensurepip.bootstrap()
given = [word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel")]
subprocess.check_call([sys.executable, "-m", "pip", "install", *given])
"""
"""How its environments get pip: its own way downloads a script from a server of Ansible's."""


def test_sanity(tmp_path: Path) -> None:
    ansible = Ansible(tmp_path, {})
    place = copied(tmp_path / "checked")
    cache = tmp_path / ".ansible/test/cache"
    cache.mkdir(parents=True)
    (cache / "get_pip_24_2.py").write_text(PIP)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    tests = [word for check in CHECKS for word in ("--test", check)]
    done = ansible.run(
        "sh", "-c", 'cd "$1" && export HOME="$2" && shift 2 && exec "$@"', "sh", place, tmp_path,
        BIN / "ansible-test", "sanity", "--python", python, "--color", "no", *tests,
    )  # fmt: skip
    said = done.stdout + done.stderr
    print(said)
    assert done.returncode == 0, said[-6000:]
    assert said.count("Running sanity test") >= len(CHECKS)
