"""Asking a QEMU what it can do, with real ones."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from tests.support.examples import facts
from tests.support.qemus.qemu import Build, builds
from vmtune.bench.migration.capabilities import look
from vmtune.bench.migration.families import SCENARIOS
from vmtune.bench.migration.order import DirectTestbed
from vmtune.bench.migration.scenarios import BenchHosts, why_not
from vmtune.errors import SetupError

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("build", builds(), ids=lambda build: build.label)
async def test_a_real_qemu_says_what_it_lacks(build: Build) -> None:
    if build.why_not:
        pytest.skip(build.why_not)
    seen = await look(DirectTestbed(Path(build.program)), kvm=True)
    assert str(seen.qemu.qemu) == build.label.removeprefix("qemu-")
    told = facts.vm(seen.qemu.qemu, may_lock_memory=seen.qemu.may_lock_memory)
    expected = BenchHosts(seen.host, seen.destination, told, kvm=True)
    for name, scenario in SCENARIOS.items():
        if "compression" not in name:  # depends on the build
            assert why_not(scenario, seen) == why_not(scenario, expected), name


async def test_kvm_can_be_switched_off() -> None:
    build = builds()[0]
    if build.why_not:
        pytest.skip(build.why_not)
    seen = await look(DirectTestbed(Path(build.program)), kvm=False)
    assert not seen.kvm and seen.why_no_kvm


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        (None, "no_qemu", "No such file"),
        ("#!/bin/sh\necho 'the firmware is gone' >&2\nexit 1\n", "qemu_silent", "firmware is gone"),
    ],
)
async def test_a_program_that_is_no_qemu_is_told(
    tmp_path: Path, script: str | None, code: str, said: str
) -> None:
    program = tmp_path / "qemu"
    if script is not None:
        program.write_text(script)
        program.chmod(0o755)
    with pytest.raises(SetupError, match=said) as caught:
        await look(DirectTestbed(program))
    assert caught.value.problems[0].code == code
    assert caught.value.problems[0].remedy


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = builds()[0]
    if build.why_not:
        pytest.skip(build.why_not)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    asyncio.run(look(DirectTestbed(Path(build.program))))
    assert list(tmp_path.iterdir()) == []
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(tmp_path) not in listed.stdout
