"""Where a run ran: what has to be the same for two runs to be comparable, as one fingerprint.

An environment is JSON, nested by what it is about: ``cpu``, ``kernel``, ``kvm``, ``memory``,
``mitigations``, ``network``, ``qemu``, ``libvirt``, ``sysctls``, ``accelerator``. It holds only
what outlives a reboot. What the machine was doing at the time
is recorded separately (:func:`conditions`). Where QEMU's program is (``qemu.path``) is told, and
makes no difference.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vmtune.bench.machine.hardware import (
    Files,
    known,
    read_cpu,
    read_kernel,
    read_kvm,
    read_memory,
    read_mitigations,
    read_sysctls,
)
from vmtune.bench.machine.network_interface import Interface, in_namespace, interface_to

Environment = Mapping[str, Any]  # any JSON: what is known of the place, by what it is about
_DIGITS = 16
_ANSWERS_WITHIN_S = 10.0
_NONE: Mapping[str, str] = {}
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Subject:
    """The parts of a machine that a run uses.

    :param qemu: the program.
    :param kvm: the guest runs under KVM, not by emulation.
    :param address: where the migration goes; empty for a unix socket.
    :param network_namespace: a file under which the source's network namespace is found;
        None for this process's own.
    :param libvirt: the version of the libvirt that runs the VMs; empty without one.
    """

    qemu: Path
    kvm: bool
    address: str = "127.0.0.1"
    network_namespace: Path | None = None
    libvirt: str = ""


def read_environment(subject: Subject, root: Path = Path("/")) -> Environment:
    """Read this machine's environment. Blocks for some milliseconds.

    :param root: the folder that holds /proc, /sys and /dev.
    """
    if subject.network_namespace is None:
        return _read(subject, root)
    try:
        return in_namespace(subject.network_namespace, lambda: _read(subject, root))
    except OSError:
        return _read(replace(subject, address=""), root) | {"network": {"kind": "unknown"}}


def _read(subject: Subject, root: Path) -> dict[str, Any]:  # any JSON
    files = Files(root)
    interface = interface_to(subject.address) if subject.address else None
    return known(
        {
            "accelerator": "kvm" if subject.kvm else "tcg",
            "cpu": read_cpu(files),
            "kernel": read_kernel(files),
            "kvm": read_kvm(files) if subject.kvm else {},
            "libvirt": subject.libvirt,
            "memory": read_memory(files),
            "mitigations": read_mitigations(files),
            "network": _network(subject.address, interface),
            "qemu": read_qemu(subject.qemu),
            "sysctls": read_sysctls(files),
        }
    )


def _network(address: str, interface: Interface | None) -> dict[str, Any]:  # any JSON
    if not address:
        return {"kind": "unix socket"}
    if interface is None:
        return {"kind": "unknown"}
    return known(
        {
            "kind": "loopback" if interface.loopback else interface.driver or "other",
            # Namespaces and containers name theirs at random; a card keeps its name.
            "interface": interface.name if interface.speed_mbit else None,
            "driver_version": interface.driver_version,
            "firmware": interface.firmware,
            "speed_mbit": interface.speed_mbit,
            "mtu": interface.mtu,
            "offloads": {
                name: "on" if on else "off" for name, on in sorted(interface.offloads.items())
            },
        }
    )


def read_qemu(program: Path) -> dict[str, str]:
    """A QEMU's version in its own words, a digest of the program (two builds may have one version)
    and its path. Empty where there is no such program."""
    try:
        status = program.stat()
    except OSError:
        return {}
    found = dict(_qemu_of(program, status.st_dev, status.st_ino, status.st_mtime_ns))
    return {**found, "path": str(program)} if found else {}


@functools.lru_cache(maxsize=16)
def _qemu_of(program: Path, *_file: int) -> tuple[tuple[str, str], ...]:
    digest = hashlib.sha256()
    said = ""
    try:
        with program.open("rb") as file:
            while chunk := file.read(_MIB):
                digest.update(chunk)
        asked = subprocess.run(
            [str(program), "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWERS_WITHIN_S,
            check=False,
        )
        said = asked.stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return (("version", qemu_version(said)), ("digest", digest.hexdigest()[:_DIGITS]))


def qemu_version(said: str) -> str:
    """``10.0.2 (Debian 1:10.0.2+ds-2)`` of what ``--version`` prints."""
    first = said.strip().partition("\n")[0]
    return first.partition("version ")[2].strip() or first.strip() or "unknown"


def fingerprint(environment: Environment) -> str:
    """16 hexadecimal digits that are the same for environments that are the same; empty for
    an unknown one."""
    if not environment:
        return ""
    compared = {name: _compared(name, value) for name, value in environment.items()}
    canonical = json.dumps(compared, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:_DIGITS]


def _compared(name: str, value: Any) -> Any:  # any JSON
    """*value* without what makes no difference."""
    if name != "qemu" or not isinstance(value, Mapping):
        return value
    return {name: each for name, each in value.items() if name != "path"}


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which two environments differ.

    :param field: its path: ``memory.thp.enabled``.
    :param first: the value in the one; None if unknown. Likewise *second*.
    """

    field: str
    first: Any  # any JSON but an object
    second: Any


def differences(first: Environment, second: Environment) -> tuple[Difference, ...]:
    """In what two environments differ, in the order of the fields."""
    one, two = dict(_leaves(first)), dict(_leaves(second))
    return tuple(
        Difference(field, one.get(field), two.get(field))
        for field in sorted(one.keys() | two.keys())
        if not _same(one.get(field), two.get(field))
    )


def _same(one: object, two: object) -> bool:
    """As JSON has it: 1, 1.0 and true are three things."""
    return json.dumps(one) == json.dumps(two)


def _leaves(branch: Mapping[str, Any], path: str | None = None) -> Iterator[tuple[str, Any]]:
    for name, whole in branch.items():
        value = _compared(name, whole) if path is None else whole
        field = name if path is None else f"{path}.{name}"
        if isinstance(value, Mapping):
            yield from _leaves(value, field)
        else:
            yield field, value


def conditions(root: Path = Path("/")) -> dict[str, float]:
    """What the machine is doing right now: of the moment, and so not in the fingerprint."""
    files = Files(root)
    found: dict[str, float] = {}
    load = files.text("proc/loadavg").split()
    for name, text in zip(("load_1min", "load_5min"), load, strict=False):
        found.update(_number(name, text))
    for line in files.text("proc/meminfo").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            found.update(_number("memory_available_bytes", value.split()[0], 1024))
    # Share of the last ten seconds in which something waited for a CPU.
    for word in files.text("proc/pressure/cpu").partition("\n")[0].split():
        name, _, value = word.partition("=")
        if name == "avg10":
            found.update(_number("cpu_pressure_percent", value))
    return found


def _number(name: str, text: str, factor: int = 1) -> dict[str, float]:
    try:
        return {name: float(text) * factor}
    except ValueError:
        return {}


def host_name() -> str:
    """This machine's name."""
    return os.uname().nodename


def said_version(command: Sequence[str], libraries: Mapping[str, str] = _NONE) -> str:
    """The last word that a program says when asked for its version; empty where it says none."""
    try:
        asked = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWERS_WITHIN_S,
            env={**os.environ, **libraries},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.strip().rpartition(" ")[2]
