"""What ``doctor`` and ``host add`` show of a host's findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from vmtune.client.connection.http import Document
from vmtune.client.views.output import paint, prose

_COLORS = {"blocker": "red", "warning": "yellow", "info": "cyan"}
_INFO = "info"
_HIDDEN = ("where",)
_PERIODS = 9000


def diagnosis_lines(found: Sequence[Document], all_: bool) -> Iterator[str]:
    """Diagnoses of hosts, one after the other.

    :param all_: notes too, and the checks that could not run.
    """
    for number, diagnosis in enumerate(found):
        if number:
            yield ""
        yield from _one(diagnosis, all_)


def _one(diagnosis: Document, all_: bool) -> Iterator[str]:
    findings, skipped_checks = diagnosis["findings"], diagnosis["skipped_checks"]
    problems = [f for f in findings if f["severity"] != _INFO]
    if problems:
        yield f"{diagnosis['host']}: {_count(len(problems), 'problem')}"
    else:
        yield paint(f"{diagnosis['host']}: no problems", "green")
    yield from finding_lines(findings if all_ else problems)
    notes = len(findings) - len(problems)
    if all_:
        if skipped_checks:
            yield ""
            yield "not checked:"
        for each in skipped_checks:
            yield f"  {each['what']}: {each['why']}"
    elif notes or skipped_checks:
        parts = [_count(notes, "note")] if notes else []
        parts += (
            [f"{_count(len(skipped_checks), 'check')} that could not run"] if skipped_checks else []
        )
        yield ""
        yield f"{' and '.join(parts)}: --all shows them"


def srcu_lines(cost: Document) -> Iterator[str]:
    """What updates of a VM's memory map cost, beside the published figures."""
    yield ""
    spin = f"{_count(cost['vcpus'], 'vCPU')} spinning"
    yield f"updates of a VM's memory map, microseconds ({spin})"
    names = ("median", "p90", "p99", "most", "mean")
    yield f"  {'':24}{'timed':>7}" + "".join(f"{name:>10}" for name in names)
    for title, key in (
        ("add a slot", "add"),
        ("delete it", "delete"),
        ("add, no vCPU runs", "idle_add"),
        ("delete, no vCPU runs", "idle_delete"),
    ):
        times = cost[key]
        cells = "".join(f"{times[f'{name}_us']:>10,.0f}" for name in names)
        yield f"  {title:24}{times['count']:>7,}{cells}"
    yield ""
    yield f"  {'one grace period':54}{'us':>8}{'9,000 of them':>16}"
    rows = [("here, at the median", cost["grace_period_us"]), *_published(cost)]
    for title, each_us in rows:
        yield f"  {title:54}{each_us:>8,.0f}{each_us * _PERIODS / 1e6:>14,.1f} s"
    of_mean = 1e6 * cost["mean_boot_s"] / _PERIODS
    mean = "here, at the mean: with the host's other work"
    yield f"  {mean:54}{of_mean:>8,.0f}{cost['mean_boot_s']:>14,.1f} s"
    parameters = ", ".join(f"{name}={value}" for name, value in cost["parameters"].items())
    yield f"  srcutree: {parameters or 'this kernel has none of its parameters'}"
    if cost["default_parameters"]:
        usual = ", ".join(f"{name}={value}" for name, value in cost["default_parameters"].items())
        yield f"  Linux's defaults at CONFIG_HZ={cost['config_hz']}: {usual}"


def _published(cost: Document) -> list[tuple[str, float]]:
    return [
        (f"published, {kernel}", each_us)
        for kernel, each_us in cost["published_grace_period_us"].items()
    ]


def finding_lines(findings: Iterable[Document]) -> Iterator[str]:
    """Findings: why each matters, its evidence and its remedy."""
    for finding in findings:
        severity = finding["severity"]
        yield ""
        yield f"{paint(severity, _COLORS[severity])}  {finding['code']}"
        yield from prose(finding["message"], "  ")
        yield from prose(f"evidence: {_evidence(finding['evidence'])}", "  ")
        yield from prose(f"remedy: {finding['remedy']}", "  ")


def _evidence(evidence: Document) -> str:
    shown = [f"{name} {value}" for name, value in evidence.items() if name not in _HIDDEN]
    where = f" ({evidence['where']})" if "where" in evidence else ""
    return ", ".join(shown) + where


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
