"""``vmtune virsh-args``: a profile in the words of ``virsh migrate``."""

from __future__ import annotations

import shlex
import subprocess

import click

from vmtune.client.complete import hosts, profiles, vms
from vmtune.client.connection.http import Document
from vmtune.client.session import CLEAN, Session, common, pass_session
from vmtune.client.vms import resolve
from vmtune.errors import InvalidInput, SetupError
from vmtune.model.tunables.virsh import (
    NotExpressed,
    VirshOption,
    VirshOptions,
    known_options,
    only_known,
)

_ANSWERS_WITHIN_S = 20.0


@click.command("virsh-args")
@click.argument("vm", shell_complete=vms)
@click.argument("destination", shell_complete=hosts)
@click.option("--profile", shell_complete=profiles, help="Profile instead of the assigned one.")
@click.option("--revision", type=click.IntRange(min=1), help="Older revision of the profile.")
@common
@pass_session
def virsh_args(
    session: Session, vm: str, destination: str, profile: str | None, revision: int | None
) -> int:
    """Print a profile as options of virsh migrate.

    For a migration of VM to the host DESTINATION, in a command line such as:
    virsh migrate --live --p2p $(vmtune virsh-args VM HOST) VM URI. Only options that the
    installed virsh supports are printed. Values without an option are listed on standard
    error; vmtune sets most of them itself when it observes the migration.
    """
    body = {"profile": profile, "revision": revision, "destination": destination}
    plan = session.client.post(f"/vms/{resolve(session.client, vm)}/plan", body)
    if plan["virsh"] is None:
        raise InvalidInput(
            f"{plan['host']} has no libvirt, so virsh cannot migrate its VMs",
            field="VM",
            code="not_libvirt",
            remedy="use `vmtune migrate`",
        )
    version = _virsh("--version").strip()
    said = only_known(_spoken(plan["virsh"]), known_options(_virsh("help", "migrate")), version)
    document = {
        "flags": said.words,
        "virsh": version,
        "not_expressed": [
            {"tunable": each.tunable, "wanted": each.value, "reason": each.reason}
            for each in said.not_expressed
        ],
    }
    session.show(document, lambda: [shlex.join(said.words)] if said.words else [])
    if not session.for_programs:
        for each in said.not_expressed:
            click.echo(f"{each.tunable}: {each.reason}", err=True)
    return CLEAN


def _spoken(document: Document) -> VirshOptions:
    """What the service says."""
    options = (VirshOption(**option) for option in document["options"])
    not_expressed = (
        NotExpressed(each["tunable"], each["wanted"]["value"], each["reason"])
        for each in document["not_expressed"]
    )
    return VirshOptions(tuple(options), tuple(not_expressed))


def _virsh(*arguments: str) -> str:
    """What the installed virsh answers.

    :raise SetupError: there is none, or it does not answer.
    """
    try:
        done = subprocess.run(
            ["virsh", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWERS_WITHIN_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SetupError(
            f"cannot run virsh: {error}",
            code="no_virsh",
            remedy="install libvirt-clients, or use `vmtune migrate`",
        ) from error
    return done.stdout
