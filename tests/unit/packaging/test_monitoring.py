"""The dashboard and the alert rules ask for metrics that there are, by labels that they have, and
add services up as the table says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from vmtune.client.cli import COMMANDS
from vmtune.model.service_metrics import EXPORTED, Across, Exported, Kind

FOLDER = Path(__file__).parents[3] / "packaging/monitoring"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "grafana-dashboard.json").read_text())
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((FOLDER / "vmtune-alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
TARGETS = {"job", "instance"}
"""Labels that Prometheus adds."""
USED = re.compile(r"\b(vmtune_[a-z_]+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"')


def expressions() -> Iterator[tuple[str, str]]:
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for panel in PANELS:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


ALL = [pytest.param(text, id=name) for name, text in expressions()]


def row_of(series: str) -> Exported:
    """The metric that a series belongs to."""
    for row in EXPORTED.values():
        endings = ("_bucket", "_sum", "_count") if row.kind is Kind.HISTOGRAM else ("",)
        if series in {row.name + ending for ending in endings}:
            return row
    raise AssertionError(f"there is no metric {series}")


@pytest.mark.parametrize("text", ALL)
def test_an_expression_asks_for_what_there_is(text: str) -> None:
    assert text.count("(") == text.count(")")
    for series, matchers in USED.findall(text):
        row = row_of(series)
        for label, _, value in MATCHER.findall(matchers):
            assert label in {*row.labels, *TARGETS}, (series, label)
            known = row.labels.get(label, "")
            if isinstance(known, tuple):
                assert set(value.split("|")) <= set(known), (series, label, value)
    of_all = {label for series, _ in USED.findall(text) for label in row_of(series).labels}
    for grouped in re.findall(r"\bby \(([^)]*)\)", text):
        assert {name.strip() for name in grouped.split(",")} <= {*of_all, *TARGETS, "le"}


@pytest.mark.parametrize("text", ALL)
def test_an_expression_adds_services_up_as_the_table_says(text: str) -> None:
    for found in USED.finditer(text):
        before = re.search(r"(\w+)\s*(?:by \([^)]*\)\s*)?\(\s*$", text[: found.start()])
        function = before[1] if before else ""
        if row_of(found[1]).across is Across.MAX:
            assert function == "max", (found[1], function)
        else:
            assert function != "max", found[1]


def test_a_rate_is_taken_of_counters_and_of_nothing_else() -> None:
    for name, text in expressions():
        for series in re.findall(r"\b(?:rate|increase)\((vmtune_[a-z_]+)", text):
            assert row_of(series).kind is not Kind.GAUGE, (name, series)
        for series, _ in USED.findall(text):
            if row_of(series).kind is Kind.COUNTER:
                assert re.search(rf"\b(rate|increase)\({series}\b", text), (name, series)


def test_every_metric_is_on_the_dashboard() -> None:
    shown = " ".join(target["expr"] for panel in PANELS for target in panel["targets"])
    missing = [row.name for row in EXPORTED.values() if row.name not in shown]
    assert not missing


def test_an_alert_says_what_it_means_and_what_to_look_at() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"] and rule["annotations"]["description"]
        for command in re.findall(r"`vmtune (\w+)", rule["annotations"]["description"]):
            assert command in COMMANDS


def test_panels_do_not_lie_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not taken & cells, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
