"""What a picture of a run shows over time: one track for each thing, from the run's record."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from vmtune.bench.migration.guest_passes import stretches
from vmtune.bench.model.runs.run import CpuSample, HostSide, Run, RunRecord
from vmtune.bench.plots.points import Point, finite, thinned, within
from vmtune.model.migration.record import Sample
from vmtune.units import Unit, approximate

COLUMNS = 1000
"""The resolution of a track, in stretches of time: about one to a pixel."""
_RANGE_COLUMNS = 250
_MAX_WORKERS = 6
_SHARP_PEAK = 12
"""A pace so many times its baseline is drawn on a logarithmic axis."""
_LEAST_READING_MS = 200.0
_AROUND_MS = 2000.0
_GIB = 1 << 30


class Shape(StrEnum):
    """How a series is drawn."""

    LINE = "line"
    STEPS = "steps"
    DASHED = "dashed"
    AREA = "area"
    RANGE = "range"
    STACK = "stack"
    """Areas one upon the other, without edges."""
    DOTS = "dots"
    RULE = "rule"
    """A level: a thin dashed line all along."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One series of a track.

    :param colour: a number of the palette.
    :param floor: for an area, its lower edge, at the same times; none: the axis.
    """

    label: str
    shape: Shape
    colour: int
    points: tuple[Point, ...]
    floor: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True)
class Track:
    """One strip of the picture.

    :param unit: of its axis.
    :param most: what its axis reaches at least.
    :param tall: twice as high.
    """

    title: str
    unit: str
    layers: tuple[Layer, ...]
    most: float = 0.0
    logarithmic: bool = False
    tall: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """What part of the run is shown, milliseconds on its timeline.

    :param zero: what the axis counts from: the migration's start.
    :param whole: nothing of the run is left out.
    """

    low: float
    high: float
    zero: float
    whole: bool


def window_of(record: RunRecord) -> Window:
    """All of a run, or, where the migration is a small part of it, half as much again of
    warm-up and cool-down as the migration took."""
    begin, end = 0.0, float(max(record.ended_ms, _last(record), 1))
    if record.migration_ms is None:
        return Window(begin, end, begin, True)
    begun = float(record.migration_ms)
    over = end if record.migration_ended_ms is None else float(record.migration_ended_ms)
    margin = max(1000.0, 1.5 * (over - begun))
    low, high = max(begin, begun - margin), min(end, over + margin)
    return Window(low, max(high, low + 1), begun, low <= begin and high >= end)


def _last(record: RunRecord) -> float:
    """The last moment that anything was recorded."""
    series: Iterable[Sequence[Sample | CpuSample]] = (record.samples, record.cpu)
    return max((each.at_ms for one in series for each in one[-1:]), default=0.0)


def tracks_of(run: Run, window: Window) -> list[Track]:
    """The tracks that this run has anything for, from the guest down to the controllers."""
    record = run.record
    if record is None:
        return []
    makers: tuple[Callable[[Run, RunRecord, Window], Iterator[Track]], ...] = (
        _guest,
        _rates,
        _remaining,
        _throttle,
        _cpu,
        _reaper,
        _process,
    )
    made = itertools.chain.from_iterable(make(run, record, window) for make in makers)
    return [track for track in made if any(layer.points for layer in track.layers)]


def _layer(label: str, shape: Shape, colour: int, points: Iterable[Point], window: Window) -> Layer:
    shown = within(finite(points), window.low, window.high)
    return Layer(label, shape, colour, tuple(thinned(shown, window.low, window.high, COLUMNS)))


def _process(run: Run, record: RunRecord, window: Window) -> Iterator[Track]:
    """What a QEMU that serves blocks takes of its host."""
    looks = record.block.processes if record.block else ()
    maps = [
        ("all", [(look.at_ms, float(look.maps)) for look in looks]),
        ("stacks of coroutines", [(look.at_ms, float(look.stacks)) for look in looks]),
    ]
    yield Track(
        "Memory maps of QEMU",
        "",
        tuple(
            _layer(name, Shape.LINE, at, points, window) for at, (name, points) in enumerate(maps)
        ),
    )
    memory = [(look.at_ms, look.rss_bytes / (1 << 20)) for look in looks]
    yield Track(
        "Memory of QEMU", "MiB", (_layer("RSS", Shape.LINE, 0, memory, window),)
    )  # fmt: skip


def _guest(run: Run, record: RunRecord, window: Window) -> Iterator[Track]:
    """Each worker's pace, by the host's clock: time in which the guest stood still counts."""
    paces: dict[int, list[Point]] = defaultdict(list)
    for stretch in stretches(record.passes, record.ended_ms):
        if stretch.first or stretch.until_ms <= stretch.since_ms:
            continue
        pace = stretch.pace * _GIB
        before = paces[stretch.worker][-1:]
        if not stretch.ended and before and pace <= before[0][1]:
            continue  # its pass had not ended: that it was slow cannot be seen yet
        begin, end = stretch.working
        paces[stretch.worker] += [(begin, pace), (end, pace)]
    baseline = run.metrics.get("guest_baseline_ms_per_gib")
    layers = list(_workers(paces, window))
    highest = max((p[1] for layer in layers for p in layer.points), default=0.0)
    if baseline:
        words = f"its own pace, {approximate(baseline, Unit.MS_PER_GIB)}"
        ends = ((window.low, baseline), (window.high, baseline))
        layers.append(Layer(words, Shape.RULE, 8, ends))
    sharp = bool(baseline) and highest > _SHARP_PEAK * (baseline or 0)
    unit = "ms, logarithmic" if sharp else "ms"
    yield Track("Guest: time to write 1 GiB", unit, tuple(layers), logarithmic=sharp, tall=True)


def _workers(paces: Mapping[int, list[Point]], window: Window) -> Iterator[Layer]:
    if len(paces) <= _MAX_WORKERS:
        for number, worker in enumerate(sorted(paces)):
            label = f"worker {worker}" if len(paces) > 1 else "worker"
            yield _layer(label, Shape.LINE, number + 1, paces[worker], window)
        return
    columns: dict[int, list[float]] = defaultdict(list)
    width = (window.high - window.low) / _RANGE_COLUMNS
    for points in paces.values():
        for (since, pace), (until, _) in zip(points[::2], points[1::2], strict=True):
            first = max(0, int((since - window.low) / width))
            for place in range(first, min(_RANGE_COLUMNS, int((until - window.low) / width) + 1)):
                columns[place].append(pace)
    at_of = {place: window.low + (place + 0.5) * width for place in sorted(columns)}
    most = tuple((at, max(columns[place])) for place, at in at_of.items())
    least = tuple((at, min(columns[place])) for place, at in at_of.items())
    middle = [(at, median(columns[place])) for place, at in at_of.items()]
    yield Layer(f"fastest to slowest of {len(paces)} workers", Shape.RANGE, 1, most, least)
    yield _layer("median", Shape.LINE, 1, middle, window)


def _rates(run: Run, record: RunRecord, window: Window) -> Iterator[Track]:
    """What is sent and what becomes dirty: it converges while the first is the greater."""
    running = [s for s in record.samples if s.status.running]
    sent = [(s.at_ms, s.throughput_bytes_per_s / (1 << 20)) for s in running]
    # QEMU knows a dirty rate once it has looked for dirty pages a second time.
    known = [s for s in running if s.iteration > 1 or s.dirty_pages_per_s]
    dirty = [(s.at_ms, s.dirty_pages_per_s * s.page_size_bytes / (1 << 20)) for s in known]
    layers = (
        _layer("sent", Shape.LINE, 1, sent, window),
        _layer("made dirty", Shape.DASHED, 2, dirty, window),
    )
    yield Track("Throughput and dirty rate", "MiB/s", layers if running else ())


def _remaining(run: Run, record: RunRecord, window: Window) -> Iterator[Track]:
    running = [s for s in record.samples if s.status.running]
    highest = max((s.remaining_bytes for s in running), default=0)
    divisor, unit = (_GIB, "GiB") if highest >= 2 * _GIB else (1 << 20, "MiB")
    points = [(float(s.at_ms), s.remaining_bytes / divisor) for s in running]
    yield Track("Left to send", unit, (_layer("remaining", Shape.AREA, 3, points, window),))


def _throttle(run: Run, record: RunRecord, window: Window) -> Iterator[Track]:
    """What held the guest back on purpose, where anything did."""
    samples = record.samples
    if any(s.throttle_percent for s in samples):
        points = [(float(s.at_ms), float(s.throttle_percent)) for s in samples]
        layer = _layer("vCPUs stopped", Shape.STEPS, 4, points, window)
        yield Track("Auto-converge", "% of time", (layer,), most=100.0)
    if any(s.dirty_limit_throttle_us for s in samples):
        held = [(float(s.at_ms), s.dirty_limit_throttle_us / 1000) for s in samples]
        layer = _layer("vCPU held back", Shape.STEPS, 4, held, window)
        yield Track("Dirty limit", "ms a round", (layer,))


_THREADS = (
    ("vcpu_ms", "vCPUs", 1),
    ("migration_ms", "migration", 2),
    ("multifd_ms", "multifd", 3),
    ("other_ms", "other", 5),
)


def _cpu(run: Run, record: RunRecord, window: Window) -> Iterator[Track]:
    """CPU time by kinds of threads, one upon the other: 100 % is one core."""
    highest = 100.0
    found = []
    for side in HostSide:
        own = [s for s in record.cpu if s.side is side]
        layers = tuple(_stacked(own, window))
        tops = [p[1] for layer in layers[-1:] for p in layer.points]
        highest = max(highest, *tops, 0.0)
        found.append((f"CPU of the {side.value}'s QEMU", layers))
    for title, layers in found:
        yield Track(title, "% of a core", layers, most=highest)


def _stacked(own: Sequence[CpuSample], window: Window) -> Iterator[Layer]:
    """Counters as shares of a core between two readings that are far enough apart: the kernel
    counts in ticks of some milliseconds."""
    apart = max(_LEAST_READING_MS, (window.high - window.low) / COLUMNS)
    readings: list[CpuSample] = []
    for sample in own:
        near = window.low - _AROUND_MS <= sample.at_ms <= window.high + _AROUND_MS
        if near and (not readings or sample.at_ms - readings[-1].at_ms >= apart):
            readings.append(sample)
    pairs = list(itertools.pairwise(readings))
    floor: list[Point] = []
    base = [0.0] * len(pairs)
    for name, label, colour in _THREADS:
        used = [getattr(b, name) - getattr(a, name) for a, b in pairs]
        shares = [
            max(0.0, 100 * ms / (b.at_ms - a.at_ms)) for ms, (a, b) in zip(used, pairs, strict=True)
        ]
        base = [below + share for below, share in zip(base, shares, strict=True)]
        top = [
            point
            for level, (a, b) in zip(base, pairs, strict=True)
            for point in ((a.at_ms, level), (b.at_ms, level))
        ]
        if any(shares):
            yield Layer(label, Shape.STACK, colour, tuple(top), tuple(floor))
            floor = top


def _reaper(run: Run, record: RunRecord, window: Window) -> Iterator[Track]:
    """How often the rings were emptied, and how full they were by then."""
    rounds = record.reaper.rounds if record.reaper else ()
    policy = record.reaper.policy if record.reaper else ""
    waits = [(float(r.at_ms), float(r.interval_ms)) for r in rounds]
    costs = [(float(r.at_ms), r.cost_ms) for r in rounds]
    yield Track(
        f"Reaper ({policy})",
        "ms",
        (
            _layer("interval", Shape.STEPS, 1, waits, window),
            _layer("cost of a round", Shape.DOTS, 2, costs, window),
        ),
    )
    fills = [(float(r.at_ms), 100 * max(r.fills, default=0.0)) for r in rounds]
    least = [(float(r.at_ms), 100 * min(r.fills, default=0.0)) for r in rounds]
    layers = [_layer("fullest ring", Shape.DOTS, 2, fills, window)]
    if any(len(r.fills) > 1 for r in rounds):
        layers.append(_layer("emptiest ring", Shape.DOTS, 5, least, window))
    target = run.values.get("reaper_target_fill_percent")
    if isinstance(target, int) and fills:
        ends = ((window.low, float(target)), (window.high, float(target)))
        layers.append(Layer(f"target, {target} %", Shape.RULE, 8, ends))
    yield Track("Fill of the dirty rings", "% of the ring", tuple(layers), most=100.0)
