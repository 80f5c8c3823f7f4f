"""The ``vmtune`` command.

Subcommands are loaded when they are called, and nothing heavy is imported at the start.
Exit codes: 0 done and as wanted, 1 an error (also of usage), 2 differences, 130 Ctrl-C.
"""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Sequence

import click

from vmtune import __version__
from vmtune.client.error_output import complain, internal, usage
from vmtune.client.lazy import LazyGroup
from vmtune.client.session import CLEAN, ERROR, INTERRUPTED, Session, common
from vmtune.errors import VmtuneError

_MADE_BETWEEN_COLLECTIONS = 50_000
_HERE = "vmtune.client.commands."
PLACES = {
    "serve": (_HERE + "service.serve:serve", "Run the service."),
    "health": (_HERE + "service.health:health", "Say whether the service is well."),
    "demo": (_HERE + "service.demo:demo", "Migrate a real VM under two profiles, and compare."),
    "lab": (_HERE + "hosts.lab:lab", "Two libvirt hosts on this machine, to try things on."),
    "doctor": (_HERE + "hosts.doctor:doctor", "Say what of a host will hurt, and what mends it."),
    "host": (_HERE + "hosts.host:host", "Hosts that vmtune drives."),
    "service": (_HERE + "service.service:service", "Services that share a PostgreSQL database."),
    "vm": (_HERE + "hosts.vm:vm", "VMs on the hosts, their labels and history."),
    "tunables": (
        _HERE + "tuning.tunables:tunables",
        "List what can be tuned, or show one tunable.",
    ),
    "pack": (
        _HERE + "tuning.pack:pack",
        "Tunable packs: files that add tunables of a patched QEMU.",
    ),
    "profile": (_HERE + "tuning.profile:profile", "Profiles: named sets of tunable values."),
    "assign": (_HERE + "tuning.assign:assign", "Which profile is for which VM."),
    "explain": (_HERE + "hosts.vm:explain", "Say which profile a VM gets, and why."),
    "plan": (
        _HERE + "tuning.plan:plan",
        "Show what would be set on VM, and what stands against it.",
    ),
    "apply": (
        _HERE + "tuning.application:apply",
        "Set a profile's values on VM and read them back.",
    ),
    "verify": (_HERE + "tuning.application:verify", "Hold what VM runs with against its profile."),
    "revert": (_HERE + "tuning.application:revert", "Put back what was set before an application."),
    "application": (
        _HERE + "tuning.application:application",
        "What was applied to VMs, and what became of it.",
    ),
    "migrate": (_HERE + "migration.migrate:migrate", "Migrate VM live and follow it to its end."),
    "migration": (_HERE + "migration.migration:migration", "Migrations, running and past."),
    "evacuate": (
        _HERE + "migration.evacuate:evacuate",
        "Move all VMs of HOST to other hosts, live.",
    ),
    "evacuation": (_HERE + "migration.evacuation:evacuation", "Evacuations, running and past."),
    "virsh-args": (
        _HERE + "migration.virsh_args:virsh_args",
        "Print a profile as options of virsh migrate.",
    ),
    "bench": (_HERE + "bench.group:bench", "Measure, and look at what was measured."),
    "compare": (_HERE + "bench.compare:compare", "Say whether it helped: runs against runs."),
    "reference": (
        _HERE + "bench.reference:reference",
        "Published measurements, to hold own ones against.",
    ),
    "events": (_HERE + "service.events:events", "Show what changed, oldest first."),
    "token": (_HERE + "service.token:token", "Tokens: who may do what, from elsewhere."),
    "audit": (_HERE + "service.audit:audit", "Show who changed what and why, and who was refused."),
    "install-hook": (
        _HERE + "hosts.hook:install_hook",
        "Have libvirt ask the service about each VM that arrives by live migration.",
    ),
    "uninstall-hook": (_HERE + "hosts.hook:uninstall_hook", "Remove libvirt's hook."),
    "db": ("vmtune.admin.commands.db:db", "The service's databases: schema, backups, checks."),
    "completion": (_HERE + "service.completion:completion", "Print the shell's completion script."),
}
"""Each subcommand: where it is, and its line of help."""


@click.group(
    cls=LazyGroup,
    places=PLACES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done and as wanted, 1 an error, 2 differences.",
)
@click.version_option(__version__, prog_name="vmtune", message="%(prog)s %(version)s")
@common
def root() -> None:
    """Tuning profiles for libvirt and QEMU virtual machines: applied, proven, measured."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code. Errors are on stderr by then."""
    session = Session(json="--json" in arguments, debug="--debug" in arguments)
    try:
        result = root.main(list(arguments), "vmtune", standalone_mode=False, obj=session)
        return result if isinstance(result, int) else CLEAN
    except click.Abort:
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return ERROR
    except click.ClickException as error:
        complain(usage(error), session.json)
        return ERROR
    except VmtuneError as error:
        return _failed(error, error, session)
    except Exception as error:
        return _failed(error, internal(error), session)


def _failed(error: Exception, told: VmtuneError, session: Session) -> int:
    if session.debug:
        traceback.print_exception(error)
    complain(told, session.json)
    return ERROR


def main() -> None:
    """The entry point of the installed command."""
    # What is loaded stays: looking through it for garbage, time and again and once more at the
    # end, took half of the time in which a command that loads the service is over.
    gc.set_threshold(_MADE_BETWEEN_COLLECTIONS)
    code = run(sys.argv[1:])
    gc.freeze()
    sys.exit(code)
