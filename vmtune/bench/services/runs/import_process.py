"""The process that reads one imported file: it runs :func:`main`. On standard input are the
file's name as JSON, in a line, and the file; the result is pickled on standard output.

To read 44 MiB takes a minute and gigabytes. In a process of its own that stops neither the watched
migrations nor the lease, and when the machine runs out of memory, the kernel ends this process.
"""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import dataclass, replace

from vmtune.bench.model.runs.run import Run
from vmtune.bench.services.runs.files import read_run
from vmtune.errors import InvalidInput, Problem
from vmtune.services.heavy.process import be_modest
from vmtune.storage.repositories.bench.run_rows import PackedRecord, pack_record

MAX_HEAD_BYTES = 8 << 20
"""Of a run without its series: the service reads it again, where it serves others."""


@dataclass(frozen=True, slots=True)
class ReadRun:
    """A run without its record, and that ready to be stored."""

    run: Run
    packed: PackedRecord | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the file is no run."""

    message: str
    problems: tuple[Problem, ...]


def read(content: bytes, name: str) -> ReadRun:
    """The run in a file.

    :param name: what the file is called.
    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidInput(
            f"the body is not JSON: {why}", field="body", code="not_json", remedy="send one object"
        ) from error
    if not isinstance(document, dict):
        raise InvalidInput("the body is not a JSON object", field="body", remedy="send one object")
    run = read_run(document, name)
    head = replace(run, record=None)
    packed = pack_record(run.record)
    size = len(pickle.dumps(head)) + len(json.dumps(packed.head if packed else None))
    if size > MAX_HEAD_BYTES:
        raise InvalidInput(
            f"the run has {size:,} bytes besides its series, and {MAX_HEAD_BYTES:,} are the most",
            field="run",
            code="too_long",
            remedy="export the run anew",
        )
    return ReadRun(head, packed)


def main() -> None:
    """Read standard input, and write the :class:`ReadRun` or the :class:`Refusal`."""
    be_modest()
    result: ReadRun | Refusal
    try:
        name = json.loads(sys.stdin.buffer.readline())
        result = read(sys.stdin.buffer.read(), name)
    except InvalidInput as error:
        result = Refusal(error.message, error.problems)
    sys.stdout.buffer.write(pickle.dumps(result))
