"""Ansible, with the collection of this checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

COLLECTION = Path(__file__).parents[3] / "packaging/ansible"
BIN = Path(sys.executable).parent
_WITHIN_S = 280

Task = Mapping[str, Any]
Result = dict[str, Any]


class Ansible:
    """Runs plays on this machine, against one service.

    :param folder: where it keeps its own things.
    :param reached: the options that reach the service, for every task.
    """

    def __init__(self, folder: Path, reached: Mapping[str, Any]) -> None:
        self.folder = folder
        self.reached = dict(reached)
        place = folder / "collections/ansible_collections/vmtune"
        place.mkdir(parents=True)
        (place / "vmtune").symlink_to(COLLECTION)

    @property
    def env(self) -> dict[str, str]:
        """Of its programs: nothing of the user's configuration."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ANSIBLE_", "VMTUNE_"))}
        return {
            **kept,
            "PATH": f"{BIN}:{kept['PATH']}",
            "ANSIBLE_COLLECTIONS_PATH": str(self.folder / "collections"),
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
            "LC_ALL": "C.UTF-8",
        }

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a program of Ansible's."""
        return subprocess.run(
            [str(word) for word in command],
            env=self.env,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_WITHIN_S,
        )

    def tasks(self, *given: Task, warns: bool = False) -> list[Result]:
        """What each task of a play returned; one that fails does not end it.

        :param warns: whether Ansible is to warn of something; the test fails if it is otherwise.
        """
        numbered = [
            {**task, "register": f"r{n}", "ignore_errors": True} for n, task in enumerate(given)
        ]
        answers = self.folder / "answers.json"
        listed = ", ".join(f"r{n}" for n in range(len(given)))
        kept = {"content": f"{{{{ [{listed}] | to_json }}}}", "dest": str(answers)}
        play = {
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "module_defaults": {"group/vmtune.vmtune.all": self.reached},
            "tasks": [*numbered, {"ansible.builtin.copy": kept, "check_mode": False}],
        }
        file = self.folder / "play.yml"
        file.write_text(json.dumps([play]))  # JSON is YAML
        done = self.run("ansible-playbook", file)
        assert done.returncode == 0, done.stdout + done.stderr
        said = done.stderr + done.stdout
        assert ("[WARNING]" in said) == warns, said
        results: list[Result] = json.loads(answers.read_text())
        return results

    def inventory(self, **options: Any) -> dict[str, Any]:
        """The inventory as `ansible-inventory --list` has it."""
        plugin = {"plugin": "vmtune.vmtune.inventory", **self.reached, **options}
        file = self.folder / "fleet.vmtune.yml"
        file.write_text(json.dumps(plugin))
        done = self.run("ansible-inventory", "-i", file, "--list")
        assert done.returncode == 0, done.stderr
        listed: dict[str, Any] = json.loads(done.stdout, object_hook=_plain)
        return listed


def _plain(read: dict[str, Any]) -> Any:
    """Without Ansible's mark of a text that is no template."""
    return read["__ansible_unsafe"] if set(read) == {"__ansible_unsafe"} else read


def task(module: str, *, check: bool = False, **options: Any) -> Task:
    """One of the collection's modules, with its differences shown."""
    return {f"vmtune.vmtune.{module}": options, "check_mode": check, "diff": True}


def three(module: str, **options: Any) -> Sequence[Task]:
    """The same in check mode, in earnest, and again."""
    first = task(module, check=True, **options)
    return (first, task(module, **options), task(module, **options))


def changed(results: Sequence[Result]) -> list[bool]:
    """Which changed something; the test fails if one failed."""
    failed = [result.get("msg") for result in results if result.get("failed")]
    assert not failed, failed
    return [result["changed"] for result in results]


def why_no_ansible() -> str:
    """Why it cannot be run here; empty if it can."""
    return "" if (BIN / "ansible-playbook").exists() else "ansible-core is not installed"


def copied(to: Path) -> Path:
    """The collection where ansible-test wants it: in a folder of that name, and no link."""
    place = to / "ansible_collections/vmtune/vmtune"
    shutil.copytree(COLLECTION, place)
    return place
