"""Measurements that are kept as they end, so that a benchmark goes on where it was stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


class Kept:
    """Results by what was measured, a line of JSON each in one file.

    :param file: where they are kept; None keeps them for this run alone.
    :param where: what they are of, besides: builds and machine. Lines of another are left alone.
    """

    def __init__(self, file: Path | None, where: Mapping[str, Any]) -> None:
        self._file = file
        self._where = json.loads(json.dumps(where))
        self._found: dict[str, Any] = {}
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._read(file)

    def _read(self, file: Path) -> None:
        text = file.read_text() if file.exists() else ""
        whole, end, broken = text.rpartition("\n")
        if broken:  # it was stopped while it wrote
            file.write_text(whole + end)
        for line in whole.splitlines():
            row = json.loads(line)
            if row["where"] == self._where:
                self._found[row["what"]] = row["result"]

    def once(self, what: str, measure: Callable[[], Any]) -> Any:
        """The result, measured now if it is not there."""
        if what not in self._found:
            result = json.loads(json.dumps(measure()))
            self._found[what] = result
            if self._file is not None:
                row = {"what": what, "where": self._where, "result": result}
                with self._file.open("a") as file:
                    file.write(json.dumps(row) + "\n")
        return self._found[what]
