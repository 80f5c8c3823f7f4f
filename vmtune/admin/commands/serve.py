"""``vmtune serve``."""

from __future__ import annotations

from pathlib import Path

import click

from vmtune.api.serving.server import serve as run_service
from vmtune.client.service_options import service_options, settings
from vmtune.client.session import Session, common, pass_session


@click.command()
@click.option("--listen-port", type=int, help="TCP port on 127.0.0.1; 0 for none.")
@service_options
@common
@pass_session
def serve(
    session: Session,
    listen_port: int | None,
    config: Path | None,
    state_dir: Path | None,
    database_url: str | None,
) -> None:
    """Run the service in the foreground until SIGTERM or Ctrl-C.

    Options override VMTUNE_* variables, which override the settings file.
    """
    chosen = settings(
        config,
        {
            "socket_path": session.socket,
            "listen_port": listen_port,
            "state_dir": state_dir,
            "database_url": database_url,
        },
    )
    run_service(chosen)
