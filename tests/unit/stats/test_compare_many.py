"""Comparisons of many metrics or cells: how many of them may be wrong."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.unit.stats.arms import STEADY, arm, times
from vmtune.stats.compare import Contrast, adjusted, compare, compare_many
from vmtune.stats.model import (
    Criterion,
    Direction,
    Verdict,
)


def test_among_many_metrics_a_small_p_is_not_enough_but_for_the_primary_one() -> None:
    random = np.random.default_rng(1)
    cells = []
    for number in range(12):
        a, b = 1000 * np.exp(0.02 * random.normal(size=(2, 6)))
        factor = 0.85 if number in (0, 5) else 1.0
        cells.append(
            Contrast(
                arm("stock", a.tolist()),
                arm("tuned", (b * factor).tolist()),
                Criterion(f"m{number}", primary=number == 0),
            )
        )
    primary, *others = compare_many(cells)
    assert primary.verdict is Verdict.BETTER
    assert primary.adjusted_p is None
    alone = compare(cells[5].a, cells[5].b, cells[5].criterion)
    assert alone.verdict is Verdict.BETTER
    among = others[4]
    assert among.verdict is Verdict.INCONCLUSIVE
    assert among.blocks_needed is None
    assert among.adjusted_p is not None
    assert among.adjusted_p > 0.05 >= (among.test.p if among.test else 1)
    assert "cannot decide this for a secondary metric" in among.reason


def test_enough_blocks_bear_out_a_difference_among_many() -> None:
    cells = [
        Contrast(arm("a", STEADY), arm("b", times(STEADY[::-1], f)), Criterion(f"m{n}"))
        for n, f in enumerate((0.8, 1, 1, 1))
    ]
    found = compare_many(cells)
    assert [c.verdict for c in found] == [Verdict.BETTER, *[Verdict.EQUIVALENT] * 3]
    assert found[0].adjusted_p == pytest.approx(4 * 2 / 1024)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_p_values_are_adjusted_as_scipy_does(p_values: list[float]) -> None:
    assert adjusted(p_values) == pytest.approx(stats.false_discovery_control(p_values).tolist())


def test_a_comparison_of_plain_runs_does_not_wait_for_scipy() -> None:
    program = (
        "import sys\n"
        "from vmtune.stats.compare import Contrast, compare_many\n"
        "from vmtune.stats.model import Criterion, Sample\n"
        "a = Sample.of('a', [1.0, 2, 2, 4, 5, 6], blocks=True)\n"
        "compare_many([Contrast(a, a, Criterion(name)) for name in 'xyz'])\n"
        "assert 'numpy' in sys.modules and 'scipy.stats' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_records_need_neither_scipy_nor_numpy() -> None:
    program = (
        "import sys, vmtune.stats.model, vmtune.stats.schedule; assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_gets_no_verdict_is_none_of_the_many() -> None:
    cells = [
        Contrast(arm("a", STEADY), arm("b", times(STEADY[::-1], 0.8)), Criterion("m0")),
        Contrast(arm("a", STEADY), arm("b", STEADY), Criterion("m1", Direction.NONE)),
        Contrast(arm("a", STEADY[:3]), arm("b", STEADY[:3]), Criterion("m2")),
    ]
    assert [comparison.adjusted_p for comparison in compare_many(cells)] == [None] * 3
    both = compare_many([*cells, replace(cells[0], criterion=Criterion("m3"))])
    assert both[0].adjusted_p == pytest.approx(2 / 1024)


def test_false_discoveries_are_kept_at_their_rate() -> None:
    random = np.random.default_rng(2)
    criteria = [Criterion(f"m{n}", margin=0.0) for n in range(10)]
    wrong = 0
    for _ in range(200):
        a, b = np.exp(0.1 * random.normal(size=(2, 10, 10)))
        cells = [
            Contrast(arm("a", x.tolist()), arm("b", y.tolist()), criterion)
            for x, y, criterion in zip(a, b, criteria, strict=True)
        ]
        verdicts = {comparison.verdict for comparison in compare_many(cells)}
        wrong += bool(verdicts & {Verdict.BETTER, Verdict.WORSE})
    assert wrong / 200 <= 0.08  # 5 %, and two standard deviations of 200 campaigns
