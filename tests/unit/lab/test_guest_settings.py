"""The guest's own parser of its command line, compiled for this machine."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given

from tests.support.examples.workloads import workloads
from vmtune.lab.guest_build import SOURCE
from vmtune.model.guest_io import GuestLoad
from vmtune.model.workload import GUEST_NAMES, Workload

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

Parse = Callable[[str], dict[str, int] | str]
DEFAULTS = {
    "region_bytes": 256 << 20,
    "stride_bytes": 4096,
    "idle_ms": 0,
    "dirty_mb": 0,
    "zero_percent": 0,
    "random_percent": 0,
    "beat_ms": 0,
    "check": 0,
    "ring": 0,
    "skew_percent": 0,
    "io_depth": 0,
    "io_jobs": 1,
    "io_block_bytes": 4096,
    "io_write_percent": 0,
    "io_sequential": 0,
    "io_ramp_ms": 0,
    "io_ms": 1000,
    "io_wait": 0,
    "io_check": 0,
    "remaps": 0,
}


class Settings(ctypes.Structure):
    """struct settings of guest/settings.h."""

    _fields_ = tuple(
        (name, ctypes.c_uint64 if name == "region_bytes" else ctypes.c_uint32) for name in DEFAULTS
    )


class SettingsError(ctypes.Structure):
    """struct settings_error of guest/settings.h."""

    _fields_ = (
        ("parameter", ctypes.c_char_p),
        ("parameter_length", ctypes.c_uint32),
        ("reason", ctypes.c_char_p),
    )


@pytest.fixture(scope="module")
def parse(tmp_path_factory: pytest.TempPathFactory) -> Parse:
    library = tmp_path_factory.mktemp("guest") / "settings.so"
    subprocess.run(
        [
            *("gcc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"),
            *("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"),
            *("-o", str(library), str(SOURCE / "settings.c")),
        ],
        check=True,
        timeout=60,
    )
    function = ctypes.CDLL(str(library)).settings_parse

    def call(line: str) -> dict[str, int] | str:
        settings, error = Settings(), SettingsError()
        text = line.encode()
        if function(text, ctypes.byref(settings), ctypes.byref(error)):
            parameter = error.parameter[: error.parameter_length].decode()
            return f"{parameter}: {error.reason.decode()}"
        return {name: getattr(settings, name) for name in DEFAULTS}

    return call


MIB = 1 << 20


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("", {}),
        ("  region=64M  ", {"region_bytes": 64 * MIB}),
        (
            "region=1g stride=8K idle_ms=250",
            {"region_bytes": 1 << 30, "stride_bytes": 8192, "idle_ms": 250},
        ),
        ("region=3G", {"region_bytes": 3 << 30}),
        ("region=4294967296", {"region_bytes": 1 << 32}),
        ("region=255G", {"region_bytes": 255 << 30}),
        ("region=274877906943", {"region_bytes": (256 << 30) - 1}),
        ("stride=1\tregion=1", {"region_bytes": 1, "stride_bytes": 1}),
        ("region=1M region=2M", {"region_bytes": 2 * MIB}),
        ("skew=80", {"skew_percent": 80}),
        ("remaps=4500", {"remaps": 4500}),
        ("dirty_mb=1000000 beat_ms=5 ring=3", {"dirty_mb": 1_000_000, "beat_ms": 5, "ring": 3}),
        ("zero=60 random=40", {"zero_percent": 60, "random_percent": 40}),
        ("region=1M stride=16 check=1", {"region_bytes": MIB, "stride_bytes": 16, "check": 1}),
    ],
)
def test_accepted(parse: Parse, line: str, changed: dict[str, int]) -> None:
    assert parse(line) == DEFAULTS | changed


@given(workloads())
def test_any_workload_is_accepted_as_it_is(parse: Parse, workload: Workload) -> None:
    values = (getattr(workload, name) for name in GUEST_NAMES.values())
    assert parse(workload.command_line()) == DEFAULTS | dict(
        zip(list(DEFAULTS)[: len(GUEST_NAMES)], values, strict=True)
    )


def test_a_load_of_disks_is_accepted_as_it_is(parse: Parse) -> None:
    load = GuestLoad(
        depth=64, jobs=16, block_bytes=128 << 10, write_percent=50, sequential=True, ramp_ms=2000,
        run_ms=10_000, interrupts=True, check=True, beat_ms=250,
    )  # fmt: skip
    assert parse(load.command_line()) == DEFAULTS | {
        "io_depth": 64,
        "io_jobs": 16,
        "io_block_bytes": 128 << 10,
        "io_write_percent": 50,
        "io_sequential": 1,
        "io_ramp_ms": 2000,
        "io_ms": 10_000,
        "io_wait": 1,
        "io_check": 1,
        "beat_ms": 250,
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("region=256G", "region: is 256 GiB or more"),
        ("region=274877906944", "region: is 256 GiB or more"),
        ("region=99999999999999999999", "region: is 256 GiB or more"),
        ("stride=4G", "stride: is 4 GiB or more"),
        ("idle_ms=4294967296", "idle_ms: is 4 GiB or more"),
        ("region=", "region: has no number"),
        ("region=M", "region: has no number"),
        ("region", "region: has no value"),
        ("region=64Mi", "region: is no number with a suffix k, M or G"),
        ("region=-1", "region: is no number with a suffix k, M or G"),
        ("region=0", "region: is 0"),
        ("region=1k", "region: is less than stride"),
        ("stride=0", "stride: is 0"),
        ("idle_ms=1k", "idle_ms: is no whole number"),
        ("dirty_mb=1000001", "dirty_mb: is more than 1000000"),
        ("dirty_mb=1M", "dirty_mb: is no whole number"),
        ("zero=101", "zero: is more than 100"),
        ("zero=60 random=41", "random: is more than zero leaves of 100"),
        ("check=2", "check: is neither 0 nor 1"),
        ("skew=49", "skew: is neither 0 nor 50 to 99"),
        ("skew=100", "skew: is neither 0 nor 50 to 99"),
        ("skew=80 stride=8192", "skew: needs a stride that divides 4096"),
        ("skew=80 check=1", "skew: does not go with check"),
        ("check=1 stride=12", "check: needs a stride and a region in multiples of 8"),
        ("check=1 region=65537", "check: needs a stride and a region in multiples of 8"),
        ("check=1 zero=1", "check: does not go with zero or random"),
        ("check=1 random=1", "check: does not go with zero or random"),
        ("ring=1", "ring: is neither 0 nor 3"),
        ("io_depth=1025", "io_depth: is more than 1024"),
        ("io_jobs=0", "io_jobs: is not from 1 to 256"),
        ("io_jobs=257", "io_jobs: is not from 1 to 256"),
        ("io_block=1000", "io_block: is no multiple of 512 up to 32M"),
        ("io_block=33M", "io_block: is no multiple of 512 up to 32M"),
        ("io_write=101", "io_write: is more than 100"),
        ("io_sequential=2", "io_sequential: is neither 0 nor 1"),
        ("io_ms=0", "io_ms: is not from 1 to 3600000"),
        ("io_ramp_ms=3600001", "io_ramp_ms: is more than 3600000"),
        ("io_wait=2", "io_wait: is neither 0 nor 1"),
        ("io_check=2", "io_check: is neither 0 nor 1"),
        ("regoin=1M", "regoin: is not known"),
        ("regions=1M", "regions: is not known"),
        ("=1", ": is not known"),
    ],
)
def test_refused(parse: Parse, line: str, message: str) -> None:
    assert parse(line) == message


def test_source_is_in_the_package() -> None:
    assert (Path(SOURCE) / "Makefile").is_file()
