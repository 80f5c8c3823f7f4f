"""``vmtune tune`` against the real application."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import pytest

from tests.support.served.api import Api
from tests.support.served.stub_service import StubService, page
from tests.unit.client.conftest import Vmtune
from vmtune.client.commands.tune.run import read_space
from vmtune.client.commands.tune.views import StudyProgression, tried
from vmtune.errors import InvalidInput

STUDY = """
name = "mine"
objective = "minimise total_time_ms where completed"
budget = {runs = 26}
confirm_blocks = 6
finalists = 1
rivals = false
seed = 7
kvm = false

[scenario]
name = "mine/small"
vm = {memory_bytes = "64Mi"}
workload = {region_bytes = "16Mi"}
warmup_s = 0
cooldown_s = 0

[space]
multifd = {}
multifd_channels = {low = 1, high = 8}
"""


@pytest.fixture
def study(tmp_path: Path) -> str:
    file = tmp_path / "mine.toml"
    file.write_text(STUDY)
    return str(file)


def test_a_file_is_run_to_its_end_and_told(real: Api, vmtune: Vmtune, study: str) -> None:
    ran = vmtune("tune", study)
    assert ran.code == 0, ran.err
    assert "mine: study" in ran.err
    assert "completed" in ran.out
    assert "result" in ran.out
    shown = vmtune("tune", "show", "mine").out
    assert "default" in shown
    assert "TOTAL_TIME_MS" in shown
    assert "importance:" in shown
    assert "mine" in vmtune("tune", "list").out
    document = vmtune("tune", "show", "mine", "--json").document
    assert document["items"][0]["origin"] == "default"
    assert document["result"]["finding"]
    assert document["analysis"]["goals"] == ["total_time_ms"]
    id = document["id"]
    assert vmtune("tune", "show", id[:6], "--json").document["id"] == id
    assert vmtune("tune", "watch", id[:6]).code == 0
    late = vmtune("tune", "cancel", "mine")
    assert late.code == 1
    assert "completed" in late.err


def test_options_stand_in_the_place_of_a_file(real: Api, vmtune: Vmtune) -> None:
    told = vmtune(
        "tune", "--scenario", "plain/1gbs.quick", "--objective", "minimise total_time_ms",
        "--vary", "multifd", "--vary", "multifd_channels=2..6", "--minutes", "10", "--dry-run",
    )  # fmt: skip
    assert told.code == 0, told.err
    assert "multifd, multifd_channels" in told.out
    assert "10 min" in told.out
    short = vmtune("tune", "--scenario", "plain/1gbs.quick")
    assert short.code == 1
    assert "--objective" in short.err
    assert "no studies" in vmtune("tune", "list").out


@pytest.mark.parametrize(
    "before", [("--json",), ("-o", "json"), ("-ojson",), ("--output=json",), ("-q", "-o", "json")]
)
def test_common_options_may_come_before_the_subcommand(
    service: StubService, vmtune: Vmtune, before: tuple[str, ...]
) -> None:
    service.on("GET", "/studies", page())
    ran = vmtune("tune", *before, "list")
    assert (ran.err, ran.document["items"]) == ("", [])
    service.on("GET", "/campaigns", page())
    ran = vmtune("bench", "campaign", *before, "list")
    assert (ran.err, ran.document["items"]) == ("", [])
    service.on("GET", "/forecasts/check", page(truncated=False))
    assert vmtune("forecast", *before, "check").document["items"] == []


def test_common_options_may_come_before_what_stands_for_run(
    real: Api, vmtune: Vmtune, study: str
) -> None:
    told = vmtune("tune", "-o", "json", study, "--dry-run")
    assert told.document["study"]["name"] == "mine"
    told = vmtune("tune", "-o", "json", "--runs", "30", study, "--dry-run")
    assert told.document["study"]["budget"]["runs"] == 30


@pytest.mark.parametrize("words", [("tune",), ("bench", "campaign"), ("forecast",)])
def test_each_page_of_help_is_found(vmtune: Vmtune, words: tuple[str, ...]) -> None:
    assert "Commands:" in vmtune(*words, "--help").out
    assert "Commands:" in vmtune(*words, "-q", "--help").out
    of_run = vmtune(*words, "run", "--help").out
    assert "Commands:" not in of_run
    assert vmtune(*words, "-o", "json", "x", "--help").out == of_run


def test_options_replace_what_the_file_says(real: Api, vmtune: Vmtune, study: str) -> None:
    told = vmtune("tune", study, "--runs", "30", "--vary", "xbzrle", "--dry-run", "--json")
    assert told.document["study"]["budget"] == {"runs": 30, "seconds": None}
    assert told.document["space"] == ["xbzrle"]
    detached = vmtune("tune", study, "--no-wait", "--json")
    assert detached.document["name"] == "mine"
    assert vmtune("tune", "cancel", "mine").code == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "no_file"),
        ("name = ", "is not TOML"),
        ('name = "x"', "scenario"),
        (STUDY.replace("multifd =", "multifdd ="), "multifd"),
    ],
)
def test_a_bad_file_is_refused(
    real: Api, vmtune: Vmtune, tmp_path: Path, text: str | None, said: str
) -> None:
    file = tmp_path / "bad.toml"
    if text is not None:
        file.write_text(text)
    ran = vmtune("tune", str(file), *(("--json",) if text is None else ()))
    assert ran.code == 1
    assert said in ran.err + ran.out
    assert "Traceback" not in ran.err
    assert "no studies" in vmtune("tune", "list").out


def test_what_is_varied_is_read() -> None:
    assert read_space(["multifd", "multifd_channels=1..8", "a=x,y", "b=1Mi..2Mi"]) == {
        "multifd": {},
        "multifd_channels": {"low": 1, "high": 8},
        "a": {"choices": ["x", "y"]},
        "b": {"low": "1Mi", "high": "2Mi"},
    }
    for wrong in ("a=", "a=1", "a=1..", "a=x,"):
        with pytest.raises(InvalidInput, match="between which values"):
            read_space([wrong])


def test_small_figures_of_trials_are_told_apart() -> None:
    figures = (4.31, 3.62, 0.0415, 99.94, 123.4, 123456.7, 12.0, 0.0)
    trials = [
        {"number": number, "finalist": False, "origin": "random", "runs": [{}], "texts": {},
         "medians": {"io_latency_p99_us": figure}}
        for number, figure in enumerate(figures)
    ]  # fmt: skip
    _, *rows = tried(trials, ["io_latency_p99_us"])
    assert [row.split()[3] for row in rows] == [
        "4.31", "3.62", "0.0415", "99.9", "123", "123,457", "12", "0",
    ]  # fmt: skip


def test_a_narrow_terminal_breaks_no_name_of_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    medians = {"total_time_ms": 1099.0, "source_cpu_ms": 235.0, "guest_silence_ms": 108.0}
    texts = {"multifd_compression": "zstd", "cpu_throttle_initial_percent": "40 %"}
    trial = {
        "number": 4, "finalist": True, "origin": "rival ovirt-minimal-downtime", "runs": [{}],
        "medians": medians, "texts": texts,
    }  # fmt: skip
    head, *rows, left_out = tried([trial], ["total_time_ms", "source_cpu_ms"])
    told = [click.unstyle(line) for line in (head, *rows)]
    assert max(map(len, told)) <= 80
    assert told[0].split() == ["TRIAL", "RUNS", "TOTAL_TIME_MS", "SOURCE_CPU_MS", "SETTINGS"]
    assert told[1].split()[:4] == ["4*", "1", "1,099", "235"]
    assert {*texts} < {*" ".join(told).split()}
    assert "ORIGIN, GUEST_SILENCE_MS; --wide shows all" in left_out


def test_how_far_it_is_is_told() -> None:
    shown = StudyProgression()
    record: dict[str, Any] = {"name": "mine", "state": "paused", "reason": "no lab is up"}
    assert shown.read(record)
    assert shown.stage == "mine  paused: no lab is up"
    data = {
        "share": 0.5, "phase": "searching", "runs": 4, "block": 2, "trial": 3, "origin": "sampled",
    }  # fmt: skip
    shown.advance(data)
    assert (shown.share, shown.figures) == (0.5, "run 5, block 2, trial 3 (sampled)")
    shown.advance({"share": 0.2, "waits": "it waits for the hours 22:00-06:00"})
    assert (shown.share, shown.figures) == (0.5, "it waits for the hours 22:00-06:00")
    shown.advance({"share": 0.9, "phase": "confirming", "done": 2, "total": 13})
    assert shown.figures == "confirming: run 3 of 13"
    record["state"] = "completed"
    assert shown.read(record)
    assert shown.share == 1.0
