"""Other programs: are they there, and run one with a time limit."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from vmtune.errors import LabError, Problem

BOOTSTRAP = Path(__file__).parent / "bootstrap.sh"
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin", "/usr/bin", "/bin"))
_PACKAGES = {
    "curl": "curl",
    "ip": "iproute2",
    "unshare": "util-linux",
    "mount": "mount",
    "umount": "mount",
    "hostname": "hostname",
    "sh": "dash",
    "virsh": "libvirt-clients",
    "libvirtd": "libvirt-daemon-system",
    "qemu-system-x86_64": "qemu-system-x86",
    "make": "make",
    "gcc": "gcc",
    "ld": "binutils",
    "fio": "fio",
    "setpriv": "util-linux",
    "nsenter": "util-linux",
    "pivot_root": "util-linux",
    "openssl": "openssl",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
    "dbus-daemon": "dbus-daemon",
    "saslpasswd2": "sasl2-bin",
    "polkitd": "polkitd",
}


def require_programs(*programs: str | Path) -> None:
    """Make sure that programs, by name or by path, can be run.

    :raise LabError: with one problem for each that is missing.
    """
    problems = []
    for program in programs:
        if shutil.which(str(program), path=_PATH) is None:
            package = _PACKAGES.get(Path(program).name)
            remedy = f"install the package {package}, or run {BOOTSTRAP}" if package else ""
            problems.append(Problem("", "program_missing", f"{program} is not installed", remedy))
    if problems:
        raise LabError("programs are missing", problems=problems)


def run(
    command: Sequence[str],
    *,
    doing: str,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    keeps: int | None = None,
) -> str:
    """Run a program to its end and return what it wrote.

    :param doing: what for, to finish the sentence "could not ...".
    :param keeps: a descriptor that it holds open as well, until it ends.
    :raise LabError: it is missing, failed or took longer than ``timeout_s``.
    """
    try:
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            pass_fds=() if keeps is None else (keeps,),
            env={**os.environ, "PATH": _PATH, "LC_ALL": "C", **(env or {})},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LabError(
            f"could not {doing}: {command[0]} did not end within {timeout_s:g} s", code="timeout"
        ) from None
    except OSError as error:
        raise LabError(f"could not {doing}: {command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        reason = "; ".join(said[-3:]) or f"{command[0]} ended with status {done.returncode}"
        raise LabError(f"could not {doing}: {reason}")
    return done.stdout
