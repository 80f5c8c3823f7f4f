"""The reference pages say all that the tables say."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields

import pytest

from docs.generator import cli, http_api, releases, settings, tables, traps, virsh
from docs.generator.hook import expanded
from docs.generator.markdown import cell, plain, prose
from vmtune.api.main import create_app
from vmtune.bench.model.metrics.table import METRICS
from vmtune.client.cli import COMMANDS
from vmtune.config.settings import Settings
from vmtune.model.access.scopes import MEANINGS
from vmtune.model.findings.table import FINDINGS
from vmtune.model.service_metrics import EXPORTED
from vmtune.model.tunables import virsh_options
from vmtune.model.tunables.built_in import BUILT_IN


def _anchors(page: str) -> list[str]:
    return re.findall(r"\{ #([\w-]+) \}", page)


@pytest.mark.parametrize(
    ("page", "table"),
    [
        (tables.tunables, BUILT_IN),
        (tables.findings, FINDINGS),
        (tables.benchmark_metrics, METRICS),
    ],
)
def test_each_row_has_its_section(page: object, table: Mapping[str, object]) -> None:
    assert callable(page)
    assert sorted(_anchors(page())) == sorted(table)


def test_each_metric_of_the_service_has_its_row() -> None:
    assert re.findall(r"^\| `(vmtune_\w+)` \|", tables.service_metrics(), re.M) == list(EXPORTED)


def test_each_option_of_virsh_has_its_row() -> None:
    rows = re.findall(r"^\| `(--[a-z0-9-]+)` \| ([a-z ]+) \| (.+) \|$", virsh.page(), re.M)
    assert [option for option, _, _ in rows] == sorted(virsh_options.ALL)
    told = {option: (kind, what) for option, kind, what in rows}
    assert told["--copy-storage-all"][0] == "tunable"
    assert "(tunables.md#copy_target_zero_disks)" in told["--migrate-disks-target-zero"][1]
    assert told["--tunnelled"][0] == "refused"


def test_each_pair_of_releases_has_a_row_for_each_profile_and_each_transport() -> None:
    seen = json.loads(releases.SEEN.read_text())
    rows = re.findall(r"^\| \w+: QEMU ([\d.]+), .* \| (.+) \|$", releases.page(), re.M)
    profiles = [
        pair["older_has"]["qemu"]
        for pair in seen
        for _ in {each["profile"] for each in pair["migrations"]} | {*pair.get("failed", [])}
    ]
    transports = [
        (pair["older_has"]["qemu"], ", ".join(succeeded))
        for pair in seen
        for succeeded in pair["transports"].values()
    ]
    assert [older for older, _ in rows[: len(profiles)]] == profiles
    assert rows[len(profiles) :] == transports
    named = re.findall(r"tunables\.md#(\w+)", releases.page())
    assert named and set(named) <= set(BUILT_IN)


def test_each_setting_has_its_section() -> None:
    assert set(_anchors(settings.page())) == {field.name for field in fields(Settings)}


def test_each_command_is_on_the_page() -> None:
    anchors = _anchors(cli.page())
    assert set(COMMANDS) <= set(anchors)
    assert "db-backup" in anchors
    assert len(anchors) == len(set(anchors))


def test_each_route_has_its_section_with_its_scope() -> None:
    page = http_api.page()
    documented = {
        f"{method.upper()} {path}"
        for path, operations in create_app(Settings()).openapi()["paths"].items()
        for method in operations
    }
    assert set(re.findall(r"^### `(\w+ \S+)`", page, re.M)) == documented
    assert len(_anchors(page)) == len(set(_anchors(page))) == len(documented)
    part = page.split("### `POST /api/v1/migrations`")[1].split("###")[0]
    assert "Scope: `migrate`" in part
    assert all(f"| `{scope}` |" in page for scope in MEANINGS)


def test_the_navs_patterns_are_spelt_out() -> None:
    nav = [{"Home": "index.md"}, {"Guides": ["b/2.md", "b/*.md"]}, {"More": "c.md"}]
    pages = ["b/1.md", "b/2.md", "b/3.md", "c.md", "index.md"]
    assert expanded(nav, pages) == [
        {"Home": "index.md"},
        {"Guides": ["b/2.md", "b/1.md", "b/3.md"]},
        {"More": "c.md"},
    ]


def test_text_is_not_taken_for_markup() -> None:
    assert plain("<b> *x* a_b [1]") == r"&lt;b&gt; \*x\* a\_b \[1\]"
    assert prose("a_b, `a_b`, <c>") == r"a\_b, `a_b`, &lt;c&gt;"
    assert cell("a | b\nc") == r"a \| b c"


def test_each_trap_has_the_picture_that_is_drawn_of_it() -> None:
    page = (traps.FOLDER.parent / "explanation/traps.md").read_text("utf-8")
    shown = re.findall(r"trap-(\w+)\.svg", page)
    assert sorted(shown) == sorted(traps.PICTURES)
    for name in traps.PICTURES:
        file = traps.FOLDER / f"trap-{name}.svg"
        drawn = traps.drawn(name)
        assert file.read_text("utf-8") == drawn, f"run python -m docs.generator.traps for {name}"
        heights = [float(y) for y in re.findall(r'cy="(-?[0-9.]+)"', drawn)]
        assert min(heights) >= 20, name  # below the words
        assert max(heights) <= traps.HEIGHT, name
