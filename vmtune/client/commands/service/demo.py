"""``vmtune demo``."""

from __future__ import annotations

import click

from vmtune.client.demo.demo import run
from vmtune.client.session import Session, common, pass_session


@click.command()
@click.option("--keep", is_flag=True, help="Keep lab and service up until Ctrl-C.")
@common
@pass_session
def demo(session: Session, keep: bool) -> int:
    """Migrate a real VM under two profiles, and compare.

    Brings up two libvirt hosts on this machine and a service of its own, and leaves nothing
    behind. Needs root.
    """
    return run(keep=keep, as_json=session.json, talks=session.talks)
