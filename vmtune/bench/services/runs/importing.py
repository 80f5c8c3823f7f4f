"""Reads imported files in a process of their own, one at a time."""

from __future__ import annotations

import asyncio
import json
import pickle
import sys
from asyncio import sleep as pause
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import suppress

import structlog

from vmtune.bench.services.runs import import_process
from vmtune.bench.services.runs.import_process import ReadRun, Refusal
from vmtune.errors import InvalidInput, OperationInProgress

log = structlog.get_logger(__name__)

_WITHIN_S = 600.0
_MOST_BYTES_PER_S = 32 << 20
"""A file is taken in no faster, so that other requests do not wait behind it
(tests/perf/fleets/flood.py). A run of that size takes many times longer to be read."""
_PROGRAM = f"from {import_process.__name__} import main; main()"
_COMMAND = (sys.executable, "-P", "-c", _PROGRAM)  # -P: no module of the folder where it runs


class ImportReader:
    """Reads one file at a time: several at once could take all of the machine's memory."""

    def __init__(self) -> None:
        self._reading = asyncio.Lock()

    async def read(self, content: AsyncIterator[bytes], name: str) -> ReadRun:
        """The run in a file.

        :param content: of the file, in parts. It is passed on as it comes, and kept nowhere here.
        :param name: what the file is called.
        :raise InvalidInput: with a problem for each part that cannot be accepted; or it takes too
            much memory, or more than ten minutes.
        :raise OperationInProgress: another file is being read.
        """
        if self._reading.locked():
            raise OperationInProgress(
                "another run is being imported",
                field="body",
                code="import_running",
                remedy="import it when that has ended",
            )
        async with self._reading:
            process = await asyncio.create_subprocess_exec(
                *_COMMAND, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
            )
            try:
                async with asyncio.timeout(_WITHIN_S):
                    result = await _talk(process, name, content)
            except TimeoutError:
                result = b""
            finally:
                if process.returncode is None:
                    with suppress(ProcessLookupError):
                        process.kill()
                    await process.wait()
        return _accepted(result, process.returncode)


async def _talk(process: Process, name: str, content: AsyncIterator[bytes]) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it has ended: its status says how
        process.stdin.write(json.dumps(name).encode() + b"\n")
        async for part in content:
            process.stdin.write(part)
            await process.stdin.drain()
            await pause(len(part) / _MOST_BYTES_PER_S)
        process.stdin.close()
    result = await process.stdout.read()
    await process.wait()
    return result


def _accepted(result: bytes, status: int | None) -> ReadRun:
    if status != 0 or not result:
        log.warning("an import could not be read", status=status)
        raise InvalidInput(
            "the file could not be read within the memory and time that an import has",
            field="body",
            code="too_large_to_read",
            remedy="import a shorter run",
        )
    found = pickle.loads(result)  # noqa: S301 - of a process of our own
    if isinstance(found, Refusal):
        raise InvalidInput(found.message, problems=found.problems)
    assert isinstance(found, ReadRun)
    return found
