"""The ``vmtune`` command.

Subcommands are loaded when they are called, and nothing heavy is imported at the start.
Exit codes: 0 success, 1 error (also of usage), 2 differences, 130 Ctrl-C.
"""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Mapping, Sequence

import click

from vmtune import __version__
from vmtune.client.error_output import internal_error, print_error, usage_error
from vmtune.client.lazy import LazyGroup
from vmtune.client.session import CLEAN, ERROR, INTERRUPTED, Session, common, wants_json
from vmtune.errors import VmtuneError

_HINT_WITHIN_S = 2.0
_MADE_BETWEEN_COLLECTIONS = 50_000
_HERE = "vmtune.client.commands."
_ADMIN = "vmtune.admin.commands."  # by name alone: the client imports nothing of it
COMMANDS = {
    "serve": (_ADMIN + "serve:serve", "Run the service."),
    "health": (_HERE + "service.health:health", "Check the health of the service."),
    "demo": (_ADMIN + "demo:demo", "Show what tuning does, with real VMs on this machine."),
    "lab": (_ADMIN + "lab:lab", "Two libvirt hosts on this machine, for experiments."),
    "doctor": (
        _ADMIN + "doctor:doctor",
        "Host diagnostics: problems of a host and how to fix them.",
    ),
    "host": (_HERE + "hosts.host:host", "Hosts that vmtune manages."),
    "service": (_HERE + "service.service:service", "Services that share a PostgreSQL database."),
    "vm": (_HERE + "hosts.vm:vm", "VMs of the hosts, their labels and history."),
    "tunables": (
        _HERE + "tuning.tunables:tunables",
        "List the tunables, or show one.",
    ),
    "pack": (
        _ADMIN + "pack:pack",
        "Tunable packs: files that add the tunables of a patched QEMU.",
    ),
    "profile": (_HERE + "tuning.profile:profile", "Profiles: named sets of tunable values."),
    "assign": (_HERE + "tuning.assign:assign", "Assignments: which VM gets which profile."),
    "explain": (_HERE + "hosts.vm:explain", "Show which profile a VM gets, and why."),
    "plan": (
        _HERE + "tuning.plan:plan",
        "Show what would change on VM, and what blocks it.",
    ),
    "apply": (
        _HERE + "tuning.application:apply",
        "Apply a profile to VM and read the values back.",
    ),
    "verify": (
        _HERE + "tuning.application:verify",
        "Compare the values that VM runs with to its profile.",
    ),
    "revert": (
        _HERE + "tuning.application:revert",
        "Restore the values from before an application.",
    ),
    "application": (
        _HERE + "tuning.application:application",
        "Applications of profiles to VMs, and their outcomes.",
    ),
    "forecast": (
        _HERE + "migration.forecast:forecast",
        "Forecasts of migrations, and how good they were.",
    ),
    "migrate": (_HERE + "migration.migrate:migrate", "Migrate VM live and watch the migration."),
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
    "bench": (_HERE + "bench.group:bench", "Run benchmarks and show their results."),
    "tune": (
        _HERE + "tune.group:tune",
        "Find better settings for a scenario, and prove that they are better.",
    ),
    "compare": (_HERE + "bench.compare:compare", "Compare runs and give a verdict."),
    "reference": (
        _HERE + "bench.reference:reference",
        "Published measurements, to compare your own with.",
    ),
    "events": (_HERE + "service.events:events", "Show events, oldest first."),
    "webhook": (_HERE + "service.webhook:webhook", "Signed notifications by HTTP."),
    "token": (_HERE + "service.token:token", "API tokens and their permissions."),
    "audit": (_HERE + "service.audit:audit", "Show the audit log: changes and refused requests."),
    "install-hook": (
        _ADMIN + "hook:install_hook",
        "Install the libvirt hook that tunes VMs on the destination of a migration.",
    ),
    "uninstall-hook": (_ADMIN + "hook:uninstall_hook", "Remove the libvirt hook."),
    "db": (_ADMIN + "db:db", "Databases of the service: schema, backups, checks."),
    "completion": (
        _HERE + "service.completion:completion",
        "Print the completion script for a shell.",
    ),
}
"""Each subcommand: its module and its line of help."""
SECTIONS: Mapping[str, Sequence[str]] = {
    "Common commands": (
        "vm", "host", "profile", "plan", "apply", "verify", "migrate", "migration", "evacuate",
        "doctor",
    ),
    "Tuning": ("assign", "explain", "revert", "application", "tunables", "pack"),
    "Migrations": ("forecast", "evacuation", "virsh-args", "install-hook", "uninstall-hook"),
    "Benchmarks": ("bench", "tune", "compare", "reference"),
    "Service": ("serve", "health", "service", "events", "webhook", "token", "audit", "db"),
    "First steps": ("demo", "lab", "completion"),
}  # fmt: skip
"""The help page's groups of subcommands, the common ones first."""


@click.group(
    cls=LazyGroup,
    commands=COMMANDS,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 success, 1 error, 2 differences.",
)
@click.version_option(__version__, prog_name="vmtune", message="%(prog)s %(version)s")
@common
def root() -> None:
    """Tuning profiles for libvirt and QEMU virtual machines: applied, verified, measured."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. Errors are printed on stderr."""
    output = "json" if wants_json(arguments) else "table"
    session = Session(output=output, debug="--debug" in arguments)
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
        print_error(usage_error(error), session.json)
        return ERROR
    except VmtuneError as error:
        return _failed(error, _with_hints(error, session), session)
    except Exception as error:
        return _failed(error, internal_error(error), session)


def _with_hints(error: VmtuneError, session: Session) -> VmtuneError:
    """*error* with names near to one that the service does not know, for people."""
    from vmtune.client.connection.errors import Refused  # noqa: PLC0415 - only where it is used
    from vmtune.client.near import with_near_names  # noqa: PLC0415

    if not isinstance(error, Refused) or session.json:
        return error
    return with_near_names(error, session.connect(_HINT_WITHIN_S))


def _failed(error: Exception, reported: VmtuneError, session: Session) -> int:
    if session.debug:
        traceback.print_exception(error)
    print_error(reported, session.json)
    return ERROR


def main() -> None:
    """The entry point of the installed command."""
    # Loaded modules stay in memory: garbage collection of them, repeated and once more at the
    # end, took half of the run time of a command that loads the service.
    gc.set_threshold(_MADE_BETWEEN_COLLECTIONS)
    code = run(sys.argv[1:])
    gc.freeze()
    sys.exit(code)
