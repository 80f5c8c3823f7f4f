"""``vmtune doctor``: host diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import click

from vmtune.client.complete import hosts
from vmtune.client.connection.http import Document, segment
from vmtune.client.session import CLEAN, DIFFERENCES, Session, common, pass_session
from vmtune.client.views.output import paint

_COLORS = {"blocker": "red", "warning": "yellow", "info": "cyan"}
_INFO = "info"
_HIDDEN = ("where",)


@click.command()
@click.argument("host", required=False, shell_complete=hosts)
@click.option("--all", "all_", is_flag=True, help="Show notes too, and what could not be checked.")
@common
@pass_session
def doctor(session: Session, host: str | None, all_: bool) -> int:
    """Host diagnostics: problems of a host and how to fix them.

    Without HOST it checks this machine and needs no service; with --url it checks every host
    of that service. Changes nothing. Exits 2 if there are problems.
    """
    found: list[Document]
    if host is None and not session.url:
        from vmtune.admin.doctor import diagnose_here  # noqa: PLC0415 - only without a service

        found = [diagnose_here()]
    elif host is not None:
        found = [session.client.get(f"/hosts/{segment(host)}/findings")]
    else:
        names = [row["name"] for row in session.client.items("/hosts")]
        found = [session.client.get(f"/hosts/{segment(name)}/findings") for name in names]
    one = host is not None or not session.url
    document = found[0] if one else {"items": found, "next": None}
    session.show(document, lambda: _lines(found, all_))
    return CLEAN if all(each["healthy"] for each in found) else DIFFERENCES


def _lines(found: Sequence[Document], all_: bool) -> Iterator[str]:
    for number, diagnosis in enumerate(found):
        if number:
            yield ""
        yield from _one(diagnosis, all_)


def _one(diagnosis: Document, all_: bool) -> Iterator[str]:
    findings, unseen = diagnosis["findings"], diagnosis["unseen"]
    problems = [f for f in findings if f["severity"] != _INFO]
    if problems:
        yield f"{diagnosis['host']}: {_count(len(problems), 'problem')}"
    else:
        yield paint(f"{diagnosis['host']}: no problems", "green")
    yield from finding_lines(findings if all_ else problems)
    notes = len(findings) - len(problems)
    if all_:
        if unseen:
            yield ""
            yield "not checked:"
        for each in unseen:
            yield f"  {each['what']}: {each['why']}"
    elif notes or unseen:
        parts = [_count(notes, "note")] if notes else []
        parts += [f"{_count(len(unseen), 'check')} that could not run"] if unseen else []
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
