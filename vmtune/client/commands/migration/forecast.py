"""``vmtune forecast``: how long a migration would take, how still, and whether it would end."""

from __future__ import annotations

import click

from vmtune.client.complete import hosts, profiles, vms
from vmtune.client.session import CLEAN, DIFFERENCES, Session, common, pass_session
from vmtune.client.values import parse_assignments
from vmtune.client.views.forecast import lines
from vmtune.client.vms import resolve


@click.command()
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
def forecast(
    session: Session,
    vm: str,
    destination: str,
    names: tuple[str, ...],
    values: tuple[str, ...],
    throughput: int | None,
    fresh: bool,
) -> int:
    """Forecast a migration of VM: time, silence, whether it ends.

    Measures for some 17 seconds how the guest dirties its memory, unless that was done within
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
