"""``make bench``: what a benchmark prints is shown whole."""

from __future__ import annotations

import io
import json
import subprocess
from importlib.util import find_spec
from typing import Any

import pytest

from tests.perf import __main__ as runner


def test_the_json_line_is_shown_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check = {"metric": "time", "value": 1.0, "unit": "s", "bound": 2, "holds": True}
    line = json.dumps({"name": "quick", "checks": [check]})

    class Program:
        """A benchmark that has ended."""

        stdout = io.StringIO(f"one second\n{line}\n")

        def wait(self, within_s: float) -> int:
            return 0

    def started(*arguments: Any, **options: Any) -> Program:  # any: as subprocess has them
        return Program()

    monkeypatch.setattr(subprocess, "Popen", started)
    assert runner.run("quick", "tests.perf.quick") == [check]
    assert line in capsys.readouterr().out.splitlines()


def test_benchmarks_are_told_from_their_parts() -> None:
    found = runner.programs()
    assert {"stats_sim", "soak", "web"} <= found.keys()
    assert found["soak"] == "tests.perf.soak"
    assert found["stats_sim"] == "tests.perf.verdicts.stats_sim"
    parts = {"stats_traps", "stats_trends", "stats_signs", "otava", "dataset", "report"}
    assert not parts & found.keys()
    assert all(find_spec(module) for module in found.values())
