"""What the README says of the project is true of it."""

import re
from pathlib import Path

from vmtune.client.cli import PLACES
from vmtune.model.plan.outcome import Status
from vmtune.model.tunables.tunable import Route

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_every_route_has_a_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE)
    assert {route.value for route in Route} <= set(rows)


def test_every_outcome_is_named() -> None:
    for status in Status:
        assert f"*{status.value}*" in README


def test_its_commands_exist() -> None:
    commands = set(re.findall(r"^vmtune (\w[\w-]*)", README, re.MULTILINE))
    assert commands
    assert commands <= set(PLACES)


def test_its_make_targets_exist_and_ci_calls_its_test_command() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([\w-]+)", README)) <= targets
    assert "make test" in README
    assert (ROOT / ".ci/run").read_text().rstrip().endswith("exec make test")
