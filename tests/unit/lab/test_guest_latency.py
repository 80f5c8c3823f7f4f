"""The guest's histogram, by its own code compiled for this machine, and how it is read."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.lab.guest_build import SOURCE
from vmtune.lab.guest_io import bin_ticks

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

BINS = 1280
MOST = (1 << 44) - 1
Bin = Callable[[int], int]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    made = tmp_path_factory.mktemp("guest") / "latency.so"
    subprocess.run(
        [
            *("gcc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"),
            *("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"),
            *("-o", str(made), str(SOURCE / "latency.c")),
        ],
        check=True,
        timeout=60,
    )
    return ctypes.CDLL(str(made))


@pytest.fixture(scope="module")
def bin_of(library: ctypes.CDLL) -> Bin:
    library.latency_bin.argtypes = (ctypes.c_uint64,)
    library.latency_bin.restype = ctypes.c_uint32
    return lambda ticks: int(library.latency_bin(ticks))


@given(st.integers(0, MOST))
def test_a_bin_is_found_again(bin_of: Bin, ticks: int) -> None:
    low, high = bin_ticks(bin_of(ticks))
    assert low <= ticks < high
    assert high - low <= max(1, low // 32)


def test_bins_adjoin_and_end_where_the_guest_has_no_more(bin_of: Bin) -> None:
    edges = [bin_ticks(number) for number in range(BINS)]
    assert edges[0][0] == 0
    assert all(low == before[1] for before, (low, _) in pairwise(edges))
    assert bin_of(MOST) == BINS - 1
    assert bin_of((1 << 64) - 1) == BINS - 1


class Latency(ctypes.Structure):
    """struct latency of guest/latency.h."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("requests", "sum", "least", "most")),
        ("bins", ctypes.c_uint64 * BINS),
    )


def test_histograms_are_added_up(library: ctypes.CDLL) -> None:
    one, other, none = Latency(), Latency(), Latency()
    for ticks in (700, 30):
        library.latency_add(ctypes.byref(one), ctypes.c_uint64(ticks))
    library.latency_add(ctypes.byref(other), ctypes.c_uint64(5))
    for each in (other, none):
        library.latency_merge(ctypes.byref(one), ctypes.byref(each))
    assert (one.requests, one.sum, one.least, one.most) == (3, 735, 5, 700)
    assert {n: count for n, count in enumerate(one.bins) if count} == {
        5: 1,
        30: 1,
        next(n for n in range(BINS) if bin_ticks(n)[1] > 700): 1,
    }
