"""Which pages the guest draws, by its own code, compiled for this machine."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable

import pytest

from vmtune.lab.guest_build import SOURCE

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

Draw = Callable[[int, int, int], list[int]]
DRAWS = 20_000


@pytest.fixture(scope="module")
def draw(tmp_path_factory: pytest.TempPathFactory) -> Draw:
    """Page numbers, by how many, of how many pages and the skew."""
    library = tmp_path_factory.mktemp("guest") / "draw.so"
    subprocess.run(
        [
            *("gcc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"),
            *("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"),
            *("-o", str(library), str(SOURCE / "draw.c")),
        ],
        check=True,
        timeout=60,
    )
    function = ctypes.CDLL(str(library)).draw_page
    function.argtypes = (ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint64, ctypes.c_uint32)
    function.restype = ctypes.c_uint64

    def call(count: int, pages: int, skew: int) -> list[int]:
        state = ctypes.c_uint64(0x9E3779B97F4A7C15)
        return [function(ctypes.byref(state), pages, skew) for _ in range(count)]

    return call


def share_below(drawn: list[int], limit: int) -> float:
    return sum(page < limit for page in drawn) / len(drawn)


@pytest.mark.parametrize(("skew", "first", "share"), [
    (50, 5_000, 0.5), (50, 1_000, 0.1), (80, 2_000, 0.8), (80, 400, 0.64), (90, 1_000, 0.9),
    (99, 100, 0.99),
])  # fmt: skip
def test_of_the_first_pages_it_draws_their_share(
    draw: Draw, skew: int, first: int, share: float
) -> None:
    # Four standard deviations of a share of so many draws are less than this.
    assert share_below(draw(DRAWS, 10_000, skew), first) == pytest.approx(share, abs=0.015)


@pytest.mark.parametrize("skew", [50, 80, 90])
@pytest.mark.parametrize("pages", [1, 2, 3, 50, 101])
def test_each_page_is_drawn_and_none_beyond(draw: Draw, pages: int, skew: int) -> None:
    assert set(draw(DRAWS, pages, skew)) == set(range(pages))
