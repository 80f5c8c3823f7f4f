"""A report as one HTML page that needs nothing else: no scripts, no fonts, no network. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from vmtune.bench.report.plots import (
    PLOT_ENDS_PX,
    Axis,
    axis_svg,
    blocks_axis,
    blocks_svg,
    interval_svg,
    ratio_axis,
    strip_svg,
)
from vmtune.bench.report.report import Report, ReportCell
from vmtune.bench.report.style import STYLE
from vmtune.bench.report.tables import TextTable, overview_tables, spread_tables
from vmtune.bench.report.text import heading, notes_of, pairs, raw_rows, shown
from vmtune.bench.report.words import (
    arm_texts,
    direction_text,
    effect_text,
    effect_words,
    floor_text,
    interval_text,
    p_text,
    quartile_texts,
    reason_text,
    runs_text,
    share_text,
    verdict_text,
)
from vmtune.stats.model import Comparison, Design, Scale, Verdict

_MARKS = {
    Verdict.BETTER: ("better", "\u25b2"),
    Verdict.WORSE: ("worse", "\u25bc"),
    Verdict.EQUIVALENT: ("equivalent", "="),
    Verdict.INCONCLUSIVE: ("inconclusive", "?"),
    Verdict.INSUFFICIENT_DATA: ("insufficient", "\u2026"),
    None: ("none", "\u2013"),
}

_METHOD = (
    "Each run is one measurement of its own (a fresh pair of VMs and one migration, one load on a "
    "fresh QEMU, or one boot), reduced to one value for each metric.",
    "<b>B/A</b> is the exponential of the Hodges-Lehmann shift of the logarithms: in blocks, the "
    "median of all (d<sub>i</sub> + d<sub>j</sub>) / 2 with i &le; j, where d is ln(B/A) of a "
    "block; otherwise the median of all ln(b) &minus; ln(a). Where a value is 0 or less, and for "
    "yes and no, it is the difference B &minus; A instead, on a scale of its own.",
    "<b>The interval</b> goes from the r-th smallest to the r-th largest of these, r being what "
    "the exact null distribution of Wilcoxon's signed rank test (in blocks) or of Mann and "
    "Whitney's (otherwise) gives for at least 95 %; the column r says which. A run at its limit "
    "counts as anything above it, a whole millisecond as anything that is rounded to it. Shares "
    "have Newcombe's interval and Boschloo's test.",
    "<b>The verdict</b>: better or worse where the interval lies beyond the margin (shaded), "
    "equivalent where it lies within, otherwise inconclusive. It needs 6 blocks, or 4 runs of "
    "each arm outside of blocks, and values from four fifths of the runs. An arm of which most "
    "runs did not converge is judged by the logrank test and, where every limit is above every "
    "value, by Boschloo's test of how many converged, each at 2.5 %.",
    "<b>p</b> is the two-sided p of that test for no difference at all; <b>adjusted</b>, by "
    "Benjamini and Hochberg among all metrics but the primary one. <b>Cliff's delta</b> is the "
    "share of pairs of a run of A and one of B in which B is the larger, minus the share in which "
    "it is the smaller.",
    "<b>The noise floor</b> is what identical arms showed on that host, in 95 % of cases less; a "
    "claim below it is grey.",
)


def to_html(report: Report) -> str:
    """The whole page."""
    body = "\n".join(_body(report))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(report.title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _body(report: Report) -> Iterator[str]:
    yield f"<h1>{escape(report.title)}</h1>"
    made = report.made_at.strftime("%Y-%m-%d %H:%M %Z").strip()
    yield f'<p class="dim">{len(report.runs)} runs, report made {escape(made)}</p>'
    yield from _environment(report)
    for cell in report.cells:
        for a, b in pairs(cell):
            yield from _primary(report, cell, a, b)
    if report.notes:
        notes = "".join(f"<li>{escape(note[0].upper() + note[1:])}.</li>" for note in report.notes)
        yield f"<ul>{notes}</ul>"
    for cell in report.cells:
        for a, b in pairs(cell):
            yield from _results(report, cell, a, b)
        for table in spread_tables(report, cell):
            yield from _plain(table)
        yield from _strips(report, cell)
    for table in overview_tables(report):
        yield from _plain(table)
    yield from _lost(report)
    yield from _arms(report)
    yield from _explained(report)
    yield from _raw(report)


def _environment(report: Report) -> Iterator[str]:
    """First of all: whether the runs are comparable."""
    if not report.differences:
        known = next((place.fingerprint for place in report.environments), "")
        where = f"<code>{escape(known)}</code>" if known else "of which nothing is known"
        yield f'<div class="card">All runs were made in one environment, {where}.</div>'
        return
    yield f'<div class="card{" warn" if report.withheld else ""}">'
    yield "<h2>The runs were made in different environments</h2>"
    if report.withheld:
        yield f"<p><b>No verdicts:</b> {escape(report.withheld)}.</p>"
    else:
        yield "<p>They differ on purpose; the verdicts below are given with that.</p>"
    heads = []
    for place in report.environments:
        runs = ", ".join(f"{count} of {escape(arm)}" for arm, count in place.runs.items())
        heads.append(f"<code>{escape(place.fingerprint or 'unknown')}</code><br>{runs}")
    rows = [
        [
            f"<code>{escape(each.field)}</code>",
            *(escape(shown(value)) for value in each.values),
            "on purpose" if each.meant else "",
        ]
        for each in report.differences
    ]
    yield _table(["Field", *heads, ""], rows)
    yield "</div>"


def _primary(report: Report, cell: ReportCell, a: str, b: str) -> Iterator[str]:
    found = _of(cell, a, b)
    for comparison in found:
        if not comparison.criterion.primary:
            continue
        metric = report.metric(comparison.metric)
        ratio = effect_words(comparison, metric)
        yield (
            f'<div class="card primary">{_verdict(comparison)}<p><b>{escape(metric.title)}</b>: '
            f'{_prose(comparison.reason)}.<br><span class="dim">{escape(ratio)}; '
            f"{escape(heading(cell, a, b, found))}</span></p></div>"
        )


def _results(report: Report, cell: ReportCell, a: str, b: str) -> Iterator[str]:
    found = _of(cell, a, b)
    axis = ratio_axis(found, *PLOT_ENDS_PX)
    yield f"<h2>{escape(heading(cell, a, b, found))}</h2>"
    yield '<div class="card wide">'
    ends = f'<span class="plot">{axis_svg(axis)}</span>'
    heads = ["Metric", f"A: {escape(a)}", f"B: {escape(b)}", "B against A", ends, "Verdict"]
    rows = [_row(report, comparison, axis) for comparison in found]
    yield _table(heads, rows, numbers={1, 2, 3})
    yield '<p class="dim">Medians, with the quartiles; B/A with its 95 % interval; shaded: the '
    yield "margin within which a difference does not matter.</p></div>"
    notes = list(notes_of(report, found))
    if notes:
        yield "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in notes) + "</ul>"
    yield from _figures(report, found)
    yield from _by_block(report, cell, found)


def _row(report: Report, comparison: Comparison, axis: Axis) -> list[str]:
    metric = report.metric(comparison.metric)
    estimate = effect_text(comparison.effect, metric)
    interval = interval_text(comparison.effect, metric)
    primary = ' <span class="dim">(primary)</span>' if comparison.criterion.primary else ""
    words = f"{metric.title}: {estimate}, interval {interval}"
    plot = "plot grey" if _is_grey(comparison) else "plot"
    return [
        f"{escape(metric.title)}{primary}",
        *(
            f'{escape(middle)}<br><span class="dim">{escape(quartiles)}</span>'
            for middle, quartiles in zip(
                arm_texts(comparison, metric), quartile_texts(comparison, metric), strict=True
            )
        ),
        f'{escape(estimate)}<br><span class="dim">{escape(interval)}</span>',
        f'<span class="{plot}">{interval_svg(comparison, axis, words)}</span>',
        f'{_verdict(comparison)}<span class="why">{_prose(reason_text(report, comparison))}</span>',
    ]


def _figures(report: Report, found: Sequence[Comparison]) -> Iterator[str]:
    """What the verdicts were computed from, for who wants to check them."""
    heads = [
        "Metric", "Runs of A", "Runs of B", "r", "Level", "Test", "p", "Adjusted",
        "Cliff's delta", "B better in", "Noise floor",
    ]  # fmt: skip
    rows = []
    for comparison in found:
        metric, effect, test = report.metric(comparison.metric), comparison.effect, comparison.test
        ranked = effect is not None and effect.rank > 0
        cells = (
            metric.title,
            runs_text(comparison.a),
            runs_text(comparison.b),
            f"{effect.rank} of {effect.differences}" if effect and ranked else "-",
            f"{100 * effect.level:.1f} %" if effect and effect.level else "-",
            test.name if test else "-",
            p_text(test.p) if test else "-",
            p_text(comparison.adjusted_p) if comparison.adjusted_p is not None else "-",
            f"{comparison.cliffs_delta:+.2f}" if comparison.cliffs_delta is not None else "-",
            share_text(comparison.better_share),
            floor_text(comparison, metric),
        )
        rows.append([escape(cell) for cell in cells])
    numbers = {1, 2, 3, 4, 6, 7, 8, 9}
    yield "<details><summary>Tests and figures</summary>"
    yield f'<div class="card wide raw">{_table(heads, rows, numbers=numbers)}</div></details>'


def _by_block(report: Report, cell: ReportCell, found: Sequence[Comparison]) -> Iterator[str]:
    """The primary metric's ratio in each block."""
    for comparison in found:
        effect = comparison.effect
        paired = comparison.design is Design.PAIRED and comparison.criterion.primary
        if not paired or effect is None or effect.scale is not Scale.RATIO:
            continue
        a, b = (
            {
                run.block: run.values[comparison.metric]
                for run in report.runs_of(cell.name, arm.arm)
                if run.counts and run.block is not None and comparison.metric in run.values
            }
            for arm in (comparison.a, comparison.b)
        )
        ratios = [(block, b[block] / a[block]) for block in sorted(a.keys() & b.keys())]
        axis = blocks_axis([ratio for _, ratio in ratios], effect.margin_high)
        title = report.metric(comparison.metric).title
        yield f'<div class="card"><h3>{escape(title)}: B/A in each block</h3>'
        yield f"{blocks_svg(comparison, ratios, axis)}</div>"


def _plain(table: TextTable) -> Iterator[str]:
    """A table without plots."""
    yield f"<h2>{escape(table.title)}</h2>"
    heads = [escape(heading.title.capitalize()) for heading in table.headings]
    numbers = {place for place, heading in enumerate(table.headings) if heading.right}
    rows = [[escape(cell) for cell in row] for row in table.rows]
    yield f'<div class="card wide">{_table(heads, rows, numbers=numbers)}</div>'


def _strips(report: Report, cell: ReportCell) -> Iterator[str]:
    """Every run of every arm, metric by metric."""
    order = dict.fromkeys(
        [each.metric for each in cell.comparisons] + [each.metric for each in cell.spreads]
    )
    base = {a for a, _ in pairs(cell)}
    yield f"<h2>Every run{': ' + escape(cell.title or cell.name) if cell.name else ''}</h2>"
    yield '<p class="dim">A point is a run, the line the median, the bar from quartile to '
    yield "quartile; an open arrow is a run at its limit, whose true value lies to its right.</p>"
    yield '<div class="strips">'
    for name in order:
        metric = report.metric(name)
        of = [c for c in cell.comparisons if c.metric == name and not c.criterion.share]
        summaries = {arm.arm: arm for c in of for arm in (c.a, c.b)}
        summaries |= {s.summary.arm: s.summary for s in cell.spreads if s.metric == name}
        arms = [
            (summary, list(report.runs_of(cell.name, arm))) for arm, summary in summaries.items()
        ]
        plot = strip_svg(metric, arms, base)
        if plot:
            way = direction_text(metric.direction)
            yield (
                f'<div class="card"><h3>{escape(metric.title)} <span class="dim">{escape(way)}'
                f"</span></h3>{plot}</div>"
            )
    yield "</div>"


def _lost(report: Report) -> Iterator[str]:
    if not report.lost:
        return
    rows = [
        [
            escape(text)
            for text in (
                run.run, run.cell, run.arm, "" if run.block is None else str(run.block),
                run.failure or run.state.value,
            )
        ]
        for run in report.lost
    ]  # fmt: skip
    yield f"<h2>Runs that failed: {len(rows)} of {len(report.runs)}</h2>"
    yield f'<div class="card wide">{_table(["Run", "Cell", "Arm", "Block", "Why"], rows)}</div>'


def _arms(report: Report) -> Iterator[str]:
    yield "<h2>Arms</h2>"
    for arm in report.arms:
        facts = "".join(
            f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in arm.facts.items()
        )
        yield f'<div class="card"><h3>{escape(arm.name)}</h3><dl>{facts}</dl></div>'
    if report.seed is not None:
        yield f'<p class="dim">{report.blocks} blocks were planned; the order of the runs was '
        yield f"drawn with the seed {report.seed}.</p>"


def _explained(report: Report) -> Iterator[str]:
    yield "<h2>How it was computed</h2>"
    yield "<ul>" + "".join(f"<li>{line}</li>" for line in _METHOD) + "</ul>"
    metrics = "".join(
        f"<dt>{escape(metric.title)}</dt><dd>{escape(metric.measures)} "
        f'<span class="dim">({escape(direction_text(metric.direction))})</span></dd>'
        for metric in report.metrics
    )
    yield f"<details><summary>What each metric is</summary><dl>{metrics}</dl></details>"


def _raw(report: Report) -> Iterator[str]:
    yield "<h2>Raw values</h2>"
    yield '<p class="dim">In each metric\'s unit, the last part of its name; &gt; marks a limit '
    yield "that the true value is above.</p>"
    heads = ["Run", "Cell", "Arm", "Block", "State", *(escape(m.name) for m in report.metrics)]
    rows = [[escape(cell) for cell in row] for row in raw_rows(report)]
    numbers = {3, *range(5, len(heads))}
    lost = {place for place, run in enumerate(report.runs) if not run.counts}
    yield f'<div class="card wide raw">{_table(heads, rows, numbers=numbers, lost=lost)}</div>'


def _of(cell: ReportCell, a: str, b: str) -> list[Comparison]:
    return [c for c in cell.comparisons if (c.a.arm, c.b.arm) == (a, b)]


def _is_grey(comparison: Comparison) -> bool:
    claimed = comparison.verdict in (Verdict.BETTER, Verdict.WORSE)
    return bool(claimed and comparison.below_noise_floor)


def _prose(text: str) -> str:
    """A sentence that is not broken before a percent sign."""
    return escape(text).replace(" %", "&nbsp;%")


def _verdict(comparison: Comparison) -> str:
    kind, mark = _MARKS[comparison.verdict]
    grey = " grey" if _is_grey(comparison) else ""
    return (
        f'<span class="verdict {kind}{grey}"><span aria-hidden="true">{mark}</span> '
        f"{escape(verdict_text(comparison))}</span>"
    )


def _table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: set[int] | frozenset[int] = frozenset(),
    lost: set[int] | frozenset[int] = frozenset(),
) -> str:
    """A table of what is HTML already.

    :param numbers: the columns whose cells stand at the right.
    :param lost: the rows that are marked.
    """

    number, marked = ' class="n"', ' class="lost"'

    def cells(kind: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{kind}{number if place in numbers else ''}>{cell}</{kind}>"
            for place, cell in enumerate(row)
        )

    body = "".join(
        f"<tr{marked if place in lost else ''}>{cells('td', row)}</tr>\n"
        for place, row in enumerate(rows)
    )
    return f"<table>\n<thead><tr>{cells('th', heads)}</tr></thead>\n<tbody>\n{body}</tbody></table>"
