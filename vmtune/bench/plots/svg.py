"""Draws tracks and marks as one SVG, for the page of :mod:`vmtune.bench.plots.plot`."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from vmtune.bench.model.runs.run import Silence
from vmtune.bench.plots.marks import Marks
from vmtune.bench.plots.scale import Point, Scale, figure, spread
from vmtune.bench.plots.tracks import Layer, Shape, Track, Window

WIDTH = 1100
LEFT, RIGHT = 74, 14
_HEAD = 52
_TITLE = 24
_GAP = 14
_HEIGHT, _TALL = 84, 132
_FOOT = 40
_CHARACTER, _NARROW, _WIDE = 7.3, 4.2, 9.6
"""The widths of most letters, of narrow and of wide ones, in a wide font of 12 pixels."""
_LEAST_LINE_PX = 4
_LEAST_NUMBER_PX = 8
_LEAST_SPAN_PX = 1.2
_ROOM = 1.06
"""What an axis reaches beyond its highest value."""


def plain(text: object) -> str:
    """*text* for HTML: escaped, and without characters that cannot be seen or that turn others
    around."""
    shown = "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}"
                    for c in str(text))  # fmt: skip
    return html.escape(shown)


def draw(tracks: Sequence[Track], marks: Marks, window: Window) -> str:
    """The picture: the marks' head, the tracks below each other, the axis of time."""
    across = Scale(window.low, window.high, LEFT, WIDTH - RIGHT)
    places: list[tuple[Track, float, float]] = []
    y = float(_HEAD)
    for track in tracks:
        top = y + _TITLE
        bottom = top + (_TALL if track.tall else _HEIGHT)
        places.append((track, top, bottom))
        y = bottom + _GAP
    bottom = places[-1][2] if places else float(_HEAD)
    height = bottom + _FOOT
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="The run over time">',
        *_time_axis(across, window, _HEAD - 6, bottom),
        *_behind(across, marks, window, bottom),
        *_lines(across, marks, bottom),
        *(part for place in places for part in _track(place, across)),
        "</svg>",
    ]
    return "\n".join(parts)


def _time_axis(across: Scale, window: Window, top: float, bottom: float) -> Iterator[str]:
    seconds = Scale(
        (window.low - window.zero) / 1000, (window.high - window.zero) / 1000, LEFT, WIDTH - RIGHT
    )
    for tick in seconds.ticks(12):
        x = seconds(tick)
        yield f'<path class="grid" d="M{x:.1f} {top:.0f}V{bottom:.0f}"/>'
        yield f'<text class="tick mid" x="{x:.1f}" y="{bottom + 15:.0f}">{figure(tick)}</text>'
    since = "the migration was started" if window.zero else "the run began"
    part = "" if window.whole else " (part of warm-up and cool-down is not shown)"
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield (
        f'<text class="label mid" x="{middle:.0f}" y="{bottom + 33:.0f}">'
        f"seconds since {since}{part}</text>"
    )


def _behind(across: Scale, marks: Marks, window: Window, bottom: float) -> Iterator[str]:
    """What lies behind the curves: phases, stops, iterations."""
    for span in marks.phases:
        begin, end = across(span.begin), across(span.end)
        kind = "now" if span.label == "migration" else "calm"
        yield (
            f'<rect class="phase {kind}" x="{begin:.1f}" y="2" width="{end - begin:.1f}" '
            f'height="18"><title>{plain(span.label)}: {_lasting(span.end - span.begin)}</title>'
            "</rect>"
        )
        if kind == "calm":
            yield _box("aside", begin, end, 22, bottom)
        if (end - begin) > _width(span.label):
            yield (
                f'<text class="name mid" x="{(begin + end) / 2:.1f}" y="15">'
                f"{plain(span.label)}</text>"
            )
    for silence in marks.silences:
        yield _silence(across, silence, bottom)
    if marks.downtime is not None:
        begin, end = across(marks.downtime.begin), across(marks.downtime.end)
        end = max(end, begin + _LEAST_SPAN_PX)
        yield _box("downtime", begin, end, 22, bottom, marks.downtime.label)
    places = [across(mark.at) for mark in marks.iterations]
    for number in spread(places, _LEAST_LINE_PX):
        x, mark = places[number], marks.iterations[number]
        if window.low <= mark.at <= window.high:
            yield (
                f'<path class="iteration" d="M{x:.1f} 38V{bottom:.0f}">'
                f"<title>{plain(mark.told)}</title></path>"
            )
    widest = max((len(mark.label) for mark in marks.iterations), default=0)
    for number in spread(places, _LEAST_NUMBER_PX + _CHARACTER * widest):
        x, mark = places[number], marks.iterations[number]
        if window.low <= mark.at <= window.high:
            yield f'<text class="tick mid" x="{x:.1f}" y="34">{plain(mark.label)}</text>'
    if marks.iterations:
        yield f'<text class="tick end" x="{LEFT - 8}" y="34">iteration</text>'


def _silence(across: Scale, silence: Silence, bottom: float) -> str:
    begin, end = across(silence.at_ms), across(silence.at_ms + silence.duration_ms)
    end = max(end, begin + _LEAST_SPAN_PX)
    told = f"the guest was not heard for {silence.duration_ms:,.0f} ms"
    return _box("silence", begin, end, 38, bottom, told)


def _lines(across: Scale, marks: Marks, bottom: float) -> Iterator[str]:
    """The switchover, the steps, and the length of the longest stop."""
    if marks.switchover is not None:
        x = across(marks.switchover.at)
        yield (
            f'<path class="switch" d="M{x:.1f} 22V{bottom:.0f}">'
            f"<title>{plain(marks.switchover.label)}: {plain(marks.switchover.told)}</title></path>"
        )
        yield _beside(x, 48, marks.switchover.label, "name switching")
    for mark in marks.steps:
        x = across(mark.at)
        yield (
            f'<path class="step" d="M{x:.1f} 22V{bottom:.0f}">'
            f"<title>step {plain(mark.label)}: {plain(mark.told)}</title></path>"
        )
        yield f'<circle class="step" cx="{x:.1f}" cy="29" r="7.5"/>'
        yield f'<text class="stepnumber mid" x="{x:.1f}" y="32.5">{plain(mark.label)}</text>'
    longest = marks.longest
    if longest is not None:
        words = f"silent for {longest.duration_ms:,.0f} ms"
        yield _beside(across(longest.at_ms), 48, words, "name stopped", left=True)


def _beside(x: float, y: float, words: str, kind: str, left: bool = False) -> str:
    """Words to the right of a line or to its left; on the other side where they would not fit."""
    width = 5 + _width(words)
    left = x - width > LEFT if left else x + width > WIDTH - RIGHT
    place, anchor = (x - 4, " end") if left else (x + 4, "")
    return f'<text class="{kind} halo{anchor}" x="{place:.1f}" y="{y:.0f}">{plain(words)}</text>'


def _width(words: str) -> float:
    """About how wide *words* are; fonts differ, so rather too much."""
    return sum(_NARROW if c in "fijlrt.,:'() " else _WIDE if c in "mwGMCPU%" else _CHARACTER
               for c in words)  # fmt: skip


def _box(kind: str, begin: float, end: float, top: float, bottom: float, told: str = "") -> str:
    box = (
        f'<rect class="{kind}" x="{begin:.1f}" y="{top:.0f}" width="{max(0, end - begin):.1f}" '
        f'height="{max(0, bottom - top):.0f}"'
    )
    return f"{box}><title>{plain(told)}</title></rect>" if told else f"{box}/>"


def _lasting(milliseconds: float) -> str:
    return f"{milliseconds / 1000:,.1f} s"


def _track(place: tuple[Track, float, float], across: Scale) -> Iterator[str]:
    track, top, bottom = place
    up = _upwards(track, top, bottom)
    yield (
        f'<text class="title halo" x="{LEFT}" y="{top - 8:.0f}">{plain(track.title)} '
        f'<tspan class="unit">({plain(track.unit)})</tspan></text>'
    )
    for tick in up.ticks(5 if track.tall else 3):
        y = up(tick)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
        yield f'<text class="tick end" x="{LEFT - 8}" y="{y + 4:.1f}">{figure(tick)}</text>'
    yield f'<path class="axis" d="M{LEFT} {top:.0f}V{bottom:.0f}H{WIDTH - RIGHT}"/>'
    for layer in track.layers:
        yield from _series(layer, across, up)
    yield from _legend(track.layers, top - 8)


def _upwards(track: Track, top: float, bottom: float) -> Scale:
    values = [p[1] for layer in track.layers for p in (*layer.points, *layer.floor)]
    high = max([*values, track.most, 1e-9])
    positive = [value for value in values if value > 0]
    if track.logarithmic and positive:
        return Scale(min(positive) / 1.5, high * 1.5, bottom, top, logarithmic=True)
    high *= 1.0 if high == track.most else _ROOM
    return Scale(0, high, bottom, top)


def _series(layer: Layer, across: Scale, up: Scale) -> Iterator[str]:
    points = [(across(at), up(value)) for at, value in layer.points]
    if not points:
        return
    colour = f"c{layer.colour}"
    match layer.shape:
        case Shape.LINE | Shape.DASHED | Shape.RULE:
            yield f'<path class="{layer.shape.value} {colour}" d="{_path(points)}"/>'
        case Shape.STEPS:
            yield f'<path class="line {colour}" d="{_stairs(points, WIDTH - RIGHT)}"/>'
        case Shape.AREA | Shape.BAND | Shape.STACK:
            floor = [(across(at), up(value)) for at, value in layer.floor]
            edge = floor or [(points[0][0], up.begin), (points[-1][0], up.begin)]
            outline = _path([*points, *reversed(edge)])
            yield f'<path class="{layer.shape.value} {colour}" d="{outline}Z"/>'
            if layer.shape is Shape.AREA:
                yield f'<path class="line {colour}" d="{_path(points)}"/>'
        case Shape.DOTS:
            radius = 2.2 if len(points) < 300 else 1.2
            yield f'<path class="dots {colour}" d="{_dots(points)}" stroke-width="{2 * radius}"/>'


def _path(points: Sequence[Point]) -> str:
    """One line; a single point becomes a short one, so that it can be seen."""
    if len(points) == 1:
        points = [(points[0][0] - 1.5, points[0][1]), (points[0][0] + 1.5, points[0][1])]
    head, *tail = (f"{x:.1f} {y:.1f}" for x, y in points)
    return f"M{head}L{' '.join(tail)}"


def _stairs(points: Sequence[Point], end: float) -> str:
    """Level from each point to the next."""
    x, y = points[0]
    moves = [f"M{x:.1f} {y:.1f}"]
    moves += [f"H{x:.1f}V{y:.1f}" for x, y in points[1:]]
    last = min(end, points[-1][0] + 3)
    return "".join(moves) + f"H{last:.1f}"


def _dots(points: Sequence[Point]) -> str:
    """Lines of no length with round ends."""
    return "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)


def _legend(layers: Sequence[Layer], y: float) -> Iterator[str]:
    """To the right above the track, the first of the series first."""
    x = float(WIDTH - RIGHT)
    for layer in reversed([layer for layer in layers if layer.points]):
        yield f'<text class="halo end" x="{x:.1f}" y="{y:.0f}">{plain(layer.label)}</text>'
        x -= _width(layer.label) + 27
        middle = y - 4
        colour = f"c{layer.colour}"
        match layer.shape:
            case Shape.AREA | Shape.BAND | Shape.STACK:
                kind = f"{layer.shape.value} {colour}"
                yield f'<path class="{kind}" d="M{x:.1f} {middle - 5:.0f}h20v10h-20z"/>'
            case Shape.DOTS:
                dots = _dots([(x + 4, middle), (x + 16, middle)])
                yield f'<path class="dots {colour}" d="{dots}" stroke-width="5"/>'
            case _:
                kind = "line" if layer.shape is Shape.STEPS else layer.shape.value
                yield f'<path class="{kind} {colour}" d="M{x:.1f} {middle:.0f}h20"/>'
        x -= 16
