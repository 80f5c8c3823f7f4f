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
_ENDS_WITHIN_S = 20.0


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
    kvm: Path = Path("/dev/kvm"),
) -> SrcuCost:
    """Time additions and deletions of a memory slot of a VM of its own. Blocks for some 0.2 s on
    an idle host, for up to *longest_s* on a busy or slow one; its vCPUs spin meanwhile.

    :param vcpus: how many spin; None is :func:`usual_vcpus`.
    :raise SetupError: it cannot be measured here.
    """
    count = usual_vcpus() if vcpus is None else vcpus
    try:
        said = subprocess.run(
            [sys.executable, "-I", str(_PROGRAM), str(kvm), *map(str, (updates, count, longest_s))],
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=longest_s + _ENDS_WITHIN_S,
        ).stdout
        answer = json.loads(said)
        asked, why = answer["asked"], answer["why_not"]
        if asked:
            distributions = [
                Distribution.of(times)
                for kind in ("running_ns", "idle_ns")
                for times in answer[kind]
            ]
    except subprocess.TimeoutExpired as error:
        raise _cannot(f"it did not end within {error.timeout:g} s") from error
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        raise _cannot(str(error)) from error
    if not asked:
        raise _cannot(why)
    return SrcuCost(count, *distributions)


def _cannot(why: str) -> SetupError:
    return SetupError(
        f"updates of memory maps cannot be timed here: {why}",
        code="srcu_not_measured",
        remedy="run it as a user who may use /dev/kvm, on an x86-64 host",
    )
