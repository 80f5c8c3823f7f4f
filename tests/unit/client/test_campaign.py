"""``vmtune bench campaign`` against the real application."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.served.api import Api
from tests.unit.client.conftest import Vmtune
from vmtune.client.commands.bench.campaign import CampaignProgression, duration

PLAN = """
name = "mine"
title = "One against another"
blocks = 2
seed = 7
kvm = false

[scenario]
name = "mine/small"
vm = {memory_bytes = "64Mi"}
workload = {region_bytes = "16Mi"}
warmup_s = 0
cooldown_s = 0

[[arms]]
name = "stock"

[[arms]]
name = "tuned"
values = {multifd = true}
"""


@pytest.fixture
def plan(tmp_path: Path) -> str:
    file = tmp_path / "mine.toml"
    file.write_text(PLAN)
    return str(file)


def test_a_file_is_run_to_its_end_and_compared(real: Api, vmtune: Vmtune, plan: str) -> None:
    ran = vmtune("bench", "campaign", plan)
    assert ran.code == 0, ran.err
    assert "no verdict, only values: it has too few blocks" in ran.err
    assert "5 runs take about" in ran.err
    assert "insufficient data" in ran.out
    assert "B = tuned against A = stock, 2 blocks" in ran.out
    shown = vmtune("bench", "campaign", "show", "mine").out
    assert "5 of 5 runs" in shown
    assert "completed" in shown
    assert "mine" in vmtune("bench", "campaign", "list").out
    assert "insufficient data" in vmtune("compare", "mine").out
    id = vmtune("bench", "campaign", "show", "mine", "--json").document["id"]
    assert vmtune("bench", "campaign", "show", id[:6], "--json").document["id"] == id
    assert vmtune("bench", "campaign", "watch", id[:6]).code == 0
    assert "insufficient data" in vmtune("compare", id[:6]).out
    assert vmtune("compare", "stock", "tuned", "--campaign", id[:6]).code == 0
    late = vmtune("bench", "campaign", "cancel", "mine")
    assert late.code == 1
    assert "completed" in late.err


def test_more_blocks_in_the_place_of_the_files(real: Api, vmtune: Vmtune, plan: str) -> None:
    told = vmtune("bench", "campaign", "run", plan, "--dry-run", "--blocks", "6", "--seed", "9")
    assert "detectable difference:" in told.out
    assert "13 runs take about" in told.out
    detached = vmtune("bench", "campaign", plan, "--no-wait", "--json")
    assert detached.document["total"] == 5
    vmtune("bench", "campaign", "watch", detached.document["id"], "-q")
    ran = vmtune("bench", "campaign", "--json", plan)
    assert ran.document["state"] == "completed"


def test_a_file_that_ships_is_named(real: Api, vmtune: Vmtune) -> None:
    told = vmtune("bench", "campaign", "channels", "--dry-run")
    assert told.code == 0, told.err
    assert "runs take about" in told.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "none of that name comes with vmtune"),
        ("name = ", "is not TOML"),
        ("name = 2026-01-01", "dates"),
        ('name = "x"', "scenario"),
    ],
)
def test_a_bad_file_is_refused(
    real: Api, vmtune: Vmtune, tmp_path: Path, text: str | None, said: str
) -> None:
    file = tmp_path / "bad.toml"
    if text is not None:
        file.write_text(text)
    ran = vmtune("bench", "campaign", str(file))
    assert ran.code == 1
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert "no campaigns" in vmtune("bench", "campaign", "list").out


def test_how_far_it_is_is_told() -> None:
    shown = CampaignProgression()
    record: dict[str, Any] = {"name": "mine", "state": "paused", "reason": "no lab is up"}
    assert shown.read(record)
    assert shown.stage == "mine  paused: no lab is up"
    data = {"share": 0.5, "done": 2, "total": 5, "remaining_s": 600, "block": 1, "arm": "tuned"}
    shown.advance(data)
    assert (shown.share, shown.figures) == (0.5, "run 3 of 5, block 1, tuned; about 10 min left")
    shown.advance({**data, "share": 0.25, "block": 0})
    assert shown.share == 0.5
    assert "warm-up (not counted)" in shown.figures
    record["state"] = "completed"
    assert shown.read(record)
    assert shown.share == 1.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (119, "119 s"), (120, "2 min"), (7199, "120 min"), (12_000, "3 h 20 min")],
)
def test_times_are_told_in_words(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
