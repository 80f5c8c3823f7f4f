"""Draws the pictures of docs/explanation/traps.md: ``python -m docs.generator.traps``.

The values are simulated, with fixed seeds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "images"
WIDTH, HEIGHT, EDGE = 640, 180, 28
A, B, NEUTRAL, BAD = "#2b77c0", "#d9730d", "#8a8d90", "#c9302c"
Dot = tuple[float, float, str]


def picture(dots: Sequence[Dot], marks: Sequence[str] = (), words: str = "") -> str:
    """Dots at places from 0 to 1, lines between two values, and a line of words."""
    shown = "".join(
        f'<circle cx="{_x(x):.1f}" cy="{_y(y):.1f}" r="4" fill="{colour}" fill-opacity=".8"/>'
        for x, y, colour in dots
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="13"><rect width="{WIDTH}" height="{HEIGHT}" '
        f'fill="#fff"/><text x="{EDGE}" y="18" fill="#333">{words}</text>'
        f"{''.join(marks)}{shown}</svg>\n"
    )


def _x(share: float) -> float:
    return EDGE + share * (WIDTH - 2 * EDGE)


def _y(share: float) -> float:
    return HEIGHT - 14 - share * (HEIGHT - 50)


def line(x1: float, y1: float, x2: float, y2: float, colour: str, dashed: bool = False) -> str:
    """A line between two places."""
    dash = ' stroke-dasharray="6 4"' if dashed else ""
    return (
        f'<line x1="{_x(x1):.1f}" y1="{_y(y1):.1f}" x2="{_x(x2):.1f}" y2="{_y(y2):.1f}" '
        f'stroke="{colour}" stroke-width="2"{dash}/>'
    )


def order(draw: random.Random) -> str:
    """A host that becomes slower: all of A, then all of B; and in turns."""
    dots: list[Dot] = []
    for place in range(24):
        drift = 0.25 + 0.45 * (place % 12) / 11
        apart = place < 12
        colour = (A, B)[place % 12 >= 6] if apart else (A, B)[place % 2]
        x = place % 12 / 11 * 0.42 + (0 if apart else 0.55)
        dots.append((x, drift + draw.gauss(0, 0.05), colour))
    return picture(
        dots, words="Left: all of A, then all of B. Right: in turns. Same drifting host."
    )


def failing(draw: random.Random) -> str:
    """B's slow runs are given up, and what is left looks faster."""
    dots: list[Dot] = []
    for place in range(20):
        value = 0.45 + draw.gauss(0, 0.18)
        dots.append((0.02 + place / 19 * 0.4, value, A))
        other = 0.45 + draw.gauss(0, 0.18)
        dots.append((0.58 + place / 19 * 0.4, min(other, 0.6), BAD if other > 0.6 else B))
    limit = line(0.56, 0.6, 1, 0.6, BAD, dashed=True)
    return picture(dots, [limit], "B's runs above the limit were given up (red): not measured.")


def shapes(draw: random.Random) -> str:
    """Steady against two modes, with equal medians."""
    dots: list[Dot] = []
    for place in range(24):
        dots.append((0.02 + place / 23 * 0.4, 0.4 + draw.gauss(0, 0.015), A))
        mode = 0.38 if draw.random() < 0.6 else 0.85
        dots.append((0.58 + place / 23 * 0.4, mode + draw.gauss(0, 0.02), B))
    marks = [line(0, 0.4, 0.44, 0.4, NEUTRAL), line(0.56, 0.4, 1, 0.4, NEUTRAL)]
    return picture(dots, marks, "Equal medians (grey), other shapes: runs of B take a round more.")


def peeking(draw: random.Random) -> str:
    """The running difference of equal arms crosses a limit for a while."""
    best: list[float] = []
    while not any(abs(each) > 1.96 for each in best[5:20]) or abs(best[-1]) > 1.2:
        total, best = 0.0, []
        for count in range(1, 31):
            total += draw.gauss(0, 1)
            best.append(total / count**0.5)
    dots = [
        (n / 29, 0.5 + z / 6, BAD if abs(z) > 1.96 and n >= 5 else NEUTRAL)
        for n, z in enumerate(best)
    ]
    marks = [line(0, 0.5 + s * 1.96 / 6, 1, 0.5 + s * 1.96 / 6, BAD, dashed=True) for s in (-1, 1)]
    return picture(
        dots, marks, "Equal arms, a look after each block: outside of the lines by chance."
    )


def coarse(draw: random.Random) -> str:
    """Whole milliseconds of a few."""
    dots: list[Dot] = []
    for place in range(20):
        for side, level, colour in ((0.02, 2.6, A), (0.58, 3.4, B)):
            value = level + draw.gauss(0, 0.35)
            dots.append((side + place / 19 * 0.4, round(value) / 5, colour))
    marks = [line(0, ms / 5, 1, ms / 5, "#ddd") for ms in (1, 2, 3, 4)]
    return picture(dots, marks, "2.6 and 3.4 ms, shown in whole milliseconds.")


def many(draw: random.Random) -> str:
    """Twenty intervals of equal arms, one of which is beyond the margin by chance."""
    marks = [line(0, 0.4, 1, 0.4, NEUTRAL, True), line(0, 0.6, 1, 0.6, NEUTRAL, True)]
    dots: list[Dot] = []
    for place in range(20):
        middle = 0.5 + draw.gauss(0, 0.05) if place != 13 else 0.76
        x = 0.02 + place / 19 * 0.96
        colour = BAD if middle - 0.12 > 0.6 else A
        marks.append(line(x, middle - 0.12, x, middle + 0.12, colour))
        dots.append((x, middle, colour))
    return picture(
        dots, marks, "Twenty metrics of equal arms: one lies beyond the margin by chance."
    )


def wandering(draw: random.Random) -> str:
    """A history that wanders without a change, and one with a step."""
    dots: list[Dot] = []
    value = 0.0
    for place in range(100):
        value = 0.7 * value + draw.gauss(0, 0.7)
        left = place < 50
        level = 0.45 + (value * 0.09 if left else draw.gauss(0, 0.05) + (0.25 if place > 75 else 0))
        x = place % 50 / 49 * 0.44 + (0 if left else 0.55)
        dots.append((x, level, A if left or place <= 75 else B))
    return picture(dots, words="Left: nothing changed, runs resemble each other. Right: a step.")


PICTURES: dict[str, Callable[[random.Random], str]] = {
    "order": order,
    "failing": failing,
    "shapes": shapes,
    "peeking": peeking,
    "coarse": coarse,
    "many": many,
    "wandering": wandering,
}


def main() -> None:
    """Write them all."""
    for name, draw in PICTURES.items():
        simulated = random.Random(name)  # noqa: S311 - pictures
        (FOLDER / f"trap-{name}.svg").write_text(draw(simulated), "utf-8")


if __name__ == "__main__":
    main()
