"""``vmtune demo``."""

from __future__ import annotations

import click

from vmtune.admin.demo.demo import run
from vmtune.client.session import Session, common, pass_session


@click.command()
@click.option("--keep", is_flag=True, help="Keep the lab and the service running until Ctrl-C.")
@common
@pass_session
def demo(session: Session, keep: bool) -> int:
    """Show what tuning does, with real VMs on this machine.

    Starts two libvirt hosts and a service on this machine, and removes them at the end.
    Needs root.
    """
    return run(keep=keep, as_json=session.json, verbose=session.shows_progress)
