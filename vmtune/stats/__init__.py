"""Comparing few, noisy, skewed runs: did it help, and would we know?

A benchmark run of a migration is expensive, so there are six or ten of each arm, not a thousand.
Their times are skewed, one in ten is an outlier, some need a round of pre-copy more and form a
second mode, some never converge, and the host drifts while they run. What is usual, means, t-tests
and bootstraps, reports differences that do not exist (a bootstrap of the geometric mean in 10 to
19 % of cases with 3 to 10 runs) or misses those that are. This package says only what such data
bear out, and its promises are simulated (``tests/unit/stats/test_simulations.py``, and as a table
``python -m tests.perf.verdicts.stats_sim``): a false verdict in at most 6 % of cases, of 6, 10 or
20 runs, whatever the shapes, unequal ones included.

How it is used::

    order = schedule(["stock", "tuned"], blocks=10, seed=7)        # .schedule: before the runs
    detectable(blocks=10, noise=0.1)                                # .planning: what they can find
    comparison = compare(stock, tuned, Criterion("total_time_ms"))  # .compare: after them
    comparison.verdict, comparison.reason

The method
----------

1. **Design.** Randomised blocks: each runs every arm once, in an order of its own, with fresh VMs;
   a warm-up is discarded. The unit is one run, reduced to one value for each metric; samples
   within a run are never replicates. (:mod:`~vmtune.stats.schedule`)
2. **Effect.** The ratio B / A = exp(Hodges-Lehmann shift of the logarithms): paired, the median of
   all ``(d_i + d_j) / 2`` of the blocks' log ratios d; unpaired, the median of all
   ``log b_j - log a_i``. Where a value is 0 or less there is no ratio: the same on differences, and
   said so. (:mod:`~vmtune.stats.shift`)
3. **Interval.** The shifts that the exact rank test does not reject at 5 %.
4. **Test** of no difference: Wilcoxon's signed rank test in blocks, Mann and Whitney's otherwise,
   both exact, with ties by counting all permutations (:mod:`~vmtune.stats.ranks`); unpaired,
   Brunner and Munzel's where it is the more cautious (:mod:`~vmtune.stats.studentised`).
5. **Verdict**, by where the interval lies about a margin fixed before: better or worse,
   equivalent, inconclusive (and how many blocks would settle it), or insufficient data:
   fewer than 6 blocks, or 6 runs of each arm unpaired. In blocks, better and worse need the sign
   test on their side; without blocks the medians (:mod:`~vmtune.stats.medians`), and that the
   arms took turns (:mod:`~vmtune.stats.turns`). (:mod:`~vmtune.stats.verdict`,
   :mod:`~vmtune.stats.judging`)
6. **Runs that did not succeed**: their share is judged first. One that was given up took longer
   than its limit by nobody knows how much, and one without a value counts as the worst. Intervals
   are widened to whatever it may have been; an arm that mostly did not succeed is judged by the
   logrank test and by how many did. (:mod:`~vmtune.stats.outcomes`,
   :mod:`~vmtune.stats.survival`, :mod:`~vmtune.stats.rates`)
7. **A coarse clock** widens the interval likewise where runs differ by less than its step;
   otherwise values are dithered. (:mod:`~vmtune.stats.coarse`)
8. **How much they overlap**: Cliff's delta, and the share of pairs in which B is better.
9. **Many metrics**: one is primary. The others' p-values of "beyond the margin" are adjusted for
   how many they are (Benjamini and Hochberg), and a verdict needs that too.
   (:mod:`~vmtune.stats.compare`)
10. **The host's noise floor**, from an A/A calibration: smaller effects are marked.
    (:mod:`~vmtune.stats.noise`)
11. **More than one mode** is flagged, by Hartigan's dip. (:mod:`~vmtune.stats.modes`)
12. **Over time**: steps, ramps and changes of spread in a history of 20 runs or more, among noise
    that remembers, and an early sign of the next one. (:mod:`~vmtune.stats.changes`,
    :mod:`~vmtune.stats.steps`, :mod:`~vmtune.stats.ramps`, :mod:`~vmtune.stats.early`)

The number of blocks is fixed before. Running until it is significant is not offered: each look
is another chance of a false verdict.

What it does not do: tell why, and hold for another host. An interval says what the same campaign
on the same host would find again; what changes between days is in the noise floor at best. An arm
that has the same median but is far less steady than the other is not called better for it.

Sources
-------

Each module names its own. The whole follows Hollander, M., Wolfe, D. A., & Chicken, E. (2014),
Nonparametric Statistical Methods, 3rd ed., chapters 3 and 4 (rank tests, Hodges-Lehmann,
intervals), and for benchmarks Georges, A., Buytaert, D., & Eeckhout, L. (2007), Statistically
rigorous Java performance evaluation, OOPSLA, and Kalibera, T., & Jones, R. (2013), Rigorous
benchmarking in reasonable time, ISMM (runs, not samples, are replicates; intervals of ratios).
Cliff, N. (1993). Dominance statistics: ordinal analyses to answer ordinal questions.
Psychological Bulletin 114.

Pure: the standard library, numpy and scipy (imported where needed, for it takes a second), no
I/O, no clock, no global state but caches; what is drawn at random is drawn with fixed seeds. The
records of :mod:`~vmtune.stats.model` need none of them.
"""
