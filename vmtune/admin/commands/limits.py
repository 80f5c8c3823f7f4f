"""``vmtune host apply-limits``: what the systemd unit of root runs on a host."""

from __future__ import annotations

from pathlib import Path

import click

from vmtune.api.wiring.limits import apply_limits
from vmtune.client.session import Session, common, pass_session


@click.command(hidden=True)
@click.argument("wishes", type=click.Path(path_type=Path))
@common
@pass_session
def apply_limits_command(session: Session, wishes: Path) -> None:
    """Set the limits that the service requests in the file WISHES. For the systemd unit of root."""
    found = apply_limits(wishes)
    session.report(found, ", ".join(f"{name} {value}" for name, value in found.items()))
