"""Records of runs: any that there can be, and one as a real run gives it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tests.support.examples.samples import make_samples
from vmtune.bench.model.runs.run import CpuSample, GuestPass, HostSide, RunRecord, Silence
from vmtune.bench.model.runs.send_record import IterationSends, SendCounts, SendRecord
from vmtune.model.migration.controller_record import (
    ReaperEnd,
    ReaperReport,
    ReaperRound,
    StepEffect,
    StepRecord,
)
from vmtune.model.migration.record import QemuStatus, Sample, Totals
from vmtune.model.plan.outcome import Outcome, Status

whole = st.integers(-(1 << 63) + 1, (1 << 63) - 1)
small = st.integers(0, 1000)
fraction = st.floats(-1e300, 1e300) | st.integers(-(10**9), 10**9).map(lambda n: n / 1000)
words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
values = st.booleans() | st.integers(-5, 1 << 40) | words

any_sample = st.builds(
    Sample,
    **{name: whole for name, kind in Sample.__annotations__.items() if kind == "int"},
    status=st.sampled_from(QemuStatus),
    boundary=st.booleans(),
    expected_downtime_ms=st.none() | small,
)
any_pass = st.builds(GuestPass, small, small, fraction, whole, whole, whole)
any_silence = st.builds(Silence, fraction, fraction)
any_cpu = st.builds(
    CpuSample, fraction, st.sampled_from(HostSide), fraction, fraction, fraction, fraction
)
any_round = st.builds(
    ReaperRound, whole, small, fraction, fraction, st.lists(fraction, max_size=3).map(tuple)
)


def _few(one: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(one, max_size=3).map(tuple)


any_reaper = st.builds(
    ReaperReport, words, small, st.sampled_from(ReaperEnd), _few(any_round), small,
    st.none() | small, words,
)  # fmt: skip
any_step = st.builds(StepRecord, small, whole, small, words, words, st.sampled_from(StepEffect))
any_outcome = st.builds(
    Outcome, words, st.sampled_from(Status), st.none() | values, st.none() | values, words
)
any_counts = st.builds(SendCounts, *[small] * 9)
any_sends = st.builds(
    SendRecord, any_counts, _few(st.builds(IterationSends, small, st.floats(0, 1e9), any_counts))
)
any_record = st.builds(
    RunRecord,
    migration_ms=st.none() | small,
    migration_ended_ms=st.none() | small,
    ended_ms=small,
    samples=_few(any_sample),
    passes=_few(any_pass),
    beat_interval_ms=st.none() | fraction,
    silences=_few(any_silence),
    cpu=_few(any_cpu),
    totals=st.none() | st.builds(Totals, small, small, st.none() | small, whole, small, small),
    outcomes=_few(any_outcome),
    reaper=st.none() | any_reaper,
    steps=_few(any_step),
    ring_full_exits=st.none() | small,
    sends=st.none() | any_sends,
)


def make_record(samples: int = 50, seed: int = 1) -> RunRecord:
    """A run of a guest with two workers under a reaper, always the same for one *seed*."""
    chance = random.Random(seed)
    begins = 2000
    taken = tuple(
        replace(s, at_ms=s.at_ms + begins) for s in make_samples(samples, seed) if samples
    )
    over = taken[-1].at_ms if taken else begins
    passes = tuple(
        GuestPass(worker, number, 450.0 * number + chance.random(), 450_000 * number,
                  chance.randint(440_000, 470_000), 64 << 20)
        for number in range(1, (over + 2000) // 450)
        for worker in (0, 1)
    )  # fmt: skip
    cpu = tuple(
        CpuSample(50.0 * n + chance.random(), side, 50.0 * n, 10.0 * (n // 3), 0.0, 10.0 * (n // 9))
        for n in range((over + 2000) // 50)
        for side in HostSide
    )
    rounds = tuple(
        ReaperRound(at, 100, 103.5 + chance.random(), 3.5, (chance.random(), 0.25))
        for at in range(begins - 500, over, 104)
    )
    return RunRecord(
        migration_ms=begins,
        migration_ended_ms=over,
        ended_ms=over + 2000,
        samples=taken,
        passes=passes,
        beat_interval_ms=10.0,
        silences=(Silence(over - 40.25, 41.5),),
        cpu=cpu,
        totals=Totals(over - begins, 40, 7, 1 << 33, 14),
        outcomes=(Outcome("dirty_ring_size_entries", Status.EFFECTIVE, 65536, 65536),),
        reaper=ReaperReport("predict", 65536, ReaperEnd.MIGRATION_ENDED, rounds, 0, 0),
        steps=(StepRecord(0, 2500, 3, "pause the guest", "after 3", StepEffect.DONE),),
        ring_full_exits=0,
    )
