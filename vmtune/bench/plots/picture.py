"""Where the picture of a run has its tracks and marks, in pixels; the template ``run.svg`` draws
them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from vmtune.bench.plots.marks import Mark, Marks
from vmtune.bench.plots.points import Point, apart
from vmtune.bench.plots.tracks import Layer, Shape, Track, Window
from vmtune.rendering.scale import Scale, figure

LEFT, RIGHT = 74, 1086
_HEAD, _TITLE, _GAP = 52, 24, 14
_HEIGHT, _TALL = 84, 132
_CHARACTER, _NARROW, _WIDE = 7.3, 4.2, 9.6
"""The widths of most letters, of narrow and of wide ones, in a wide font of 12 pixels."""
_LEAST_LINE_PX = 4
_LEAST_NUMBER_PX = 8
_LEAST_SPAN_PX = 1.2
_ROOM = 1.06
"""What an axis reaches beyond its highest value."""
_AREAS = (Shape.AREA, Shape.RANGE, Shape.STACK)


@dataclass(frozen=True, slots=True)
class Path:
    """A path of the picture.

    :param kind: its classes in the style.
    :param width: of its line; none: as the style has it.
    """

    kind: str
    d: str
    width: float | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A track.

    :param ticks: of its axis: where, and the label.
    :param labels: of the series, for each the end of its text.
    """

    title: str
    unit: str
    top: float
    bottom: float
    ticks: list[tuple[float, str]]
    paths: list[Path]
    labels: list[tuple[float, str]]


def picture(tracks: Sequence[Track], marks: Marks, window: Window) -> dict[str, Any]:
    """The marks' head, the tracks below each other, the axis of time: the template's values."""
    across = Scale(window.low, window.high, LEFT, RIGHT)
    drawn: list[Drawn] = []
    y = _HEAD
    for track in tracks:
        top = y + _TITLE
        y = top + (_TALL if track.tall else _HEIGHT)
        drawn.append(_drawn(track, across, top, y))
        y += _GAP
    seconds = Scale(
        (window.low - window.zero) / 1000, (window.high - window.zero) / 1000, LEFT, RIGHT
    )
    since = "the migration was started" if window.zero else "the run began"
    part = "" if window.whole else " (part of warm-up and cool-down is not shown)"
    iterations = [
        (round(across(m.at), 1), m) for m in marks.iterations if window.low <= m.at <= window.high
    ]
    places = [x for x, _ in iterations]
    widest = _CHARACTER * max((len(mark.label) for mark in marks.iterations), default=0)
    switchover = marks.switchover
    return {
        "tracks": drawn,
        "marks": marks,
        "bottom": y - _GAP,
        "time": [(seconds(tick), figure(tick)) for tick in seconds.ticks(12)],
        "time_title": f"seconds since {since}{part}",
        "phases": [
            (x, width, span, width > _width(span.label))
            for span in marks.phases
            for x, width in [_stretch(across, span.begin, span.end, 0)]
        ],
        "silences": [
            (
                *_stretch(across, silence.at_ms, silence.at_ms + silence.duration_ms),
                f"no heartbeat of the guest for {silence.duration_ms:,.0f} ms",
            )
            for silence in marks.silences
        ],
        "downtime": [
            (*_stretch(across, span.begin, span.end), span.label)
            for span in [marks.downtime]
            if span is not None
        ],
        "iteration_lines": [iterations[n] for n in apart(places, _LEAST_LINE_PX)],
        "iteration_numbers": [iterations[n] for n in apart(places, _LEAST_NUMBER_PX + widest)],
        "switchover": None if switchover is None else round(across(switchover.at), 1),
        "steps": [(round(across(mark.at), 1), mark) for mark in marks.steps],
        "labels": list(_labels(across, marks, switchover)),
    }


def _stretch(
    across: Scale, begin: float, end: float, least: float = _LEAST_SPAN_PX
) -> tuple[float, float]:
    """Where it begins and how wide it is."""
    x = across(begin)
    return round(x, 1), round(max(across(end) - x, least), 1)


def _labels(
    across: Scale, marks: Marks, switchover: Mark | None
) -> Iterator[tuple[str, float, str, str]]:
    """Labels next to the switchover and the longest silence."""
    if switchover is not None:
        x = across(switchover.at)
        fits = x + 5 + _width(switchover.label) <= RIGHT
        yield "switching", x + (4 if fits else -4), "" if fits else "end", switchover.label
    if marks.longest is not None:
        words = f"silent for {marks.longest.duration_ms:,.0f} ms"
        x = across(marks.longest.at_ms)
        fits = x - 5 - _width(words) > LEFT
        yield "stopped", x - (4 if fits else -4), "end" if fits else "", words


def _width(words: str) -> float:
    """About how wide *words* are; fonts differ, so rather too much."""
    return sum(_NARROW if c in "fijlrt.,:'() " else _WIDE if c in "mwGMCPU%" else _CHARACTER
               for c in words)  # fmt: skip


def _drawn(track: Track, across: Scale, top: float, bottom: float) -> Drawn:
    up = _upwards(track, top, bottom)
    paths = [path for layer in track.layers for path in _series(layer, across, up)]
    labels = []
    x = float(RIGHT)
    for layer in reversed([layer for layer in track.layers if layer.points]):
        labels.append((x, layer.label))
        x -= _width(layer.label) + 27
        paths.append(_sample(layer, x, top - 12))
        x -= 16
    ticks = [(up(tick), figure(tick)) for tick in up.ticks(5 if track.tall else 3)]
    return Drawn(track.title, track.unit, top, bottom, ticks, paths, labels)


def _upwards(track: Track, top: float, bottom: float) -> Scale:
    values = [p[1] for layer in track.layers for p in (*layer.points, *layer.floor)]
    high = max([*values, track.most, 1e-9])
    positive = [value for value in values if value > 0]
    if track.logarithmic and positive:
        return Scale(min(positive) / 1.5, high * 1.5, bottom, top, logarithmic=True)
    high *= 1.0 if high == track.most else _ROOM
    return Scale(0, high, bottom, top)


def _series(layer: Layer, across: Scale, up: Scale) -> Iterator[Path]:
    points = [(across(at), up(value)) for at, value in layer.points]
    if not points:
        return
    colour = f"c{layer.colour}"
    if layer.shape is Shape.DOTS:
        yield Path(f"dots {colour}", _dots(points), 4.4 if len(points) < 300 else 2.4)
    elif layer.shape is Shape.STEPS:
        yield Path(f"line {colour}", _stairs(points))
    elif layer.shape in _AREAS:
        floor = [(across(at), up(value)) for at, value in layer.floor]
        edge = floor or [(points[0][0], up.begin), (points[-1][0], up.begin)]
        yield Path(f"{layer.shape.value} {colour}", _line([*points, *reversed(edge)]) + "Z")
        if layer.shape is Shape.AREA:
            yield Path(f"line {colour}", _line(points))
    else:
        yield Path(f"{layer.shape.value} {colour}", _line(points))


def _sample(layer: Layer, x: float, y: float) -> Path:
    """What a series looks like, for the legend."""
    shape = Shape.LINE if layer.shape is Shape.STEPS else layer.shape
    kind = f"{shape.value} c{layer.colour}"
    if shape in _AREAS:
        return Path(kind, f"M{x:.1f} {y - 5:.0f}h20v10h-20z")
    if shape is Shape.DOTS:
        return Path(kind, _dots([(x + 4, y), (x + 16, y)]), 5)
    return Path(kind, f"M{x:.1f} {y:.0f}h20")


def _line(points: Sequence[Point]) -> str:
    """One line; a single point becomes a short one, so that it can be seen."""
    if len(points) == 1:
        points = [(points[0][0] - 1.5, points[0][1]), (points[0][0] + 1.5, points[0][1])]
    head, *tail = (f"{x:.1f} {y:.1f}" for x, y in points)
    return f"M{head}L{' '.join(tail)}"


def _stairs(points: Sequence[Point]) -> str:
    """Level from each point to the next."""
    (x, y), *rest = points
    moves = "".join(f"H{x:.1f}V{y:.1f}" for x, y in rest)
    return f"M{x:.1f} {y:.1f}{moves}H{min(RIGHT, points[-1][0] + 3):.1f}"


def _dots(points: Sequence[Point]) -> str:
    """Lines of no length with round ends."""
    return "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)
