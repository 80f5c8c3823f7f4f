"""Reports of comparisons: from runs to a document, and to what people read."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from html.parser import HTMLParser
from statistics import median
from uuid import uuid4
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.benchmarks.reports import ARMS, FLOOR, HERE, MADE_AT, plan, report, runs
from vmtune.bench.model.runs.run import Run, RunState
from vmtune.bench.report.build import CellPlan, Plan, build, report_run
from vmtune.bench.report.charts import column_axis, interval
from vmtune.bench.report.render import to_html, to_markdown
from vmtune.bench.report.report import Report, ReportArm, ReportRun, from_document, to_document
from vmtune.bench.report.tables import TextTable, raw_table, terminal_tables
from vmtune.errors import InvalidInput
from vmtune.rendering import render
from vmtune.rendering.scale import Scale as Axis
from vmtune.stats.model import Bound, Comparison, Effect, Scale, Verdict


def found(made: Report, cell: str, metric: str) -> Comparison:
    (of_cell,) = (each for each in made.cells if each.name == cell)
    (comparison,) = (each for each in of_cell.comparisons if each.metric == metric)
    return comparison


# building --------------------------------------------------------------------------------


def test_the_primary_metric_comes_first_and_is_judged_alone() -> None:
    made = report()
    for cell in made.cells:
        assert [c.criterion.primary for c in cell.comparisons] == [
            False,
            True,
            *[False] * (len(cell.comparisons) - 2),
        ]
    idle = found(made, "idle", "total_time_ms")
    assert (idle.verdict, idle.design.value, idle.size) == (Verdict.BETTER, "paired", 10)
    # Two cells: the primary metric was tested twice.
    assert idle.adjusted_p is not None
    assert (idle.a.arm, idle.b.arm) == ("stock", "tuned")


def test_failed_runs_are_counted_and_have_no_values() -> None:
    made = report()
    busy = found(made, "busy", "ring_full_exits")
    assert (busy.b.runs, busy.b.measured, busy.b.failed, busy.size) == (10, 9, 1, 10)
    assert [run.failure for run in made.lost] == ["QEMU on the destination ended (signal 9)"]


def test_values_of_a_failed_run_do_not_count() -> None:
    made = [
        replace(run, state=RunState.FAILED) if run.block == 4 and run.arm == "tuned" else run
        for run in runs()
    ]
    built = build(plan(), made, {"here": HERE}, MADE_AT)
    assert found(built, "idle", "total_time_ms").b.missing == 1


def test_three_blocks_have_values_and_no_verdict() -> None:
    made = report(blocks=3)
    verdicts = {c.verdict for cell in made.cells for c in cell.comparisons}
    assert verdicts == {Verdict.INSUFFICIENT_DATA}


def test_yes_and_no_are_compared_as_shares_and_whole_milliseconds_as_rounded() -> None:
    made = report()
    assert found(made, "idle", "converged").criterion.share
    assert found(made, "idle", "downtime_ms").criterion.resolution == 1
    assert found(made, "idle", "guest_write_mib_per_s").criterion.resolution == 0
    fine = [replace(r, values={**r.values, "downtime_ms": 38.25}) for r in runs() if r.counts]
    built = build(plan(), fine, {"here": HERE}, MADE_AT)
    assert found(built, "idle", "downtime_ms").criterion.resolution == 0


def test_a_noise_floor_counts_where_all_runs_were_made() -> None:
    assert found(report(), "idle", "downtime_ms").below_noise_floor is True
    other = build(plan(), runs(), {}, MADE_AT, [replace(FLOOR, environment="elsewhere")])
    assert found(other, "idle", "downtime_ms").below_noise_floor is None


def test_arms_of_other_campaigns_have_no_blocks_in_common() -> None:
    made = report(paired=False)
    assert found(made, "idle", "total_time_ms").design.value == "unpaired"


# environments ----------------------------------------------------------------------------


def test_different_environments_get_no_verdict_and_say_why() -> None:
    made = report(second_environment=True)
    assert {c.verdict for cell in made.cells for c in cell.comparisons} == {None}
    assert [(d.field, d.expected) for d in made.differences] == [("kernel.release", False)]
    assert made.withheld.startswith("the runs were made in 2 different environments (kernel.rel")
    assert found(made, "idle", "total_time_ms").effect is not None
    runs_of = {place.fingerprint: dict(place.runs) for place in made.environments}
    assert runs_of == {"here": {"stock": 20}, "there": {"tuned": 20}}


@pytest.mark.parametrize("expected", ["kernel", "kernel.release", ""])
def test_unless_they_differ_on_purpose(expected: str) -> None:
    made = report(second_environment=True, expected=(expected,))
    assert found(made, "idle", "total_time_ms").verdict is Verdict.BETTER
    assert made.withheld == ""
    assert made.differences[0].expected


def test_a_name_that_only_begins_alike_is_not_meant() -> None:
    assert report(second_environment=True, expected=("kern",)).withheld


def test_an_unknown_environment_is_another_one() -> None:
    some = [replace(run, environment="") if run.arm == "tuned" else run for run in runs()]
    made = build(plan(), some, {"here": HERE}, MADE_AT)
    assert made.withheld
    assert [d.field for d in made.differences] == ["environment"]
    assert "unknown" in made.differences[0].values
    none = [replace(run, environment="") for run in runs()]
    alike = build(plan(), none, {}, MADE_AT)
    assert not alike.withheld


# runs ------------------------------------------------------------------------------------


def run(state: RunState, **metrics: float) -> Run:
    return Run(
        uuid4(), "lab/idle", {}, {}, state, datetime(2026, 11, 21, tzinfo=UTC), metrics=metrics
    )


def test_a_run_that_ended_as_planned_counts_and_has_no_time_of_a_migration() -> None:
    made = report_run(
        run(RunState.PLANNED, elapsed_ms=2_000.0, guest_silence_ms=12), arm="ring", block=1
    )
    assert made.counts
    assert "converged" not in made.values  # it might have
    assert made.censored == ()
    assert "total_time_ms" not in made.values
    # Until now it was kept as a metric of the run.
    kept = report_run(run(RunState.PLANNED, converged=0.0), arm="ring")
    assert "converged" not in kept.values


PLANNED_PLAN = Plan(
    "planned",
    (ReportArm("a"), ReportArm("b")),
    (("a", "b"),),
    primary_metric="guest_write_mib_per_s",
)


def ended_as_planned(states: dict[str, RunState]) -> Report:
    """Ten blocks of a scenario that ends at its limit; in B the guest writes much more.

    :param states: of the first five runs of an arm, where it is another.
    """
    made = []
    for block in range(1, 11):
        for name, level in (("a", 500.0), ("b", 900.0)):
            state = states.get(name, RunState.PLANNED) if block <= 5 else RunState.PLANNED
            values = {
                "elapsed_ms": 20_000.0 + block,
                "guest_write_mib_per_s": level + 7 * block,
            }
            made.append(report_run(run(state, **values), arm=name, block=block))
    return build(PLANNED_PLAN, made, {}, MADE_AT)


def test_runs_that_ended_as_planned_have_succeeded() -> None:
    made = ended_as_planned({})
    rate = found(made, "", "guest_write_mib_per_s")
    assert (rate.verdict, rate.notes) == (Verdict.BETTER, ())
    assert rate.succeeded is None  # all have
    success = found(made, "", "converged")
    assert success.shares is not None
    assert (success.shares.a_count, success.shares.b_count) == (10, 10)


def test_one_that_completes_before_its_limit_succeeds_as_one_that_does_not() -> None:
    made = ended_as_planned({"a": RunState.COMPLETED})
    assert found(made, "", "converged").verdict is not Verdict.WORSE
    assert found(made, "", "guest_write_mib_per_s").verdict is Verdict.BETTER


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.NOT_CONVERGED])
def test_one_that_fails_among_those_that_ended_as_planned_has_not(state: RunState) -> None:
    made = ended_as_planned({"b": state})
    success = found(made, "", "converged")
    assert success.shares is not None
    assert (success.shares.a_count, success.shares.b_count) == (10, 5)
    assert success.verdict is Verdict.WORSE
    rate = found(made, "", "guest_write_mib_per_s")
    assert rate.verdict is None
    assert "5 of 10 runs of b succeeded" in rate.reason


def test_a_run_that_did_not_converge_has_its_limit_as_time() -> None:
    made = report_run(
        run(RunState.NOT_CONVERGED, elapsed_ms=30_011.0, iterations=9, guest_silence_ms=12),
        arm="stock",
        block=3,
    )
    assert made.values["total_time_ms"] == 30_011
    assert made.values["converged"] == 0
    assert set(made.censored) == {"total_time_ms", "elapsed_ms", "iterations", "guest_silence_ms"}
    done = report_run(run(RunState.COMPLETED, total_time_ms=400, elapsed_ms=420), arm="stock")
    assert done.censored == ()
    assert done.values["total_time_ms"] == 400


# the document ----------------------------------------------------------------------------


def test_the_document_is_read_back_to_the_same() -> None:
    for made in (report(), report(blocks=3), report(second_environment=True)):
        written = json.dumps(to_document(made), allow_nan=False)
        assert from_document(json.loads(written)) == made


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"format": "vmtune run"}, "format"),
        ({"version": 2}, "version"),
        ({"runs": "none"}, "runs"),
        ({"extra": 1}, "extra"),
        ({"primary_metric": float("nan")}, "file"),
    ],
)
def test_what_is_no_document_is_refused(change: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        from_document({**to_document(report(blocks=3)), **change})
    assert caught.value.problems[0].field == field
    assert caught.value.problems[0].remedy


def test_a_list_is_no_document() -> None:
    with pytest.raises(InvalidInput, match="this is not a vmtune comparison"):
        from_document([1])


# what people read ------------------------------------------------------------------------


def test_the_raw_values_are_all_that_a_reader_needs_to_compute_the_figures() -> None:
    made = report()
    raw = raw_table(made)
    names = [heading.title.lower() for heading in raw.headings]
    assert names == ["run", "cell", "arm", "block", "state", *(m.name for m in made.metrics)]
    rows = [dict(zip(names, row, strict=True)) for row in raw.rows]
    idle = {
        arm: {
            int(row["block"]): float(row["total_time_ms"])
            for row in rows
            if row["cell"] == "idle" and row["arm"] == arm
        }
        for arm in ("stock", "tuned")
    }
    d = [math.log(idle["tuned"][n] / idle["stock"][n]) for n in sorted(idle["stock"])]
    walsh = sorted((p + q) / 2 for i, p in enumerate(d) for q in d[i:])
    effect = found(made, "idle", "total_time_ms").effect
    assert effect is not None
    assert math.exp(median(walsh)) == pytest.approx(effect.estimate)
    # The interval is that of times rounded to a millisecond, so a little wider.
    assert math.exp(walsh[effect.rank - 1]) == pytest.approx(effect.low, rel=0.005)
    assert math.exp(walsh[-effect.rank]) == pytest.approx(effect.high, rel=0.005)
    assert any(row["total_time_ms"] == "> 30000" for row in rows)


def test_the_terminals_tables() -> None:
    idle, busy, cells, arms = terminal_tables(report())
    assert [row[0] for row in arms.rows] == ["stock", "tuned"]
    assert "profile fast" in arms.rows[1][1] or arms.rows[1][1]
    assert idle.title == "lab/idle: B = tuned against A = stock, 10 blocks"
    assert [len(row) for row in idle.rows] == [len(idle.headings)] * len(idle.rows)
    assert idle.rows[0][0] == "Completed"
    first = dict(zip([h.title for h in idle.headings], idle.rows[1], strict=True))
    assert first["METRIC"] == "Total time (primary)"
    assert first["VERDICT"] == "better"
    assert re.fullmatch(r"\d+ ms", first["A"])
    assert re.fullmatch(r"\d+ to \d+ ms", first["A'S QUARTILES"])
    (line,) = idle.lead
    assert re.fullmatch(r"Total time: better: tuned is \d+ % to \d+ % lower: beyond .*", line)
    inconclusive = [row for row in idle.rows if row[5] == "inconclusive"]
    assert inconclusive
    assert re.fullmatch(r"-\d+ to -\d+ %", first["95 % INTERVAL"])
    assert re.fullmatch(r"-\d+ %", first["B AGAINST A"])
    assert re.fullmatch(r"0\.\d+ times", first["B BY A"])
    assert any("1 of 10 runs of tuned did not succeed" in note for note in busy.notes)
    assert busy.lead[0].startswith("Completed: ")
    limited = next(row for row in busy.rows if row[0].startswith("Total time"))
    assert limited[1] == "> 30,000 ms"
    assert cells.title == "Total time in all cells: B = tuned against A = stock"
    assert [row[0] for row in cells.rows] == ["lab/idle", "lab/busy"]
    assert cells.rows[0][1:] == idle.rows[1][1:6]
    assert len(terminal_tables(report(cells=(CellPlan("idle"),)))) == 2


def test_an_arm_that_is_compared_with_nothing_shows_how_its_values_lie() -> None:
    alone = report(arms=ARMS[:1], against=())
    idle, busy, cells, _arms = terminal_tables(alone)
    assert idle.title == "lab/idle: stock, 10 runs, compared with nothing"
    first = dict(zip([h.title for h in idle.headings], idle.rows[1], strict=True))
    values = sorted(
        run.values["total_time_ms"] for run in runs() if (run.cell, run.arm) == ("idle", "stock")
    )
    assert first["METRIC"] == "Total time (primary)"
    assert first["LEAST"] == f"{values[0]:.0f} ms"
    assert first["MOST"] == f"{values[-1]:.0f} ms"
    assert first["RUNS"] == "10"
    assert [row[0] for row in cells.rows] == ["lab/idle", "lab/busy"]
    assert cells.rows[1][1:] == busy.rows[1][1:]
    assert all(cell.comparisons == () for cell in alone.cells)
    assert alone.notes == ()
    for text in (to_html(alone), to_markdown(alone)):
        assert "compared with nothing" in text
        assert first["QUARTILES"] in text
    assert from_document(json.loads(json.dumps(to_document(alone)))) == alone
    assert all(cell.spreads == () for cell in report().cells)


def test_a_difference_of_environments_is_told_before_anything_else() -> None:
    made = report(second_environment=True)
    first = terminal_tables(made)[0]
    # The first arm's environment comes first, whichever ran first.
    assert first.rows == (("kernel.release", "6.1.0-28-amd64", "6.12.9-amd64", "no"),)
    assert first.notes[0].startswith("No verdicts: ")
    for text in (to_html(made), to_markdown(made)):
        assert text.index("6.12.9-amd64") < text.index("Total time")
        assert text.count("what differs between the arms may be due to that") <= 4


def test_a_claim_below_the_noise_floor_is_marked() -> None:
    loud = replace(FLOOR, metric="total_time_ms", effect=4.0)
    made = build(plan(), runs(), {"here": HERE}, MADE_AT, [loud])
    assert "better, below the noise floor" in to_markdown(made)
    assert 'class="verdict better grey"' in to_html(made)
    assert 'class="verdict better grey"' not in to_html(report(cells=(CellPlan("idle"),)))


def test_markdown_has_every_run_and_every_value() -> None:
    made = report()
    raw = to_markdown(made).partition("## Raw values")[2]
    for each in made.runs:
        line = next(line for line in raw.splitlines() if line.startswith(f"| {each.run} "))
        assert line.count("|") == 6 + len(made.metrics)
        for value in each.values.values():
            assert (str(int(value)) if value == int(value) else repr(value)) in line


HOSTILE = '<script>alert("1")</script> & | ` *x* \n [a](b)'


def hostile() -> Report:
    arms = (ReportArm(HOSTILE, {"<b>": "</style><img src=x>"}), ARMS[1])
    made = [
        replace(
            each,
            arm=HOSTILE if each.arm == "stock" else each.arm,
            run=f"<i>{each.run}",
            failure=HOSTILE if each.failure else "",
        )
        for each in runs()
    ]
    return build(
        replace(plan(), title=HOSTILE, arms=arms, against=((HOSTILE, "tuned"),)),
        made,
        {"here": HERE},
        MADE_AT,
    )


class Balanced(HTMLParser):
    """Counts what is opened and closed, and keeps what a browser would load or run."""

    VOID = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loads += [
            name for name, _ in attrs if name in ("src", "href") or name.startswith("on")
        ]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


@pytest.mark.parametrize("kind", ["plain", "few", "environments", "hostile"])
def test_the_page_is_whole_and_needs_nothing_else(kind: str) -> None:
    made = {
        "plain": report,
        "few": lambda: report(blocks=3),
        "environments": lambda: report(second_environment=True),
        "hostile": hostile,
    }[kind]()
    page = to_html(made)
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert parser.loads == []
    assert not parser.tags & {"script", "img", "link", "iframe", "object", "i"}
    assert "url(" not in page
    assert "@import" not in page
    for drawn in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ElementTree.fromstring(drawn)  # well-formed
        assert "nan" not in drawn
        assert "inf" not in drawn
    shown = page.replace("&lt;i&gt;", "<i>")
    assert all(each.run in shown for each in made.runs)


def test_the_page_shows_every_run_and_every_failure() -> None:
    made = report()
    page = to_html(made)
    assert "Runs that failed: 1 of 40" in page
    assert page.count("QEMU on the destination ended (signal 9)") == 1
    for arm in made.arms:
        assert all(value in page for value in arm.facts.values())
    for metric in made.metrics:
        assert metric.measures.split(".")[0] in unescape(page)
    strip = re.findall(r"<h3>Total time <span.*?</svg>", page, re.DOTALL)[0]
    assert strip.count("<circle") == 20
    limits = sum("total_time_ms" in run.censored for run in made.runs)
    assert page.count("<title>more than 30,000 ms") == limits > 0
    assert page.count("<title>block ") == 10 + 9
    raw = page.partition("Raw values")[2]
    assert all(f">{each.run}</td>" in raw for each in made.runs)


def test_hostile_names_do_not_break_markdowns_tables() -> None:
    text = to_markdown(hostile())
    assert "<script>" not in text
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in tables}) <= 4


# plots -----------------------------------------------------------------------------------


@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e6),
    st.booleans(),
)
def test_ticks_are_few_and_on_the_axis(low: float, width: float, log: bool) -> None:
    low = abs(low) + 1e-3 if log else low
    axis = Axis(low, low + width, 10, 110, log)
    ticks = axis.ticks(4)
    assert len(ticks) <= 10
    assert all(low - 1e-6 * width <= tick <= low + width * (1 + 1e-6) for tick in ticks)
    places = [axis(tick) for tick in ticks]
    assert places == sorted(places)
    assert all(10 <= place <= 110 for place in places)


def drawn(low: float | None, high: float | None) -> str:
    effect = Effect(Scale.RATIO, 0.8, Bound.EXACT, low, high, 0.95, 1 / 1.05, 1.05)
    comparison = replace(found(report(), "idle", "total_time_ms"), effect=effect)
    return render("interval.svg", plot=interval(comparison, column_axis([comparison]), "words"))


def test_an_open_end_is_an_arrow_and_the_axis_holds_all_others() -> None:
    arrow = r'class="reach beyond" d="M([\d.]+) 7L(?!\1 )[\d.]+ 12L\1 17"'
    assert len(re.findall(arrow, drawn(0.7, 0.9))) == 0
    assert len(re.findall(arrow, drawn(None, 0.9))) == 1
    assert len(re.findall(arrow, drawn(0.7, None))) == 1
    assert len(re.findall(arrow, drawn(0.001, 900.0))) == 0
    assert drawn(None, None).count('class="reach') == 0


def test_a_report_of_nothing_is_a_report() -> None:
    nothing = build(Plan("nothing", ARMS, (("stock", "tuned"),)), (), {}, MADE_AT)
    assert found(nothing, "", "total_time_ms").verdict is Verdict.INSUFFICIENT_DATA
    assert "insufficient data" in to_html(nothing)
    assert "insufficient data" in to_markdown(nothing)
    assert isinstance(terminal_tables(nothing)[0], TextTable)


def test_runs_say_where_they_stand() -> None:
    made = ReportRun("r", "", "a", None, 0, RunState.COMPLETED, "", {})
    assert made.counts
    assert not replace(made, state=RunState.FAILED).counts
