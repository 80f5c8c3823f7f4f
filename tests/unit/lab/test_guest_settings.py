"""The guest's own parser of its command line, compiled for this machine."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from vmtune.lab.guest_build import SOURCE

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

Parse = Callable[[str], tuple[int, int, int] | str]


class Settings(ctypes.Structure):
    """struct settings of guest/settings.h."""

    _fields_ = (
        ("region_bytes", ctypes.c_uint32),
        ("stride_bytes", ctypes.c_uint32),
        ("idle_ms", ctypes.c_uint32),
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

    def call(line: str) -> tuple[int, int, int] | str:
        settings, error = Settings(), SettingsError()
        text = line.encode()
        if function(text, ctypes.byref(settings), ctypes.byref(error)):
            parameter = error.parameter[: error.parameter_length].decode()
            return f"{parameter}: {error.reason.decode()}"
        return settings.region_bytes, settings.stride_bytes, settings.idle_ms

    return call


MIB = 1 << 20


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", (256 * MIB, 4096, 0)),
        ("  region=64M  ", (64 * MIB, 4096, 0)),
        ("region=1g stride=8K idle_ms=250", (1 << 30, 8192, 250)),
        ("region=3G", (3 << 30, 4096, 0)),
        ("region=4294967295", (4294967295, 4096, 0)),
        ("stride=1\tregion=1", (1, 1, 0)),
        ("region=1M region=2M", (2 * MIB, 4096, 0)),
    ],
)
def test_accepted(parse: Parse, line: str, expected: tuple[int, int, int]) -> None:
    assert parse(line) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("region=4G", "region: is 4 GiB or more"),
        ("region=4294967296", "region: is 4 GiB or more"),
        ("region=99999999999999999999", "region: is 4 GiB or more"),
        ("region=", "region: has no number"),
        ("region=M", "region: has no number"),
        ("region", "region: has no value"),
        ("region=64Mi", "region: is no number with a suffix k, M or G"),
        ("region=-1", "region: is no number with a suffix k, M or G"),
        ("region=0", "region: is 0"),
        ("region=1k", "region: is less than stride"),
        ("stride=0", "stride: is 0"),
        ("idle_ms=1k", "idle_ms: is no whole number"),
        ("regoin=1M", "regoin: is not known"),
        ("regions=1M", "regions: is not known"),
        ("=1", ": is not known"),
    ],
)
def test_refused(parse: Parse, line: str, message: str) -> None:
    assert parse(line) == message


def test_source_is_in_the_package() -> None:
    assert (Path(SOURCE) / "Makefile").is_file()
