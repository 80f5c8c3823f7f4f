"""Convergence steps as people give them: in words, in a file, and in a profile file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from vmtune.client.values import read_document
from vmtune.errors import InvalidInput

_C = TypeVar("_C", bound=Callable[..., Any])  # any: a command's function

RawSteps = list[object]
"""Steps as JSON; the service validates them."""

_SHAPE = "write a list of steps, or a table with a list named steps"


def step_options(command: _C) -> _C:
    """The options ``--step`` and ``--steps`` of a command."""
    in_words = click.option(
        "--step",
        "step_texts",
        multiple=True,
        metavar="'WHEN: WHAT'",
        help="Step for a migration that does not converge, such as 'after 4 iterations: "
        "downtime_limit=500ms', 'stalled 10s: max_bandwidth=1Gi', 'after 300s: postcopy'; also "
        "pause and abort. May be repeated; steps run in this order.",
    )
    in_file = click.option(
        "--steps",
        "steps_file",
        type=click.Path(path_type=Path),
        help="A .toml or .json file with a list of steps; steps of --step follow them.",
    )
    return in_words(in_file(command))


def given_steps(texts: Sequence[str], file: Path | None) -> RawSteps | None:
    """The steps that the options name; None where they name none.

    :raise InvalidInput: naming the file or the text that cannot be understood.
    """
    if not texts and file is None:
        return None
    stored: RawSteps = []
    if file is not None:
        document = read_document(file)
        stored = in_words(document.get("steps") if isinstance(document, dict) else document, file)
    return [*stored, *in_words(list(texts))]


def in_words(steps: object, file: Path | None = None) -> RawSteps:
    """*steps*, of which some may be in words, all as JSON.

    :param file: where they are from; none for the command line.
    """
    from vmtune.model.migration.step_text import read_step  # noqa: PLC0415 - a command starts in a blink

    if not isinstance(steps, list):
        raise InvalidInput("has no list of steps", field=str(file), remedy=_SHAPE)
    where = f"{file}: step" if file else "--step"
    return [
        read_step(step, f"{where} {number}") if isinstance(step, str) else step
        for number, step in enumerate(steps, start=1)
    ]
