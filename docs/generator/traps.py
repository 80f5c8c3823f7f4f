"""Draws the pictures of docs/explanation/traps.md: ``python -m docs.generator.traps``.

The values are simulated, with fixed seeds.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "images"
WIDTH, HEIGHT, EDGE = 640, 180, 28
A, B, NEUTRAL, BAD = "#2b77c0", "#d9730d", "#8a8d90", "#c9302c"
Dot = tuple[float, float, str]
ARMS: Mapping[str, str] = {"A": A, "B": B}


def picture(
    dots: Sequence[Dot],
    marks: Sequence[str] = (),
    words: str = "",
    legend: Mapping[str, str] = ARMS,
    beneath: str = "run after run",
) -> str:
    """Dots at places from 0 to 1, lines between two values, a line of words, and what the colours
    and the direction to the right are."""
    shown = "".join(
        f'<circle cx="{_x(x):.1f}" cy="{_y(y):.1f}" r="4" fill="{colour}" fill-opacity=".8"/>'
        for x, y, colour in dots
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="13"><rect width="{WIDTH}" height="{HEIGHT}" '
        f'fill="#fff"/><text x="{EDGE}" y="18" fill="#333">{words}</text>'
        f'<text x="{EDGE}" y="{HEIGHT - 5}" fill="#777" font-size="11">{beneath} &#8594;</text>'
        f"{_legend(legend)}{''.join(marks)}{shown}</svg>\n"
    )


def _legend(colours: Mapping[str, str]) -> str:
    """At the right, beneath."""
    shown, right = "", float(WIDTH - EDGE)
    for name, colour in reversed(list(colours.items())):
        right -= 6 * len(name) + 22
        shown += (
            f'<circle cx="{right:.0f}" cy="{HEIGHT - 9}" r="4" fill="{colour}"/>'
            f'<text x="{right + 8:.0f}" y="{HEIGHT - 5}" fill="#333" font-size="11">{name}</text>'
        )
    return shown


def medians(dots: Sequence[Dot]) -> list[str]:
    """A line at the median of each colour, as wide as its dots lie."""
    marks = []
    for colour in dict.fromkeys(colour for _, _, colour in dots):
        of = [(x, y) for x, y, its in dots if its == colour]
        middle = statistics.median(y for _, y in of)
        marks.append(line(min(of)[0], middle, max(of)[0], middle, colour))
    return marks


def _x(share: float) -> float:
    return EDGE + share * (WIDTH - 2 * EDGE)


def _y(share: float) -> float:
    return HEIGHT - 20 - share * (HEIGHT - 56)


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
        dots,
        [*medians(dots[:12]), *medians(dots[12:])],
        "Equal arms on a drifting host, with their medians: one after the other; in turns.",
    )


def adjacent(draw: random.Random) -> str:
    """Blocks of two conditions on a host that wanders, in two orders."""
    dots: list[Dot] = []
    marks: list[str] = []
    for side, together in ((0.0, False), (0.55, True)):
        value, path = 0.0, []
        for _ in range(24):
            value = 0.85 * value + draw.gauss(0, 0.55)
            path.append(0.5 + value * 0.2)
        for block in range(6):
            one = draw.sample([A, B], 2)
            order = draw.choice([[*one, NEUTRAL, NEUTRAL], [NEUTRAL, NEUTRAL, *one]])
            if not together:
                order = draw.choice([[one[0], NEUTRAL, NEUTRAL, one[1]],
                                     [one[0], NEUTRAL, one[1], NEUTRAL],
                                     [NEUTRAL, one[0], NEUTRAL, one[1]]])  # fmt: skip
            places = [4 * block + n for n in range(4)]
            at = [(side + place / 23 * 0.42, path[place]) for place in places]
            first, second = (at[order.index(colour)] for colour in (A, B))
            marks.append(line(*first, *second, BAD))
            dots += [(*where, colour) for where, colour in zip(at, order, strict=True)]
    return picture(
        dots,
        marks,
        "Equal arms on a wandering host; lines join what is compared.",
        {**ARMS, "other condition": NEUTRAL},
        "apart within a block (left), next to each other (right)",
    )


def failing(draw: random.Random) -> str:
    """B's slow runs are given up, and what is left looks faster."""
    most, alike, apart = 0.52, False, 0.0
    dots: list[Dot] = []
    while not alike or apart < 0.08:
        slow = [0.45 + draw.gauss(0, 0.15) for _ in range(40)]
        middle, other = (statistics.median(part) for part in (slow[:20], slow[20:]))
        alike = abs(middle - other) < 0.02
        apart = middle - statistics.median(value for value in slow[20:] if value <= most)
        dots = [(0.02 + n / 19 * 0.4, value, A) for n, value in enumerate(slow[:20])]
        dots += [
            (0.58 + n / 19 * 0.4, min(value, most), BAD if value > most else B)
            for n, value in enumerate(slow[20:])
        ]
    limit = line(0.56, most, 1, most, BAD, dashed=True)
    measured = [dot for dot in dots if dot[2] != BAD]
    return picture(
        dots,
        [limit, *medians(measured)],
        "Equal arms; B's slow runs were given up: the others have a lower median.",
        {**ARMS, "given up": BAD},
    )


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
        dots,
        marks,
        "Equal arms, a look after each block: beyond the lines by chance.",
        {"difference": NEUTRAL, "would be told": BAD},
        "block after block",
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
        dots,
        marks,
        "Twenty metrics of equal arms, and the margin.",
        {"interval of B against A": A, "beyond by chance": BAD},
        "metric by metric",
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
    return picture(
        dots,
        words="Runs resemble each other, and nothing changed; a step.",
        legend={"before": A, "after": B},
    )


def signs(draw: random.Random) -> str:
    """The last 3 runs after a step of twice the spread, and by chance."""
    dots: list[Dot] = []
    for side, step in ((0.0, 2.0), (0.55, 0.0)):
        last = [0.0]
        while abs(sum(last) / 3 - 1.6) > 0.3:
            last = [step + draw.gauss(0, 1) for _ in range(3)]
        values = [*(draw.gauss(0, 1) for _ in range(32)), *last]
        dots += [
            (side + place / 34 * 0.42, 0.38 + 0.13 * value, B if place >= 32 else A)
            for place, value in enumerate(values)
        ]
    return picture(
        dots,
        words="The level rose by twice the spread (left); nothing changed (right).",
        legend={"runs before": A, "last three": B},
    )


PICTURES: dict[str, Callable[[random.Random], str]] = {
    "order": order,
    "failing": failing,
    "shapes": shapes,
    "peeking": peeking,
    "coarse": coarse,
    "many": many,
    "wandering": wandering,
    "adjacent": adjacent,
    "signs": signs,
}


def drawn(name: str) -> str:
    """The picture of that name."""
    return PICTURES[name](random.Random(name))  # noqa: S311 - pictures


def main() -> None:
    """Write them all."""
    for name in PICTURES:
        (FOLDER / f"trap-{name}.svg").write_text(drawn(name), "utf-8")


if __name__ == "__main__":
    main()
