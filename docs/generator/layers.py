"""The drawing of the packages, from the import rules: ``python -m docs.generator.layers``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

CHECKOUT = Path(__file__).parents[2]
DRAWING = CHECKOUT / "docs" / "images" / "layers.svg"

_WIDTH, _BOX, _GAP, _PAD = 860, 30, 8, 12
_CHARACTER = 7.4


def contract(name: str) -> dict[str, Any]:  # any: TOML
    """An import contract of pyproject.toml, by its id."""
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    contracts: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return next(each for each in contracts if each["id"] == name)


def layers(name: str = "layers") -> list[list[str]]:
    """The packages of each layer, top first."""
    return [row.replace("|", ":").replace(" ", "").split(":") for row in contract(name)["layers"]]


def drawing() -> str:
    """The layers as SVG: what is higher imports what is lower."""
    shapes = []
    top = _PAD
    for row in layers():
        lines: list[list[tuple[str, float]]] = [[]]
        used = 0.0
        for package in row:
            width = len(package) * _CHARACTER + 2 * _PAD
            if lines[-1] and used + width + _GAP > _WIDTH - 4 * _PAD:
                lines.append([])
                used = 0.0
            lines[-1].append((package, width))
            used += width + _GAP
        height = len(lines) * (_BOX + _GAP) + _GAP
        shapes.append(
            f'<rect x="{_PAD}" y="{top}" width="{_WIDTH - 2 * _PAD}" height="{height}" '
            'rx="4" fill="#eef1f8" stroke="#b8c0d8"/>'
        )
        for number, line in enumerate(lines):
            left = float(2 * _PAD)
            y = top + _GAP + number * (_BOX + _GAP)
            for package, width in line:
                shapes.append(
                    f'<rect x="{left:.1f}" y="{y}" width="{width:.1f}" height="{_BOX}" rx="4" '
                    'fill="#ffffff" stroke="#3f51b5"/>'
                    f'<text x="{left + width / 2:.1f}" y="{y + 20}" text-anchor="middle">'
                    f"{escape(package)}</text>"
                )
                left += width + _GAP
        top += height + _GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top + _PAD}" '
        'role="img" font-family="monospace" font-size="12" fill="#1a1a1a">\n'
        "<title>Packages of vmtune by layer: each imports only from layers below</title>\n"
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    DRAWING.write_text(drawing())
