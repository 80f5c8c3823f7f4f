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

_FOLDER = click.option(
    "--hooks-dir",
    type=click.Path(path_type=Path),
    default=FOLDER,
    show_default=True,
    help="Where libvirt looks for hooks.",
)


@click.command("install-hook")
@click.option(
    "--fail-closed",
    is_flag=True,
    help="Let no VM in while the service cannot be asked. Without it migrations go on.",
)
@click.option(
    "--timeout",
    default="1s",
    show_default=True,
    help="How long a migration may wait for the service: 0.5, 1s, 500ms.",
)
@_FOLDER
@common
@pass_session
def install_hook(session: Session, fail_closed: bool, timeout: str, hooks_dir: Path) -> None:
    """Have libvirt ask the service about each VM that arrives by live migration.

    What the VM's profile wants of the QEMU that receives it is put into the VM's XML, and the
    arrival is recorded. --socket says where the service listens. Run it again to change how the
    hook behaves. Other hooks are left alone.
    """
    settings = hook.HookSettings(str(session.socket_path.absolute()), _limit_ms(timeout),
                                 fail_closed)  # fmt: skip
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
    """Remove libvirt's hook, and folders that were made for it if nothing else is in them.

    One that somebody edited is left alone, and so are the hooks of others.
    """
    done = hook.uninstall(hooks_dir.absolute())
    document = {
        "path": str(done.path),
        "changed": done.changed,
        "folders": [str(folder) for folder in done.folders],
    }
    also = "".join(f", and {folder}" for folder in done.folders)
    session.say(
        document,
        f"removed {done.path}{also}" if done.changed else f"there is no hook at {done.path}",
    )


def _installed(done: hook.Installed) -> Iterator[str]:
    limit = f"{done.settings.limit_ms / 1000:g} s"
    yield f"{done.path} {'is installed' if done.changed else 'was installed so already'}"
    yield f"it asks the service at {done.settings.socket} and waits {limit} at most"
    if done.settings.fail_closed:
        yield "where the service cannot be asked, no VM is let in (--fail-closed)"
    else:
        yield "where the service cannot be asked, migrations go on without it"
    if done.before is not None:
        yield f"{done.before} runs first, and vmtune is told the XML as that leaves it"
    if done.first:
        yield (
            "libvirt had no hook for QEMU before, and looks for one when it starts or reloads: "
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
