"""Daemons of the lab's hosts, ended and started again while their VMs go on."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.hosts.live import Live, wait_for
from vmtune import lab
from vmtune.errors import LabError
from vmtune.lab.host import HostPlan, plan_hosts

_SPACES = {"mnt": "--mount", "uts": "--uts", "net": "--net"}
"""The namespaces of a host, and nsenter's words for them."""


@contextmanager
def without_libvirtd(it: Live, which: str, ended_by: signal.Signals) -> Iterator[None]:
    """Host a or b with its libvirtd ended by a signal. Afterwards it is started again as it was."""
    plan = plan_hosts(it.settings)["ab".index(which)]
    pid = plan.libvirtd_pid()
    assert pid is not None, "it does not run"
    at = Path(f"/proc/{pid}")
    words = [word.decode() for word in (at / "cmdline").read_bytes().split(b"\0")[:-1]]
    with ExitStack() as held:
        spaces = {name: held.enter_context((at / "ns" / name).open()) for name in _SPACES}
        # A machine's: a mount namespace alone starts in the root beneath.
        root = held.enter_context(_opened(at / "root"))
        os.kill(pid, ended_by)
        wait_for(lambda: not at.exists(), "libvirtd to end")
        try:
            yield
        finally:
            enter = [f"{option}=/proc/self/fd/{spaces[name].fileno()}"
                     for name, option in _SPACES.items()]  # fmt: skip
            enter += [f"--root=/proc/self/fd/{root}", "--wd=/"]
            subprocess.run(
                ["nsenter", *enter, "--", *words],
                pass_fds=[*(each.fileno() for each in spaces.values()), root],
                check=True,
                timeout=60,
            )
            wait_for(lambda: _answers(plan), "libvirtd to answer")


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield number
    finally:
        os.close(number)


def _answers(plan: HostPlan) -> bool:
    try:
        lab.virsh(plan.uri, "version")
    except LabError:
        return False
    return True
