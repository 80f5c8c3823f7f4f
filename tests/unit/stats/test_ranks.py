"""The null distributions, held against scipy's and against counting all permutations."""

from __future__ import annotations

from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from vmtune.stats.ranks import doubled_midranks, paired_cut, paired_p, unpaired_cut, unpaired_p

FEW = st.lists(st.integers(-3, 6), min_size=2, max_size=6).map(
    lambda values: np.array(values, dtype=np.float64)
)


@pytest.mark.parametrize(("a", "b"), [(4, 4), (3, 9), (10, 10), (20, 13), (50, 50)])
def test_mann_whitney_is_scipys(a: int, b: int) -> None:
    random = np.random.default_rng([a, b])
    for shift in (0.0, 0.5, 2.0):
        x, y = random.normal(size=a), random.normal(size=b) + shift
        p, exact, tied = unpaired_p(x, y)
        assert p == pytest.approx(stats.mannwhitneyu(x, y, method="exact").pvalue, rel=1e-9)
        assert (exact, tied) == (True, False)


@pytest.mark.parametrize("pairs", [6, 10, 20, 50])
def test_wilcoxon_is_scipys(pairs: int) -> None:
    random = np.random.default_rng(pairs)
    for shift in (0.0, 0.3, 1.0):
        differences = random.normal(size=pairs) + shift
        p, exact, tied = paired_p(differences)
        assert p == pytest.approx(stats.wilcoxon(differences, method="exact").pvalue, rel=1e-9)
        assert (exact, tied) == (True, False)


@settings(max_examples=60, deadline=None)
@given(FEW, FEW)
def test_with_ties_mann_whitney_is_the_test_of_all_permutations(
    a: np.ndarray, b: np.ndarray
) -> None:
    together = np.concatenate([a, b])
    scores = stats.rankdata(together)
    sums = [sum(scores[list(chosen)]) for chosen in combinations(range(len(scores)), len(b))]
    observed = scores[len(a) :].sum()
    tails = (sum(s <= observed for s in sums), sum(s >= observed for s in sums))
    expected = min(1.0, 2 * min(tails) / comb(len(scores), len(b)))
    p, exact, _ = unpaired_p(a, b)
    assert p == pytest.approx(expected)
    assert exact
    assert unpaired_p(b, a)[0] == pytest.approx(p)


@settings(max_examples=60, deadline=None)
@given(FEW)
def test_with_ties_and_zeros_wilcoxon_is_the_test_of_all_signs(differences: np.ndarray) -> None:
    ranks = stats.rankdata(np.abs(differences)) * (differences != 0)
    sums = [
        sum(r for r, up in zip(ranks, signs, strict=True) if up)
        for signs in product((False, True), repeat=len(ranks))
    ]
    observed = ranks[differences > 0].sum()
    tails = (sum(s <= observed for s in sums), sum(s >= observed for s in sums))
    p, exact, _ = paired_p(differences)
    assert p == pytest.approx(min(1.0, 2 * min(tails) / len(sums)))
    assert exact
    assert paired_p(-differences)[0] == pytest.approx(p)


def test_with_ties_it_is_what_scipys_permutation_method_comes_to() -> None:
    random = np.random.default_rng(8)
    a, b = random.integers(0, 4, 6) * 1.0, random.integers(1, 5, 6) * 1.0
    every = stats.PermutationMethod(n_resamples=100_000)
    assert unpaired_p(a, b)[0] == pytest.approx(stats.mannwhitneyu(a, b, method=every).pvalue)
    signed = stats.wilcoxon(b - a, zero_method="pratt", method=every)
    assert paired_p(b - a)[0] == pytest.approx(signed.pvalue)


@pytest.mark.parametrize("ties", [False, True])
def test_many_values_take_the_normal_approximation(ties: bool) -> None:
    random = np.random.default_rng(3)
    a, b = random.normal(size=60), random.normal(size=70) + 0.2
    if ties:
        a, b = np.round(a, 1), np.round(b, 1)
    p, exact, tied = unpaired_p(a, b)
    assert (exact, tied) == (False, ties)
    assert p == pytest.approx(stats.mannwhitneyu(a, b, method="asymptotic").pvalue, rel=0.01)
    differences = random.normal(size=150) + 0.1
    p, exact, _ = paired_p(np.round(differences, 1) if ties else differences)
    expected = stats.wilcoxon(
        np.round(differences, 1) if ties else differences,
        zero_method="pratt", correction=True, method="asymptotic",
    )  # fmt: skip
    assert not exact
    assert p == pytest.approx(expected.pvalue, rel=0.02)


def test_the_approximations_take_over_smoothly() -> None:
    assert unpaired_cut(50, 50, 0.95).rank == pytest.approx(
        unpaired_cut(50, 51, 0.95).rank, rel=0.05
    )
    assert paired_cut(100, 0.95).rank == pytest.approx(paired_cut(101, 0.95).rank, rel=0.05)


@pytest.mark.parametrize(
    ("cut", "rank", "level"),
    [
        # Of 70 arrangements the two most extreme; of 64 signs the two most extreme.
        (unpaired_cut(4, 4, 0.95), 1, 1 - 2 / 70),
        (paired_cut(6, 0.95), 1, 1 - 2 / 64),
        (paired_cut(10, 0.95), 9, 1 - 50 / 1024),
        (unpaired_cut(10, 10, 0.95), 24, 1 - 2 * 3996 / comb(20, 10)),
    ],
)
def test_which_differences_end_an_interval(cut: object, rank: int, level: float) -> None:
    assert (cut.rank, cut.level) == (rank, pytest.approx(level, abs=1e-4))  # type: ignore[attr-defined]


def test_too_few_values_have_no_interval() -> None:
    assert unpaired_cut(3, 3, 0.95).rank == 0
    assert paired_cut(5, 0.95).rank == 0


def test_midranks() -> None:
    assert doubled_midranks(np.array([5.0, 1.0, 5.0, 9.0])).tolist() == [5, 2, 5, 8]


def test_no_difference_at_all_is_no_difference() -> None:
    assert paired_p(np.zeros(8))[0] == 1
    assert unpaired_p(np.ones(8), np.ones(8))[0] == 1
    assert unpaired_p(np.ones(60), np.ones(60))[0] == 1
