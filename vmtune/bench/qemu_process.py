"""The QEMUs that runs start: found, started so that none outlives its run, and how they ended."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from vmtune.errors import SetupError
from vmtune.hypervisor.linux.cpus import on_all

DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
"""Begins a command that the kernel kills when the thread that started it ends."""


def find_qemu(qemu: Path) -> Path:
    """The program of that path or name.

    :raise SetupError: there is none.
    """
    found = shutil.which(qemu)
    if found is None:
        raise SetupError(
            f"there is no program {qemu}",
            field="testbed.qemu",
            code="program_missing",
            remedy="name a QEMU that is installed",
        )
    return Path(found)


def start_qemu(command: Sequence[str], stderr: int) -> subprocess.Popen[bytes]:
    """Start QEMU on all CPUs.

    :param stderr: the descriptor that its errors go to.
    """
    return subprocess.Popen(
        on_all([*DIES_WITH_PARENT, *command]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        # A Ctrl-C is for the benchmark, which ends its QEMUs itself.
        start_new_session=True,
    )


def exit_text(status: int) -> str:
    """``QEMU ended with status 1``, ``QEMU died of SIGSEGV``."""
    if status >= 0:
        return f"QEMU ended with status {status}"
    try:
        return f"QEMU died of {signal.Signals(-status).name}"
    except ValueError:
        return f"QEMU died of signal {-status}"
