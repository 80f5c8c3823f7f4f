"""Measures what updates of a VM's memory map cost on this machine."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from vmtune.errors import SetupError
from vmtune.model.host.srcu_cost import Distribution, SrcuCost

UPDATES = 2000
"""Additions and deletions together."""
MOST_VCPUS = 4
LONGEST_S = 10.0
"""A slow kernel takes 16 ms an update: fewer are measured then."""
_PROGRAM = Path(__file__).with_name("srcu_program.py")
ENDS_WITHIN_S = 20.0
"""How long the program may take beside the updates themselves."""
_KVM = Path("/dev/kvm")


def usual_vcpus() -> int:
    """One for each CPU, at most MOST_VCPUS."""
    return min(MOST_VCPUS, os.cpu_count() or 1)


def config_hz(root: Path = Path("/")) -> int | None:
    """The kernel's ticks a second; None where its configuration cannot be read."""
    release = os.uname().release
    for path in (root / "proc/config.gz", root / f"boot/config-{release}"):
        try:
            text = path.read_bytes()
            text = gzip.decompress(text) if path.suffix == ".gz" else text
        except (OSError, EOFError):
            continue
        if match := re.search(rb"^CONFIG_HZ=(\d{1,5})$", text, re.MULTILINE):
            return int(match[1])
    return None


def measure_srcu(
    vcpus: int | None = None,
    updates: int = UPDATES,
    longest_s: float = LONGEST_S,
    kvm: Path = _KVM,
) -> SrcuCost:
    """Time additions and deletions of a memory slot of a VM of its own. Blocks for some 0.2 s on
    an idle host, for up to *longest_s* on a busy or slow one; its vCPUs spin meanwhile.

    :param vcpus: how many spin; None is :func:`usual_vcpus`.
    :raise SetupError: it cannot be measured here.
    """
    count = usual_vcpus() if vcpus is None else vcpus
    try:
        said = subprocess.run(
            command(count, updates, longest_s, kvm),
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=longest_s + ENDS_WITHIN_S,
        ).stdout
    except subprocess.TimeoutExpired as error:
        raise not_measured(f"it did not end within {error.timeout:g} s") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise not_measured(str(error)) from error
    return cost_of(count, said)


def command(vcpus: int, updates: int, longest_s: float, kvm: Path = _KVM) -> tuple[str, ...]:
    """The program that times updates, with its arguments; :func:`cost_of` reads what it prints."""
    numbers = (updates, vcpus, longest_s)
    return (sys.executable, "-I", str(_PROGRAM), str(kvm), *map(str, numbers))


def cost_of(vcpus: int, said: bytes) -> SrcuCost:
    """What the program printed of a VM with so many vCPUs.

    :raise SetupError: nothing could be timed.
    """
    try:
        answer = json.loads(said)
        asked, why = answer["asked"], answer["why_not"]
        distributions = [
            Distribution.of(times)
            for kind in ("running_ns", "idle_ns")
            for times in answer[kind]
            if asked
        ]
    except (ValueError, KeyError) as error:
        raise not_measured(str(error)) from error
    if not asked:
        raise not_measured(why)
    return SrcuCost(vcpus, *distributions)


def not_measured(why: str) -> SetupError:
    """The error that says that updates cannot be timed here."""
    return SetupError(
        f"updates of memory maps cannot be timed here: {why}",
        code="srcu_not_measured",
        remedy="run it as a user who may use /dev/kvm, on an x86-64 host",
    )
