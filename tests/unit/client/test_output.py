"""Tables: aligned when piped, within the terminal's width and whole otherwise."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from uuid import uuid4

import click
import pytest

from tests.support.examples import api_documents as docs
from vmtune.client.commands.tuning import plan
from vmtune.client.session import Session
from vmtune.client.views import render
from vmtune.client.views.output import Column, fields, line, paint, remedy, table

COLUMNS = (Column("NAME"), Column("SIZE", right=True), Column("WHY", wraps=True))
ROWS = [("a", "10 MiB", "short"), ("much_longer_name", "5 B", "because of this and of that " * 4)]
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
WHOLE_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return


def test_piped_tables_are_aligned_and_never_broken() -> None:
    head, first, second = table(COLUMNS, ROWS, "none")
    assert head == "NAME                SIZE  WHY"
    assert first == "a                 10 MiB  short"
    assert second.startswith("much_longer_name     5 B  because of this")
    assert second.endswith("of that")


def test_an_empty_table_says_so() -> None:
    assert list(table(COLUMNS, [], "no hosts")) == ["no hosts"]


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("width", [60, 80, 200])
def test_on_a_terminal_nothing_is_cut_off_and_nothing_is_too_wide(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = ESCAPES.sub("", "\n".join(table(COLUMNS, ROWS, "none")))
    assert max(map(len, text.splitlines())) <= width
    assert "much_longer_name" in text
    assert "…" not in text
    assert text.count("because") == 4


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("width", [80, 110, 200])
def test_nothing_is_cut_off_beside_several_columns_of_prose(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    columns = (Column("NAME"), Column("ONE", wraps=True), Column("TWO", wraps=True))
    rows = [("a_name_that_is_wider_than_prose_may_be", "one " * 12, "two " * 24)]
    text = ESCAPES.sub("", "\n".join(table(columns, rows, "none")))
    assert max(map(len, text.splitlines())) <= width
    assert (text.count("one"), text.count("two")) == (12, 24)
    assert rows[0][0] in text


@pytest.mark.usefixtures("terminal")
def test_a_plan_fits_80_columns_with_names_whole() -> None:
    document = docs.plan(False, docs.finding())
    document["items"][0]["tunable"] = "avail_switchover_bandwidth_bytes_per_s"
    text = ESCAPES.sub("", "\n".join(plan.lines(document)))
    above, below = text.split("blocker optmem_too_low")
    assert max(map(len, above.splitlines())) <= 80
    assert "avail_switchover_bandwidth_bytes_per_s" in above
    assert "remedy: run: sysctl -w net.core.optmem_max=1048576" in below


@pytest.mark.usefixtures("terminal")
def test_blockers_are_red_warnings_yellow_and_no_color_is_heeded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "\x1b[31m" in next(plan.finding_lines(docs.finding("blocker")))
    assert "\x1b[33m" in next(plan.finding_lines(docs.finding("warning")))
    assert "\x1b[" in paint("effective")
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint("effective") == "effective"
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", "\n".join(render.outcomes([docs.outcome()])))


@pytest.mark.usefixtures("terminal")
def test_a_long_value_goes_on_below_itself() -> None:
    lines = [
        click.unstyle(each) for each in fields([("state", "done"), ("intent", "so much " * 20)])
    ]
    assert lines[0] == "state:   done"
    assert all(len(each) <= 80 for each in lines)
    assert all(each.startswith(" " * 9 + "so much") for each in lines[2:])


@pytest.mark.usefixtures("terminal")
def test_a_long_problem_is_broken_between_words() -> None:
    row = {"field": "hosts.b", "message": "no connection " * 12, "remedy": "start it " * 12}
    lines = [click.unstyle(each) for each in render.problems([row])]
    assert len(lines) == 5
    assert all(len(each) <= 80 for each in lines)


@pytest.mark.usefixtures("terminal")
def test_a_command_that_is_to_be_run_stays_whole() -> None:
    command = "run: sysctl -w " + "net.core.rmem_max=1048576 " * 4
    assert list(remedy(command)) == [f"  remedy: {command}"]
    assert len(list(remedy("start it " * 12))) == 2


def test_fields_leave_out_what_is_empty() -> None:
    assert list(fields([("a", "1"), ("longer", "2"), ("none", "")])) == ["a:       1", "longer:  2"]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "-"),
        (0, "0 ms"),
        (9999, "9,999 ms"),
        (12345, "12.3 s"),
        (1_942_000, "32 min 22 s"),
        (9_000_000, "2 h 30 min"),
    ],
)
def test_milliseconds(count: int | None, text: str) -> None:
    assert render.milliseconds(count) == text


def test_a_figure_of_a_benchmark_keeps_its_tenths_of_a_second() -> None:
    assert render.metric("total_time_ms", 144_400) == "144.4 s"


def test_values_with_and_without_their_words() -> None:
    assert render.value("multifd_channels", 8) == "8"
    assert render.value("multifd", True) == "on"
    assert render.value("multifd", None) == "-"
    assert render.value("of_a_later_version", 5) == "5"
    assert render.value("multifd", docs.shown(True, "on")) == "on"


LIST = (
    Column("ID", id=True),
    Column("NAME"),
    Column("BEGUN", spare=2),
    Column("STATE"),
    Column("LABELS", wraps=True, spare=1),
    Column("PEER", spare=1),
)
LIST_ROWS = [
    ("5f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e10", "database-of-the-shop", "2026-11-25 02:15:20",
     "running", "tier=db zone=a", ""),
]  # fmt: skip


@pytest.mark.usefixtures("terminal")
def test_a_table_leaves_out_columns_instead_of_breaking_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "64")
    head, row, note = ESCAPES.sub("", "\n".join(table(LIST, LIST_ROWS, "none"))).splitlines()
    assert head.split() == ["ID", "NAME", "STATE", "LABELS"]
    assert row == "5f5b1f5e  database-of-the-shop  running  tier=db zone=a"
    assert note == "not shown: BEGUN; --wide shows all"  # the empty column is no loss
    monkeypatch.setenv("COLUMNS", "50")
    note = ESCAPES.sub("", list(table(LIST, LIST_ROWS, "none"))[-1])
    assert note == "not shown: BEGUN, LABELS; --wide shows all"


@pytest.mark.usefixtures("terminal")
def test_wide_shows_everything_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    with click.Context(click.Command("list"), obj=Session(wide=True)):
        head, row = ESCAPES.sub("", "\n".join(table(LIST, LIST_ROWS, "none"))).splitlines()
    assert head.split() == ["ID", "NAME", "BEGUN", "STATE", "LABELS", "PEER"]
    assert row.split("  ") == list(LIST_ROWS[0][:-1])


@pytest.mark.usefixtures("terminal")
def test_characters_of_double_width_stay_aligned() -> None:
    rows = [("東京", "x"), ("ab", "y")]
    _, first, second = ESCAPES.sub(
        "", "\n".join(table((Column("N"), Column("V")), rows, ""))
    ).splitlines()
    assert (first, second) == ("東京  x", "ab    y")


ENTRY = f"2026-11-26 02:35:03  #113  changed  start_migration  migration {uuid4()} (mail1)"


@pytest.mark.usefixtures("terminal")
def test_a_long_line_is_broken_at_the_terminals_width_with_short_ids() -> None:
    lines = list(line(f"    {ENTRY}, " + "and more of it, " * 9))
    assert len(lines) > 1
    assert all(len(each) <= 80 for each in lines)
    assert all(each.startswith("      ") for each in lines[1:])
    assert WHOLE_ID.search("".join(lines)) is None


def test_a_piped_line_stays_one() -> None:
    (piped,) = line(f"    {ENTRY}, " + "and more of it, " * 9)
    assert WHOLE_ID.search(piped) is None
