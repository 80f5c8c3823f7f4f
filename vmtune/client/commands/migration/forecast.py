"""``vmtune forecast``: how long a migration would take, how still, whether it ends; and how
good such forecasts were."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from vmtune.client.complete import hosts, profiles, vms
from vmtune.client.optional_run import OptionalRun
from vmtune.client.session import CLEAN, DIFFERENCES, Session, common, pass_session
from vmtune.client.values import parse_assignments
from vmtune.client.views.forecast import lines
from vmtune.client.views.forecast_checks import check_lines
from vmtune.client.vms import resolve


class _OfVm(OptionalRun):
    """A group whose first argument is a VM where it is no subcommand."""

    def leaves_out_run(self, ctx: click.Context, args: list[str]) -> bool:
        """Also where a VM has the name of a subcommand: only ``run`` has a destination."""
        to = any(each == "--to" or each.startswith("--to=") for each in args)
        if to:
            return self.first_word(ctx, args) not in ("", "run")
        return super().leaves_out_run(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Subcommands, and VMs."""
        (argument,) = (p for p in self.commands["run"].params if isinstance(p, click.Argument))
        vms_too = argument.shell_complete(ctx, incomplete)
        return [*super().shell_complete(ctx, incomplete), *vms_too]


@click.group(cls=_OfVm, subcommand_metavar="VM --to HOST | COMMAND [ARGS]...")
@common
def forecast() -> None:
    """Forecasts of migrations, and how good they were.

    `vmtune forecast VM --to HOST` is short for `vmtune forecast run VM --to HOST`.
    """


@forecast.command()
@click.argument("vm", shell_complete=vms)
@click.option(
    "--to", "destination", required=True, shell_complete=hosts, help="The host to migrate to."
)
@click.option(
    "--profile",
    "names",
    multiple=True,
    shell_complete=profiles,
    help="Profile instead of the assigned one; several are compared.",
)
@click.option(
    "--set", "values", multiple=True, metavar="TUNABLE=VALUE", help="Value to override; repeatable."
)
@click.option(
    "--throughput",
    type=click.IntRange(min=1),
    metavar="MIB",
    help="MiB per second that the path carries, instead of what recorded migrations say.",
)
@click.option("--fresh", is_flag=True, help="Measure the VM anew.")
@common
@pass_session
def run(
    session: Session,
    vm: str,
    destination: str,
    names: tuple[str, ...],
    values: tuple[str, ...],
    throughput: int | None,
    fresh: bool,
) -> int:
    """Forecast a migration of VM: time, silence, whether it ends.

    Measures for some 20 seconds how the guest dirties its memory, unless that was done within
    the last 10 minutes. Changes nothing. Exits 0 if it will end with each profile, 2 if with
    one of them it will or may not, 1 on an error.
    """
    body = {
        "destination": destination,
        "profiles": list(names),
        "values": parse_assignments(values, unset=True),
        "throughput_bytes_per_s": None if throughput is None else throughput << 20,
        "fresh": fresh,
    }
    uuid = resolve(session.client, vm)
    if session.shows_progress:
        click.echo("measuring how the guest dirties its memory, up to 20 s...", err=True)
    document = session.client.post(f"/vms/{uuid}/forecasts", body)
    session.show(document, lambda: lines(document))
    prospects = [each["prospect"] for each in document["candidates"]]
    sure = all(found is not None and found["ends"] is True for found in prospects)
    return CLEAN if sure else DIFFERENCES


@forecast.command()
@click.option("--profile", shell_complete=profiles, help="Only of migrations with this profile.")
@click.option("--host", shell_complete=hosts, help="Only from or to this host.")
@click.option("--since", help="Only of migrations that ended since, such as 2026-11-21T00:00:00Z.")
@common
@pass_session
def check(session: Session, profile: str | None, host: str | None, since: str | None) -> None:
    """Compare forecasts with what happened.

    A migration keeps the forecast that was made for it within the 10 minutes before, and what was
    expected when it could first be told whether it ends. ERROR is the median; WITHOUT FORECASTS is
    the error of what remains divided by the throughput, and of QEMU's expected downtime.
    """
    query = {"profile": profile, "host": host, "since": since}
    document = session.client.get("/forecasts/check", query)
    session.show(document, lambda: check_lines(document))
