"""How far forecasts made before a migration are from what happened, beside what users had.

Each migration of tests.perf.forecasts.dataset is forecast from the probe that was made before it,
with the throughput that the latest migrations of other workloads tell, and corrected by what those
of all other workloads tell (vmtune.forecast.correction): leave-workload-out.
Beside it, of the same migrations: what remains divided by the throughput, as soon as QEMU says one,
for the total time, and QEMU's last expected-downtime for the silence. Then: how far migrations that
were done twice are from each other, which no forecast can know.

Of the published dataset the first migrations, of a machine full of other work and before probes
looked at pages, count only where there are no others.

Without a folder of RESULTS it does COUNT migrations itself, some 5 s each, of workloads drawn by
SEED=, another one each time if it is not given; FULL=1 does 2,000.

    python -m tests.perf.forecasts.forecast [RESULTS [COUNT]]
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.perf.forecasts.dataset import collect
from tests.perf.forecasts.dataset_drawn import SEED, drawn, is_one_of_the_first
from tests.perf.report import Check, environment, finish
from tests.perf.support import folder
from vmtune.forecast.conditions import compresses, conditions_of
from vmtune.forecast.correction import Correction, Record, features, learn
from vmtune.forecast.errors import AS_COMPUTED, USUAL
from vmtune.forecast.limits import channels, limit_on_wire
from vmtune.forecast.path import expect_throughput, sent_by
from vmtune.forecast.probe import DirtyProbe
from vmtune.forecast.prospect import Prospect, expect
from vmtune.forecast.ranges import Range
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.host.page_contents import PageContents
from vmtune.model.migration.record import Totals

COUNT = 160
FULL_COUNT = 2000
_RECORDS = 10
_WENT = ("completed", "not converged")
_SAME = ("memory_bytes", "vcpus", "workload", "values")
_Migration = dict[str, Any]  # any: JSON


@dataclass(frozen=True, slots=True)
class Held:
    """One migration and its forecast, without the errors.

    :param totals: None where it did not end in time.
    :param longest_s: the time after which it was to be given up.
    :param features: what its errors may depend on; empty where no time was computed.
    """

    migration: _Migration
    computed: Prospect
    totals: Totals | None
    longest_s: float
    features: tuple[float, ...] = ()

    @property
    def says_that_it_ends(self) -> bool:
        """Likely, and within the time that was given."""
        total = self.computed.total_ms
        return total is not None and total.likely < self.longest_s * 1000

    @property
    def ended(self) -> bool:
        """It ended, and a time was forecast."""
        return self.totals is not None and self.computed.total_ms is not None


@dataclass(frozen=True, slots=True)
class Figure:
    """What is forecast.

    :param of: what is computed, and :param happened: what QEMU reported.
    :param others: what users had instead; None where QEMU said nothing.
    """

    name: str
    of: Callable[[Prospect], Range | None]
    happened: Callable[[Totals], float]
    prior: Range
    others: Callable[[_Migration], float | None] = lambda _: None

    def record(self, held: Held) -> Record:
        """Of one that ended."""
        computed = self.of(held.computed)
        assert computed is not None and held.totals is not None
        group = repr(held.migration["workload"])
        return Record(held.features, computed, self.happened(held.totals), group)


def by_throughput(migration: _Migration) -> float | None:
    """The total time in ms by the first throughput that QEMU said."""
    for one in migration["samples"]:
        pace = one["throughput_bytes_per_s"]
        if pace:
            return float(one["at_ms"] + one["remaining_bytes"] / pace * 1000)
    return None


def last_expected(migration: _Migration) -> float | None:
    """QEMU's last expected-downtime in ms."""
    said = [s["expected_downtime_ms"] for s in migration["samples"] if s["status"] == "active"]
    return float(said[-1]) if said and said[-1] is not None else None


FIGURES = (
    Figure("total time", lambda p: p.total_ms, lambda t: t.total_time_ms, USUAL.total,
           by_throughput),
    Figure("bytes", lambda p: p.sent_bytes, lambda t: t.transferred_bytes, USUAL.sent),
    Figure("silence", lambda p: p.silence_ms, lambda t: t.downtime_ms, USUAL.silence,
           last_expected),
)  # fmt: skip


def forecast(one: _Migration, others: Sequence[_Migration], longest_s: float) -> Held:
    """The forecast of *one* as if *others* were on record: of these the latest before it count, and
    the first ones take those that come next."""
    stored, values = one["probe"], one["values"]
    at = datetime.fromisoformat(stored["measured_at"])
    probe = DirtyProbe(
        points_of(stored),
        stored["memory_bytes"],
        stored["used_bytes"],
        at,
        stored["took_ms"],
        _contents(stored, "contents"),
        _contents(stored, "changed"),
        stored.get("held_bytes"),
    )
    ended = [o for o in others if o["totals"] and o["workload"] != one["workload"]]
    ended.sort(key=lambda o: (o["number"] > one["number"], abs(o["number"] - one["number"])))
    alike = [o for o in ended if _sends(o["values"]) == _sends(values)]
    recorded = (alike or ended)[:_RECORDS]
    past = [sent for o in recorded if (sent := sent_by(_totals(o), o["values"]))]
    throughput = expect_throughput(past, limit_on_wire(values))
    assert throughput is not None, "every migration of the dataset has a bandwidth limit"
    computed = expect(
        probe, throughput, conditions_of(values), compresses(values), errors=AS_COMPUTED
    )
    depends_on = features(probe, throughput, values, computed) or ()
    totals = Totals(**one["totals"]) if one["totals"] else None
    return Held(one, computed, totals, longest_s, depends_on)


def counted(collected: Sequence[_Migration], seed: int) -> list[_Migration]:
    """Those that were probed and came to an end or not, and not those where the machine failed. The
    first ones of the usual seed are of a machine that was full of other work, and their probes
    did not look at pages: they count only where there are no others."""
    went = [one for one in collected if one.get("probe") and one["state"] in _WENT]
    later = [one for one in went if not is_one_of_the_first(seed, one["number"])]
    return later or went


def points_of(probe: _Migration) -> tuple[DirtyPoint, ...]:
    """Of the dirty curve; earlier probes have the last ones beside the others."""
    measured = [*probe["points"], *(probe.get("more_points") or ())]
    return tuple(DirtyPoint(each["after_ms"], each["dirty_bytes"]) for each in measured)


def _totals(one: _Migration) -> Totals:
    """Of one that ended; what earlier ones do not have is what their last sample says."""
    last = one["samples"][-1]
    seen = last["normal_pages"] * last["page_size_bytes"]
    return Totals(**{"normal_bytes": seen} | one["totals"])


def _contents(stored: _Migration, name: str) -> PageContents | None:
    """Of a probe; the first ones of the dataset did not look at it."""
    held = stored.get(name)
    return None if held is None else PageContents(**held)


def _sends(values: dict[str, Any]) -> tuple[object, ...]:  # any: a tunable's value
    """How pages are sent, as vmtune.services.forecasts finds records that are alike."""
    return channels(values), compresses(values)


def quantile(values: Sequence[float], share: float) -> float:
    """Of some values, at least one."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


@dataclass(frozen=True, slots=True)
class Told:
    """How a figure came out.

    :param errors: relative, of each migration; *off*: in its unit; *others*: of what users had.
    :param within: the share within the bounds.
    :param width: the median of upper by lower bound.
    """

    errors: list[float]
    off: list[float]
    others: list[float]
    within: float
    width: float


def hold(figure: Figure, every: Sequence[Held], *, own: bool = False) -> Told:
    """A figure's forecasts against what happened, each with what the other workloads tell.

    :param own: and with the earlier migrations of the same workload, as of a VM that migrated
        before; those that have none do not count.
    """
    errors, off, others, within, widths = [], [], [], [], []
    records = [figure.record(held) for held in every]
    learnt: dict[str, Correction | None] = {}
    before: dict[str, list[Record]] = {}
    in_order = sorted(zip(every, records, strict=True), key=lambda h: int(h[0].migration["number"]))
    for held, record in in_order:
        known = list(before.setdefault(record.group, []))
        before[record.group].append(record)
        if own and not known:
            continue
        if record.group not in learnt:
            learnt[record.group] = learn([r for r in records if r.group != record.group])
        correction = learnt[record.group]
        told = (
            record.computed.scaled(figure.prior)
            if correction is None
            else replace(correction, known={record.group: known if own else []}).apply(
                record.features, record.computed, record.group
            )
        )
        truth = max(1.0, record.happened)
        errors.append(abs(told.likely / truth - 1))
        off.append(abs(told.likely - truth))
        within.append(told.holds(truth))
        widths.append(told.high / max(1.0, told.low))
        instead = figure.others(held.migration)
        if instead is not None:
            others.append(abs(instead / truth - 1))
    taken = Counter(c.name if c else "none" for c in learnt.values())
    print(f"{figure.name}: corrected by {', '.join(sorted(taken))}")
    return Told(errors, off, others, statistics.fmean(within), statistics.median(widths))


def repeated(migrations: Sequence[_Migration]) -> list[tuple[_Migration, _Migration]]:
    """Migrations of the same guest and workload with the same settings, each with the first."""
    first: dict[str, _Migration] = {}
    pairs = []
    for one in sorted(migrations, key=lambda one: int(one["number"])):
        same = json.dumps([one[name] for name in _SAME], sort_keys=True)
        if same in first:
            pairs.append((first[same], one))
        else:
            first[same] = one
    return pairs


def tell_repeats(migrations: Sequence[_Migration]) -> None:
    """What no forecast can know: how far the second of two alike is from the first. Each differs
    from their middle, which a perfect forecast would say, by about 0.7 times as much."""
    pairs = repeated(migrations)
    both = [(Totals(**a["totals"]), Totals(**b["totals"])) for a, b in pairs if _ended(a, b)]
    other = sum((a["totals"] is None) != (b["totals"] is None) for a, b in pairs)
    print(f"{len(pairs)} repeats, of which {other} ended otherwise than the first")
    for figure in FIGURES if both else ():
        first = [max(1.0, figure.happened(a)) for a, _ in both]
        second = [max(1.0, figure.happened(b)) for _, b in both]
        errors = [abs(b / a - 1) for a, b in zip(first, second, strict=True)]
        off = [abs(b - a) for a, b in zip(first, second, strict=True)]
        print(f"{figure.name:12} differs by {quantile(errors, 0.5):.0%}, 90 % within "
              f"{quantile(errors, 0.9):.0%}; {quantile(off, 0.5):.0f}, 90 % within "
              f"{quantile(off, 0.9):.0f}")  # fmt: skip


def _ended(*migrations: _Migration) -> bool:
    return all(one["totals"] is not None for one in migrations)


def tell(told: Mapping[str, Told]) -> None:
    """As a table."""
    print("             median error   90 % within  what users had  within bounds  high by low")
    for name, one in told.items():
        middle, most = quantile(one.errors, 0.5), quantile(one.errors, 0.9)
        beside = ", ".join(f"{quantile(one.others, s):.0%}" for s in (0.5, 0.9) if one.others)
        print(f"{name:12} {middle:>12.0%} {most:>13.0%} {beside:>15} {one.within:>14.0%}"
              f"{one.width:>13.1f}")  # fmt: skip


def main() -> None:
    """Collect what is not there, forecast and report."""
    where = environment()
    given = os.environ.get("SEED")
    seed = int(given) if given else random.SystemRandom().randrange(1 << 31)
    count = FULL_COUNT if os.environ.get("FULL") == "1" else COUNT
    with ExitStack() as stack:
        if len(sys.argv) > 1:
            results, seed = Path(sys.argv[1]), int(given) if given else SEED
            count = int(sys.argv[2]) if len(sys.argv) > 2 else count
        else:
            results = stack.enter_context(folder())
        print(f"SEED={seed}", flush=True)
        collected = collect(results / "migrations.jsonl", count, seed)
    migrations = counted(collected, seed)
    if len(migrations) < len(collected):
        print(f"{len(collected) - len(migrations)} of {len(collected)} migrations do not count")
    every = [
        forecast(one, migrations, drawn(seed, one["number"]).scenario.max_seconds)
        for one in migrations
    ]
    ended = [held for held in every if held.ended]
    right = statistics.fmean(held.says_that_it_ends == (held.totals is not None) for held in every)
    print(f"{len(every)} migrations, of which {len(ended)} ended and were given a time")
    told = {figure.name: hold(figure, ended) for figure in FIGURES}
    tell(told)
    again = {figure.name: hold(figure, ended, own=True) for figure in FIGURES}
    print(f"{len(again['bytes'].errors)} of them, of a workload that migrated before, by that, too")
    tell(again)
    print(f"silence: median {quantile(told['silence'].off, 0.5):.0f} ms off")
    tell_repeats(migrations)
    total, silence = told["total time"], told["silence"]
    checks = [
        Check("total time, 90 % within", quantile(total.errors, 0.9) * 100, "%", 12, "max"),
        Check("silence, median error", quantile(silence.errors, 0.5) * 100, "%", 25, "max"),
        Check("silence, 90 % within", quantile(silence.off, 0.9), "ms", 100, "max"),
        Check("will it end, right", right * 100, "%", 95, "min"),
    ]  # fmt: skip
    for name, one in told.items():
        checks.append(Check(f"{name}, within the 90 % bounds", one.within * 100, "%", 87, "min"))
        checks.append(Check(f"{name}, at most so many", one.within * 100, "%", 93, "max"))
    took = max(one["probe"]["took_ms"] for one in migrations) / 1000
    checks.append(Check("probe, longest", took, "s", 60, "max"))
    raw = {name: {"errors": t.errors, "others": t.others} for name, t in told.items()}
    finish("forecast", checks, raw | {"seed": seed}, where)


if __name__ == "__main__":
    main()
