"""Validators of common kinds of settings: each takes a value of the file, or a variable's text, and
raises ValueError with what it expects."""

from __future__ import annotations

import re
from collections.abc import Callable


def list_of(what: str, pattern: re.Pattern[str]) -> Callable[[object], tuple[str, ...]]:
    """Takes a list of texts that fit *pattern*; a variable has them with commas between."""

    def accept(raw: object) -> tuple[str, ...]:
        if isinstance(raw, str):  # as a variable has it
            raw = [part.strip() for part in raw.split(",") if part.strip()]
        if not isinstance(raw, list):
            raise ValueError(f"expects a list of {what}, not {raw!r}")
        for one in raw:
            if not isinstance(one, str) or not pattern.fullmatch(one):
                raise ValueError(f"expects a list of {what}; {one!r} is none")
        return tuple(raw)

    return accept


def integers(what: str, most: int) -> Callable[[object], tuple[int, ...]]:
    """Takes a list of whole numbers from 0; a variable has them with commas between."""

    def accept(raw: object) -> tuple[int, ...]:
        if isinstance(raw, str):  # as a variable has it
            raw = [int(p) if p.strip().isascii() and p.strip().isdigit() else p
                   for p in raw.split(",") if p.strip()]  # fmt: skip
        if not isinstance(raw, list):
            raise ValueError(f"expects a list of {what}, not {raw!r}")
        for one in raw:
            if not isinstance(one, int) or isinstance(one, bool) or not 0 <= one <= most:
                raise ValueError(f"expects a list of {what}, 0 to {most}; {one!r} is none")
        return tuple(raw)

    return accept


def integer(least: int, most: int) -> Callable[[object], int]:
    """Takes a whole number within bounds."""

    def accept(raw: object) -> int:
        if isinstance(raw, str) and raw.strip().isascii() and raw.strip().isdigit():
            raw = int(raw) if len(raw) < 20 else most + 1
        if not isinstance(raw, int) or isinstance(raw, bool) or not least <= raw <= most:
            raise ValueError(f"expects a whole number from {least} to {most}, not {raw!r}")
        return raw

    return accept


def number(least: float, most: float) -> Callable[[object], float]:
    """Takes a number within bounds."""

    def accept(raw: object) -> float:
        try:
            value = float(raw) if isinstance(raw, str | int | float) else None
        except ValueError:
            value = None
        if value is None or isinstance(raw, bool) or not least <= value <= most:
            raise ValueError(f"expects a number from {least:g} to {most:g}, not {raw!r}")
        return value

    return accept


def truth(raw: object) -> bool:
    """Takes true or false, and the words for them that a variable may have."""
    words = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
    value = words.get(raw.lower()) if isinstance(raw, str) else raw
    if not isinstance(value, bool):
        raise ValueError(f"expects true or false, not {raw!r}")
    return value


def one_of(choices: tuple[str, ...]) -> Callable[[object], str]:
    """Takes one of some words."""

    def accept(raw: object) -> str:
        if raw not in choices:
            raise ValueError(f"{raw!r} is not one of {', '.join(choices)}")
        return str(raw)

    return accept
