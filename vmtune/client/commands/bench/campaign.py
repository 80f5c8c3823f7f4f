"""``vmtune bench campaign``: compare arms in randomised blocks, from a file."""

# ruff: noqa: PLC0415 - imported where needed: a command is to start in a blink

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from vmtune.client.commands.bench.compare import lines as compared
from vmtune.client.complete import campaigns
from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Document, segment
from vmtune.client.lazy import LazyGroup
from vmtune.client.newest import named_options, newest_of
from vmtune.client.optional_run import OptionalRun
from vmtune.client.resolve import CAMPAIGN as CAMPAIGNS
from vmtune.client.resolve import named
from vmtune.client.session import (
    CLEAN,
    ERROR,
    INTERRUPTED,
    Session,
    common,
    listing,
    pass_session,
    watchable,
)
from vmtune.client.views import render
from vmtune.client.views.output import Column, fields
from vmtune.client.views.progress import Progression, viewer
from vmtune.client.watch import CAMPAIGN, watch_to_end
from vmtune.errors import InvalidInput, NotFound

_HERE = "vmtune.client.commands.bench.campaign:"
COMMANDS = {
    "run": (_HERE + "run", "Start a campaign and watch it; the word run is optional."),
    "list": (_HERE + "list_campaigns", "List campaigns, newest first."),
    "show": (_HERE + "show", "Show a campaign and its progress."),
    "watch": (_HERE + "watch", "Watch a campaign until it ends."),
    "pause": (_HERE + "pause", "Pause a campaign: start no more runs."),
    "resume": (_HERE + "resume", "Resume a paused campaign."),
    "cancel": (_HERE + "cancel", "Cancel a campaign; completed runs are kept."),
}
"""Each subcommand: its module and its line of help."""
_LARGEST_FILE_BYTES = 1 << 20
_MINUTE_S, _HOUR_S = 60, 3600


class _Group(OptionalRun, LazyGroup):
    """Takes a file in the place of a subcommand."""


@click.group(cls=_Group, commands=COMMANDS, subcommand_metavar="FILE.toml | COMMAND [ARGS]...")
@common
def campaign() -> None:
    """Compare arms in randomised blocks, from a file.

    FILE.toml is your own file, of a campaign or of a block, boot or srcu matrix, or the name of a
    file that comes with vmtune: `vmtune reference scenarios` lists them. It fixes the criteria of
    the verdict before the first run.
    """


class CampaignProgression(Progression):
    """Progress of a campaign."""

    def read(self, record: Document) -> bool:
        before = self.stage
        self.stage = f"{record['name']}  {record['state']}"
        if record["state"] == "paused" and record["reason"]:
            self.stage += f": {record['reason']}"
        if record["state"] == "completed":
            self.share = 1.0
        return self.stage != before

    def advance(self, data: Document) -> None:
        self.share = max(self.share, float(data["share"]))
        where = f"block {data['block']}" if data["block"] else "warm-up (not counted)"
        self.figures = (
            f"run {data['done'] + 1} of {data['total']}, {where}, {data['arm']}; about "
            f"{duration(data['remaining_s'])} left"
        )


@click.command()
@click.argument("file", metavar="FILE.toml")
@click.option("--no-wait", is_flag=True, help="Start it and return; see `campaign show`.")
@click.option(
    "--dry-run", is_flag=True, help="Only show the detectable difference and the expected duration."
)
@click.option(
    "--blocks", type=click.IntRange(1, 1000), help="Number of blocks instead of the file's."
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the order of the runs.")
@common
@pass_session
def run(
    session: Session,
    file: str,
    no_wait: bool,
    dry_run: bool,
    blocks: int | None,
    seed: int | None,
) -> int:
    """Start a campaign and watch it; the word run is optional.

    Shows the detectable difference and the expected duration first. Ctrl-C stops watching; the
    campaign continues in the service. `campaign cancel` cancels it.

    Exits 0 if it completed, whatever its verdict.
    """
    plan = read_plan(file)
    plan |= {name: v for name, v in (("blocks", blocks), ("seed", seed)) if v is not None}
    if dry_run:
        document = session.client.post("/campaigns/forecast", plan)
        arms = len(document["campaign"]["arms"])
        session.show(document, lambda: expected(document["forecast"], arms))
        return CLEAN
    record = session.client.post("/campaigns", plan)
    if no_wait:
        session.show(record, lambda: lines(record))
        return CLEAN
    if session.shows_progress:
        for line in (f"{record['name']}: campaign {record['id']}", *_expected(record)):
            click.echo(line, err=True)
    return _watch(session, str(record["id"]))


@click.command()
@click.argument("name", metavar="CAMPAIGN", shell_complete=campaigns)
@common
@pass_session
def watch(session: Session, name: str) -> int:
    """Watch a campaign until it ends."""
    return _watch(session, str(_get(session, name)["id"]))


def _watch(session: Session, id: str) -> int:
    try:
        with viewer(session.shows_progress, CampaignProgression()) as shown:
            record = watch_to_end(session.client, id, shown, kind=CAMPAIGN)
    except ClientError:
        click.echo(f"The campaign may continue; check: vmtune bench campaign show {id}", err=True)
        raise
    except KeyboardInterrupt:
        click.echo(
            f"\nStopped watching; the campaign continues. To cancel it: "
            f"vmtune bench campaign cancel {id}",
            err=True,
        )
        return INTERRUPTED
    if session.for_programs:
        session.show(record, list)
    elif record["done"]:
        document = session.client.get("/comparisons", {"campaign": id})
        session.show(document, lambda: compared(document))
    if record["state"] == "completed":
        return CLEAN
    reason = f": {record['reason']}" if record["reason"] else ""
    click.echo(f"the campaign is {record['state']}{reason}", err=True)
    return ERROR


def read_plan(name: str) -> dict[str, Any]:  # any: TOML
    """The campaign in a file, or of a file that ships.

    :raise InvalidInput: it cannot be read, or is no TOML.
    """
    file = Path(name)
    try:
        if file.stat().st_size > _LARGEST_FILE_BYTES:
            raise InvalidInput("is larger than 1 MiB", field=name, remedy="give a campaign file")
        text = file.read_text("utf-8")
    except FileNotFoundError:
        text = _shipped(name)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot be read: {error}", field=name) from error
    try:
        plan = tomllib.loads(text)
        json.dumps(plan, allow_nan=False)
    except (TypeError, ValueError) as error:
        if isinstance(error, tomllib.TOMLDecodeError):
            raise InvalidInput(
                f"is not TOML: {error}", field=name, remedy="fix the file"
            ) from error
        raise InvalidInput(
            f"has a value that is not allowed: {error}", field=name, remedy="write dates as text"
        ) from error
    except RecursionError as error:
        raise InvalidInput("is nested too deeply", field=name, remedy="fix the file") from error
    return plan


def _shipped(name: str) -> str:
    from vmtune.client.near import near
    from vmtune.reference.files import scenario_file, scenario_files

    try:
        return scenario_file(name).text
    except NotFound:
        meant = near(name, [*COMMANDS, *scenario_files()])
        own = f"give your own file, or one of {', '.join(scenario_files())}"
        raise InvalidInput(
            "no such file, and none of that name comes with vmtune",
            field=name,
            code="no_file",
            remedy="; ".join(filter(None, (meant, own))),
        ) from None


def expected(forecast: Document, arms: int) -> Iterator[str]:
    """The detectable difference of a campaign with so many arms, and its expected duration."""
    found = forecast["detectable_percent"]
    yield (
        f"no verdict, only values: it has {'one arm only' if arms == 1 else 'too few blocks'}"
        if found is None or arms == 1
        else f"detectable difference: {found:g} % (with 80 % power; runs of one arm spread by "
        f"{forecast['noise_percent']:g} %: {forecast['noise_reason']})"
    )
    yield (
        f"{forecast['runs']} runs take about {duration(forecast['duration_s'])} "
        f"({forecast['duration_reason']})"
    )


def _expected(record: Document) -> Iterator[str]:
    yield from expected(record["forecast"], len(record["arms"]))


def duration(seconds: float | None) -> str:
    """``40 s``, ``12 min``, ``3 h 20 min``; ``-`` where unknown."""
    if seconds is None:
        return "-"
    if seconds < 2 * _MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR_S:
        return f"{seconds / _MINUTE_S:.0f} min"
    hours, rest = divmod(round(seconds / _MINUTE_S), 60)
    return f"{hours} h {rest} min"


@click.command("list")
@named_options("campaigns", "running")
@listing
@pass_session
def list_campaigns(session: Session, /, newest: int, **chosen: Any) -> None:  # any: click's
    """List campaigns, newest first."""
    rows = newest_of(session, "/campaigns", chosen, newest)
    columns = (
        Column("CAMPAIGN", id=True, field="id"),
        Column("NAME"),
        Column("STATE"),
        Column("DONE", right=True),
        Column("LEFT", right=True, field="remaining_s"),
        Column("ARMS", wraps=True, spare=1),
        Column("CREATED", field="created_at", spare=2),
    )

    def cells(row: Document) -> tuple[str, ...]:
        return (
            row["id"],
            row["name"],
            row["state"],
            f"{row['done']} of {row['total']}",
            "" if row["ended"] else duration(row["remaining_s"]),
            ", ".join(row["arms"]),
            render.moment(row["created_at"]),
        )

    session.show_list({"items": rows, "next": None}, columns, cells, "no campaigns")


@click.command()
@click.argument("name", metavar="CAMPAIGN", shell_complete=campaigns)
@watchable
@pass_session
def show(session: Session, name: str) -> None:
    """Show a campaign and its progress.

    `vmtune compare CAMPAIGN` shows the results.
    """
    record = _get(session, name)
    session.show(record, lambda: lines(record))


def lines(record: Document) -> Iterator[str]:
    """A campaign as people read it."""
    states = ", ".join(f"{count} {state}" for state, count in record["runs"].items())
    yield from fields(
        [
            ("campaign", record["id"]),
            ("name", record["name"]),
            ("title", record["title"]),
            ("arms", ", ".join(record["arms"])),
            ("cells", ", ".join(record["cells"])),
            ("blocks", f"{record['blocks']}, in the order of seed {record['seed']}"),
            (
                "primary metric",
                f"{record['primary_metric']}, margin {record['margin_percent']:g} %",
            ),
            ("state", record["state"]),
            ("reason", record["reason"]),
            ("done", f"{record['done']} of {record['total']} runs"),
            ("runs", states),
            ("left", "" if record["ended"] else f"about {duration(record['remaining_s'])}"),
            ("created", render.moment(record["created_at"])),
            ("ended", render.moment(record["ended_at"])),
        ]
    )
    yield from _expected(record)


@click.command()
@click.argument("name", metavar="CAMPAIGN", shell_complete=campaigns)
@common
@pass_session
def pause(session: Session, name: str) -> None:
    """Pause a campaign: start no more runs.

    The current run continues to its end.
    """
    _post(session, name, "pause")


@click.command()
@click.argument("name", metavar="CAMPAIGN", shell_complete=campaigns)
@common
@pass_session
def resume(session: Session, name: str) -> None:
    """Resume a paused campaign."""
    _post(session, name, "resume")


@click.command()
@click.argument("name", metavar="CAMPAIGN", shell_complete=campaigns)
@common
@pass_session
def cancel(session: Session, name: str) -> None:
    """Cancel a campaign; completed runs are kept.

    The current run is cancelled.
    """
    id = _get(session, name)["id"]
    record = session.client.delete(f"/campaigns/{segment(id)}")
    session.report(record, f"requested cancellation of campaign {record['name']}")


def _post(session: Session, name: str, what: str) -> None:
    id = _get(session, name)["id"]
    record = session.client.post(f"/campaigns/{segment(id)}/{what}")
    session.report(record, f"campaign {record['name']} is {record['state']}")


def _get(session: Session, name: str) -> Document:
    """The campaign with this name, id or unique start of an id.

    :raise NotFound: there is none.
    """
    return named(session.client, name, CAMPAIGNS)
