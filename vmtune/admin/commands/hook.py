"""``vmtune install-hook`` and ``uninstall-hook``: libvirt's hook, on the host where it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from vmtune import hook
from vmtune.client.session import Session, common, pass_session
from vmtune.errors import InvalidInput
from vmtune.hook.install import FOLDER
from vmtune.units import Unit, UnitError, parse

_TOKEN_FILE = Path("/etc/vmtune/hook.token")
_FOLDER = click.option(
    "--hooks-dir",
    type=click.Path(path_type=Path),
    default=FOLDER,
    show_default=True,
    help="Folder of libvirt's hooks.",
)


@click.command("install-hook")
@click.option(
    "--fail-closed",
    is_flag=True,
    help="Refuse incoming VMs while the service is unavailable; default: accept them untuned.",
)
@click.option(
    "--timeout",
    default="1s",
    show_default=True,
    help="How long a migration may wait for the service: 0.5, 1s, 500ms.",
)
@click.option(
    "--service-url",
    metavar="URL",
    default="",
    help="Service on another host, by HTTPS; default: the service of this host, by --socket.",
)
@click.option(
    "--hook-token-file",
    type=click.Path(path_type=Path),
    default=_TOKEN_FILE,
    show_default=True,
    help="With --service-url: file of root's with a token of the scope hook.",
)
@click.option(
    "--ca-file",
    type=click.Path(path_type=Path),
    help="With --service-url: trust certificates of the authorities in this file alone; default: "
    "those that the system trusts.",
)
@_FOLDER
@common
@pass_session
def install_hook(
    session: Session,
    fail_closed: bool,
    timeout: str,
    service_url: str,
    hook_token_file: Path,
    ca_file: Path | None,
    hooks_dir: Path,
) -> None:
    """Install the libvirt hook that tunes VMs on the destination of a migration.

    The hook asks the service for the profile of each incoming VM, writes the values for the
    destination QEMU into the VM's XML and records the migration. --socket is the socket of the
    service; a service on another host is asked at --service-url. Run it again to change the options
    of the hook. Other hooks stay unchanged.
    """
    if ca_file is not None and not service_url:
        raise InvalidInput(
            "--ca-file is of no use without --service-url",
            field="ca_file",
            remedy="leave it out, or name the service with --service-url",
        )
    settings = hook.HookSettings(
        str(session.socket_path.absolute()),
        _limit_ms(timeout),
        fail_closed,
        service_url,
        str(hook_token_file.absolute()) if service_url else "",
        str(ca_file.absolute()) if ca_file is not None else "",
    )
    done = hook.install(settings, hooks_dir.absolute())
    document = {
        "path": str(done.path),
        **asdict(settings),
        "changed": done.changed,
        "reload_libvirt": done.first,
        "runs_after": str(done.before) if done.before else None,
    }
    session.show(document, lambda: _installed(done))


@click.command("uninstall-hook")
@_FOLDER
@common
@pass_session
def uninstall_hook(session: Session, hooks_dir: Path) -> None:
    """Remove the libvirt hook, and the folders that were created for it if they are empty.

    An edited hook and other hooks stay unchanged.
    """
    done = hook.uninstall(hooks_dir.absolute())
    document = {
        "path": str(done.path),
        "changed": done.changed,
        "folders": [str(folder) for folder in done.folders],
    }
    also = "".join(f", and {folder}" for folder in done.folders)
    session.report(
        document,
        f"removed {done.path}{also}" if done.changed else f"there is no hook at {done.path}",
    )


def _installed(done: hook.Installed) -> Iterator[str]:
    limit = f"{done.settings.limit_ms / 1000:g} s"
    yield f"{done.path} {'is installed' if done.changed else 'is unchanged'}"
    where = done.settings.url or done.settings.socket
    yield f"it asks the service at {where} and waits at most {limit}"
    if done.settings.fail_closed:
        yield "while the service is unavailable, incoming VMs are refused (--fail-closed)"
    else:
        yield "while the service is unavailable, incoming VMs are accepted untuned"
    if done.before is not None:
        yield f"{done.before} runs first; the vmtune hook gets its XML"
    if done.first:
        yield (
            "libvirt had no QEMU hook before and looks for hooks only when it starts or reloads: "
            "run `systemctl reload libvirtd` (or virtqemud)"
        )


def _limit_ms(text: str) -> int:
    """:raise InvalidInput: it is no duration."""
    try:
        return round(float(text) * 1000)
    except (ValueError, OverflowError):
        pass
    try:
        return parse(text, Unit.MS)
    except UnitError as error:
        raise InvalidInput(
            f"--timeout: {error}", field="timeout", remedy="write seconds, or 500ms"
        ) from None
