"""``vmtune doctor``: host diagnostics."""

from __future__ import annotations

from collections.abc import Iterator

import click

from vmtune.client.complete import hosts
from vmtune.client.connection.http import Document, segment
from vmtune.client.session import CLEAN, DIFFERENCES, Session, common, pass_session
from vmtune.client.views.diagnosis import diagnosis_lines, srcu_lines


@click.command()
@click.argument("host", required=False, shell_complete=hosts)
@click.option("--all", "all_", is_flag=True, help="Show notes too, and what could not be checked.")
@click.option(
    "--srcu",
    is_flag=True,
    help="Measure what updates of a VM's memory map cost on this machine (up to 10 s).",
)
@common
@pass_session
def doctor(session: Session, host: str | None, all_: bool, srcu: bool) -> int:
    """Host diagnostics: problems of a host and how to fix them.

    Without HOST it checks this machine and needs no service; with --url it checks every host
    of that service. Changes nothing. Exits 2 if there are problems.
    """
    if srcu and (host is not None or session.url):
        raise click.UsageError("--srcu measures this machine: leave out HOST and --url")
    found: list[Document]
    if host is None and not session.url:
        from vmtune.admin.doctor import diagnose_here  # noqa: PLC0415 - only without a service

        found = [diagnose_here(srcu=srcu)]
    elif host is not None:
        found = [session.client.get(f"/hosts/{segment(host)}/findings")]
    else:
        names = [row["name"] for row in session.client.items("/hosts")]
        found = [session.client.get(f"/hosts/{segment(name)}/findings") for name in names]
    one = host is not None or not session.url
    document = found[0] if one else {"items": found, "next": None}

    def lines() -> Iterator[str]:
        yield from diagnosis_lines(found, all_)
        if srcu:
            yield from srcu_lines(found[0]["srcu"])

    session.show(document, lines)
    return CLEAN if all(each["healthy"] for each in found) else DIFFERENCES
