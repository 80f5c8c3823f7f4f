"""What ``doctor`` and ``host add`` show of a host's findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from vmtune.client.connection.http import Document
from vmtune.client.views.output import paint

_COLORS = {"blocker": "red", "warning": "yellow", "info": "cyan"}
_INFO = "info"
_HIDDEN = ("where",)


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


def finding_lines(findings: Iterable[Document]) -> Iterator[str]:
    """Findings: why each matters, its evidence and its remedy."""
    for finding in findings:
        severity = finding["severity"]
        yield ""
        yield f"{paint(severity, _COLORS[severity])}  {finding['code']}"
        yield f"  {finding['message']}"
        yield f"  evidence: {_evidence(finding['evidence'])}"
        yield f"  remedy: {finding['remedy']}"


def _evidence(evidence: Document) -> str:
    shown = [f"{name} {value}" for name, value in evidence.items() if name not in _HIDDEN]
    where = f" ({evidence['where']})" if "where" in evidence else ""
    return ", ".join(shown) + where


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
