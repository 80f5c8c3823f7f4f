"""The patch's reaper policies decide as vmtune's own: its functions, compiled, on drawn rounds."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.unit.packaging.test_patched_qemu import PATCH
from vmtune.engine.reaper.aimd import LEAST_MS, Aimd
from vmtune.engine.reaper.levels import CALM_ROUNDS, FASTEST, SLEEP_MS, Levels
from vmtune.engine.reaper.settings import Pace, Round
from vmtune.testing.reaper_simulation import Inside

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

ENTRIES = 1000
AROUND = """
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof(*(a)))
%s
static struct { unsigned level, calm; uint64_t aimd_us; } reaper;
%s
int main(void)
{
    unsigned long pages, full;
    reaper.level = FASTEST;
    reaper.aimd_us = AIMD_LEAST_US;
    while (scanf("%%lu %%lu", &pages, &full) == 2) {
        vmtune_next_level(pages * 100 / %d, full);
        vmtune_next_aimd(pages, %d);
        printf("%%u %%u\\n", level_us[reaper.level] / 1000, (unsigned)(reaper.aimd_us / 1000));
    }
    return 0;
}
"""


def source() -> str:
    added = "\n".join(line[1:] for line in PATCH.splitlines() if line.startswith("+"))
    constants = re.findall(
        r"^(?:static const unsigned level_us.*|#define (?:FASTEST|CALM_ROUNDS|AIMD_\w+) .*)$",
        added,
        re.MULTILINE,
    )
    functions = re.findall(r"^static void vmtune_next_\w+\([^{]*\{.*?^\}$", added, re.M | re.S)
    assert len(functions) == 2
    return AROUND % ("\n".join(constants), "\n".join(functions), ENTRIES, ENTRIES)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policies")
    (folder / "policies.c").write_text(source())
    command = ["gcc", "-O1", "-Wall", "-Werror", "-o", "policies", "policies.c"]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    return folder / "policies"


Rounds = Sequence[tuple[int, int]]
"""Of each: pages of all vCPUs, and ring-full exits."""


def patched(program: Path, rounds: Rounds) -> list[tuple[int, int]]:
    """The intervals of ``levels`` and ``aimd`` in milliseconds, after each round."""
    said = "".join(f"{pages} {exits}\n" for pages, exits in rounds)
    ran = subprocess.run(
        [program], input=said, capture_output=True, text=True, check=True, timeout=60
    )
    return [(int(a), int(b)) for a, b in map(str.split, ran.stdout.splitlines())]


def ours(rounds: Rounds) -> list[tuple[int, int]]:
    levels: Pace = Levels(FASTEST)
    aimd: Pace = Aimd(LEAST_MS)
    found = []
    for pages, exits in rounds:
        seen: Round = Inside(100, 1, (pages / ENTRIES,), ENTRIES, exits=exits)
        levels, aimd = levels.after(seen), aimd.after(seen)
        found.append((levels.interval_ms, aimd.interval_ms))
    return found


def test_they_decide_alike_whatever_the_rounds_have(program: Path) -> None:
    chance = random.Random(20261126)
    # No round lies on a threshold itself: whole percents in C, fractions here.
    pages = [each + 5 for each in range(0, 1200, 10)]
    for _ in range(40):
        calm = chance.random()
        rounds = [
            (chance.choice(pages[:20] if chance.random() < calm else pages),
             int(chance.random() < 0.05))
            for _ in range(200)
        ]  # fmt: skip
        assert patched(program, rounds) == ours(rounds)


@pytest.mark.parametrize(("between", "begins_again"), [(350, False), (600, True)])
def test_a_round_that_asks_for_neither_leaves_the_count_of_calm_rounds_alone(
    program: Path, between: int, begins_again: bool
) -> None:
    # From the fastest level down to that of 0.3 to 0.4; five calm rounds; one between; five more.
    down = [(350, 0)] * (CALM_ROUNDS + 2)
    rounds = [*down, (600, 0), (350, 0), *[(5, 0)] * CALM_ROUNDS]
    before = [interval for interval, _ in patched(program, rounds)]
    again = [(between, 0), *[(5, 0)] * CALM_ROUNDS]
    after = [interval for interval, _ in patched(program, [*rounds, *again])][len(rounds) :]
    assert [each for each, _ in ours([*rounds, *again])] == [*before, *after]
    slowed = SLEEP_MS.index(after[-1]) < SLEEP_MS.index(after[0])
    assert slowed is not begins_again
