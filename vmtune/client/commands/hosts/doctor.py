"""``vmtune doctor``: what of a host will hurt."""

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
@click.option("--all", "all_", is_flag=True, help="Show notes too, and what could not be seen.")
@common
@pass_session
def doctor(session: Session, host: str | None, all_: bool) -> int:
    """Say what of a host will hurt, and what mends it.

    Without HOST it looks at this machine and needs no service; with --url at every host of
    that service. Changes nothing. Exits 2 where there is something to mend.
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
    to_mend = [f for f in findings if f["severity"] != _INFO]
    if to_mend:
        yield f"{diagnosis['host']}: {_count(len(to_mend), 'thing')} to mend"
    else:
        yield paint(f"{diagnosis['host']}: nothing to mend", "green")
    yield from finding_lines(findings if all_ else to_mend)
    notes = len(findings) - len(to_mend)
    if all_:
        if unseen:
            yield ""
            yield "not seen:"
        for each in unseen:
            yield f"  {each['what']}: {each['why']}"
    elif notes or unseen:
        parts = [_count(notes, "note")] if notes else []
        parts += [f"{_count(len(unseen), 'thing')} that could not be seen"] if unseen else []
        yield ""
        yield f"{' and '.join(parts)}: --all shows them"


def finding_lines(findings: Iterable[Document]) -> Iterator[str]:
    """Findings: why each matters, what was seen and where, and what mends it."""
    for finding in findings:
        severity = finding["severity"]
        yield ""
        yield f"{paint(severity, _COLORS[severity])}  {finding['code']}"
        yield f"  {finding['message']}"
        yield f"  seen: {_evidence(finding['evidence'])}"
        yield f"  {finding['remedy']}"


def _evidence(evidence: Document) -> str:
    shown = [f"{name} {value}" for name, value in evidence.items() if name not in _HIDDEN]
    where = f" ({evidence['where']})" if "where" in evidence else ""
    return ", ".join(shown) + where


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
