"""Nova's libvirt driver on the lab's hosts: the newest of PyPI's, and Debian's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.support.hosts.live import Live
from vmtune import lab

CHECKOUT = Path(__file__).parents[3]
CACHE = Path(os.environ.get("VMTUNE_CACHE", CHECKOUT / ".cache"))
PROGRAM = "tests/nova/nova_program.py"
NEWEST = "34.0.0"
"""Nova 2026.2, of PyPI: the newest for this Python."""
NAMESPACE = "http://openstack.org/xmlns/libvirt/nova/1.1"
_STARTS_WITHIN_S, _ANSWERS_WITHIN_S = 180.0, 240.0
_IN_ROOT = """
for folder in dev run; do mount --rbind "/$folder" "$1/$folder"; done
mount -t proc proc "$1/proc"
mkdir -p "$1/checkout"
mount --bind "$2" "$1/checkout"
exec chroot "$1" /usr/bin/python3 "/checkout/$3" "$4"
"""

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Nova:
    """One Nova.

    :param name: and its version.
    :param command: runs its Python with the program and one argument behind it.
    """

    name: str
    command: tuple[str, ...]
    in_root: Path | None = None

    def of(self, uri: str) -> list[str]:
        """The command of its driver for the host at *uri*."""
        if self.in_root is None:
            return [*self.command, str(CHECKOUT / PROGRAM), uri]
        return [*self.command, str(self.in_root), str(CHECKOUT), PROGRAM, uri]


def newest_nova() -> Nova:
    """PyPI's, in an environment of its own."""
    folder = CACHE / "nova-pypi"
    python = folder / "env/bin/python"
    if not (folder / ".complete").exists():
        uv = Path(sys.executable).parent / "uv"
        subprocess.run([uv, "venv", "--quiet", "--allow-existing", folder / "env"], check=True)
        install = [uv, "pip", "install", "--quiet", "--python", python]
        subprocess.run(
            [*install, f"nova=={NEWEST}", f"libvirt-python=={version('libvirt-python')}"],
            check=True,
        )
        (folder / ".complete").touch()
    return Nova(f"Nova {NEWEST} of PyPI", (str(python),))


def debians_nova() -> Nova:
    """Debian 12's nova-compute, in an empty Debian."""
    folder, complete = CACHE / "nova-debian", CACHE / "nova-debian.complete"
    if not complete.exists():
        script = CHECKOUT / "packaging/deb/root.sh"
        subprocess.run(["rm", "-rf", "--one-file-system", folder], check=True)
        packages = ("nova-compute", "python3-nova", "python3-libvirt")
        subprocess.run(["sh", script, "bookworm", folder, *packages], check=True)
        complete.touch()
    query = ["dpkg-query", f"--admindir={folder}/var/lib/dpkg", "-W", "-f", "${Version}"]
    said = subprocess.run([*query, "python3-nova"], capture_output=True, text=True, check=True)
    spaces = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", _IN_ROOT, "sh")
    return Nova(f"Nova {said.stdout} of Debian 12", spaces, folder)


class Compute:
    """The driver of one host at work, as in nova-compute."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log
        self._owed = 1  # that it is ready

    def order(self, it: Live, vm: lab.LabVm, to: str, then: str = "", **given: Any) -> None:
        """Have it migrate the VM to host *to*."""
        while self._owed:  # a test that failed has not waited for it
            self.answer()
        settings = it.settings
        address = settings.address_a if to == "a" else settings.address_b
        order = {"dest": address.partition("/")[0], "vm": vm.uuid, "memory_mb": 128, **given}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({**order, "then": then}) + "\n")
        self._process.stdin.flush()
        self._owed += 1

    def answer(self) -> Result:
        """How what was ordered has ended."""
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            if line.startswith("{"):
                found: Result = json.loads(line)
                self._owed -= 1
                return found
        raise AssertionError(self._log.read_text()[-4000:])

    def migrate(self, it: Live, vm: lab.LabVm, to: str, then: str = "", **given: Any) -> Result:
        """Have it migrate the VM, and wait for the end."""
        self.order(it, vm, to, then, **given)
        return self.answer()


@contextmanager
def computes(nova: Nova, it: Live, folder: Path) -> Iterator[dict[str, Compute]]:
    """The drivers of both hosts, by the host's name in the service."""
    made: dict[str, Compute] = {}
    with ExitStack() as open_ones:
        for name in "ab":
            log = folder / f"nova-{name}.log"
            process = open_ones.enter_context(
                subprocess.Popen(
                    nova.of(it.host(name).uri),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=open_ones.enter_context(log.open("w")),
                    text=True,
                )
            )
            open_ones.callback(process.kill)
            made[name] = Compute(process, log)
        for compute in made.values():
            assert compute.answer() == {"ready": True}
        yield made


def mark_as_novas(it: Live, vm: lab.LabVm, host: str = "a") -> None:
    """Write into the VM's metadata what Nova writes when it makes a VM."""
    text = "<instance><package version='34.0.0'/><name>instance</name></instance>"
    lab.virsh(
        it.host(host).uri, "metadata", vm.name, "--uri", NAMESPACE, "--key", "nova",
        "--set", text, "--live", "--config",
    )  # fmt: skip


def until_migrating(it: Live, vm: lab.LabVm, host: str) -> None:
    """Wait until libvirt says that the VM's job is a migration that sends."""
    deadline = time.monotonic() + _STARTS_WITHIN_S
    while "Data processed" not in lab.virsh(it.host(host).uri, "domjobinfo", vm.name):
        assert time.monotonic() < deadline
        time.sleep(0.05)
