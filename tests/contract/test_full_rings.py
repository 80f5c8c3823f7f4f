"""The reproduction in docs/how-to/full-dirty-rings.md, as it is printed there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.qemus.patched_build import patched
from tests.support.qemus.qemu import CHECKOUT
from vmtune.bench.qemu_process import find_qemu
from vmtune.hypervisor.linux.dirty_ring import aborts_on_short_reset, ask_ring_reset

PAGE = CHECKOUT / "docs/how-to/full-dirty-rings.md"
WHY_NOT = "" if ask_ring_reset().ends_early else "this kernel empties dirty rings completely"
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never")


def said(folder: Path, program: str, seconds: int) -> str:
    """What the page's program says of a QEMU."""
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    script = folder / "reproduction.py"
    script.write_text(text)
    command = [sys.executable, str(script), program, str(seconds)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def test_a_qemu_that_aborts_ends_as_the_page_says_or_lives(tmp_path: Path) -> None:
    """It depends on the moment in which a signal arrives: how often is measured by
    ``ring_survival``, and not tested."""
    program = str(find_qemu(Path("qemu-system-x86_64")))
    if not aborts_on_short_reset(Path(program)):
        pytest.skip("this QEMU does not abort")
    assert said(tmp_path, program, 5) in ("it ended with -6\n", "it lives\n")


@pytest.mark.skipif(bool(patched().why_not), reason=patched().why_not or "never")
def test_the_patched_qemu_lives(tmp_path: Path) -> None:
    assert said(tmp_path, patched().program, 5) == "it lives\n"
