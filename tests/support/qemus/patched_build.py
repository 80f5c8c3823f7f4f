"""The QEMU that ``make qemu-patched`` builds, where somebody has built it."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from tests.support.qemus.qemu import Build

RELEASE = "10.0.13"
"""Of the QEMU that is patched, as in vmtune/packs/qemu-10/build.sh."""
TYPE = "x-vmtune"
OBJECT = "/objects/vmtune"


def place() -> Path:
    """Where it is built: the same as in vmtune/packs/qemu-10/build.sh."""
    named = os.environ.get("PATCHED_QEMU")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "vmtune/qemu-patched"


@functools.cache
def unpatched() -> Build:
    """The same build without the patch."""
    folder = place() / "unpatched"
    program = folder / "bin/qemu-system-x86_64"
    label = f"qemu-{RELEASE}-unpatched"
    if not (folder / "built").is_file() or not os.access(program, os.X_OK):
        why_not = f"there is no QEMU in {folder}: run make qemu-patched UNPATCHED=1"
        return Build(label, "", why_not)
    return Build(label, str(program))


@functools.cache
def patched() -> Build:
    """The patched QEMU."""
    folder = place()
    program = folder / "bin/qemu-system-x86_64"
    label = f"qemu-{RELEASE}-patched"
    if not (folder / "built").is_file() or not os.access(program, os.X_OK):
        return Build(label, "", f"there is no patched QEMU in {folder}: run make qemu-patched")
    return Build(label, str(program))


def built_of() -> list[str]:
    """What the patched and the unpatched one were built of, as build.sh notes; empty for none."""
    notes = (place() / "built", place() / "unpatched/built")
    return [note.read_text().strip() if note.is_file() else "" for note in notes]
