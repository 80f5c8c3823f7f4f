"""``vmtune bench campaign``: compare arms in randomised blocks, from a file."""

# ruff: noqa: PLC0415 - imported where needed: a command is to start in a blink

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import click

from vmtune.client.commands.bench.compare import lines as compared
from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Document, segment
from vmtune.client.follow import CAMPAIGN, to_the_end
from vmtune.client.lazy import LazyGroup
from vmtune.client.runs import short
from vmtune.client.session import CLEAN, ERROR, INTERRUPTED, Session, common, pass_session
from vmtune.client.views import render
from vmtune.client.views.output import Column, fields, table
from vmtune.client.views.progress import Shown, viewer
from vmtune.errors import InvalidInput, NotFound

_HERE = "vmtune.client.commands.bench.campaign:"
PLACES = {
    "run": (_HERE + "run", "Order a campaign and follow it; the word run may be left out."),
    "list": (_HERE + "list_campaigns", "List campaigns, newest first."),
    "show": (_HERE + "show", "Show a campaign, and how far it is."),
    "follow": (_HERE + "follow", "Follow a campaign to its end."),
    "pause": (_HERE + "pause", "Begin no more of its runs."),
    "resume": (_HERE + "resume", "Go on where it was paused."),
    "cancel": (_HERE + "cancel", "End it; what was measured stays."),
}
"""Each subcommand: where it is, and its line of help."""
_LARGEST_FILE_BYTES = 1 << 20
_MINUTE_S, _HOUR_S = 60, 3600


class _Group(LazyGroup):
    """Takes a file in the place of a subcommand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As a group, where the first word is a file as if it were ``run`` FILE."""
        first = next((arg for arg in args if not arg.startswith("-")), None)
        if first is not None and first not in self.places:
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Group, places=PLACES, subcommand_metavar="FILE.toml | COMMAND [ARGS]...")
@common
def campaign() -> None:
    """Compare arms in randomised blocks, from a file.

    FILE.toml is a file of yours, a campaign's or a matrix of blocks or boots, or the name of one
    that ships: `vmtune reference scenarios` lists them. What decides about the verdict is fixed
    in it before the first run.
    """


class CampaignShown(Shown):
    """How far a campaign is."""

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
        where = f"block {data['block']}" if data["block"] else "warm-up, which does not count"
        self.figures = (
            f"run {data['done'] + 1} of {data['total']}, {where}, {data['arm']}; about "
            f"{lasting(data['left_s'])} left"
        )


@click.command()
@click.argument("file", metavar="FILE.toml")
@click.option("--detach", is_flag=True, help="Order it and return; `campaign show` tells.")
@click.option("--dry-run", is_flag=True, help="Only say what it can find and how long it takes.")
@click.option("--blocks", type=click.IntRange(1, 1000), help="In the place of the file's.")
@click.option("--seed", type=click.IntRange(min=0), help="Of the order of the runs.")
@common
@pass_session
def run(
    session: Session,
    file: str,
    detach: bool,
    dry_run: bool,
    blocks: int | None,
    seed: int | None,
) -> int:
    """Order a campaign and follow it; the word run may be left out.

    Says first what difference it can find, and about how long it takes. Ctrl-C stops following:
    the campaign goes on in the service, and `campaign cancel` ends it.

    Exits 0 where it completed, whatever its verdict.
    """
    plan = _read(file)
    plan |= {name: v for name, v in (("blocks", blocks), ("seed", seed)) if v is not None}
    if dry_run:
        document = session.client.post("/campaigns/forecast", plan)
        arms = len(document["campaign"]["arms"])
        session.show(document, lambda: expected(document["forecast"], arms))
        return CLEAN
    record = session.client.post("/campaigns", plan)
    if detach:
        session.show(record, lambda: lines(record))
        return CLEAN
    if session.talks:
        for line in (f"{record['name']}: campaign {record['id']}", *_expected(record)):
            click.echo(line, err=True)
    return _followed(session, str(record["id"]))


@click.command()
@click.argument("name", metavar="CAMPAIGN")
@common
@pass_session
def follow(session: Session, name: str) -> int:
    """Follow a campaign to its end."""
    return _followed(session, str(_get(session, name)["id"]))


def _followed(session: Session, id: str) -> int:
    try:
        with viewer(session.talks, CampaignShown()) as shown:
            record = to_the_end(session.client, id, shown, kind=CAMPAIGN)
    except ClientError:
        click.echo(f"It may go on; ask: vmtune bench campaign show {id}", err=True)
        raise
    except KeyboardInterrupt:
        click.echo(
            f"\nthe campaign goes on; to end it: vmtune bench campaign cancel {id}", err=True
        )
        return INTERRUPTED
    if session.json:
        session.show(record, list)
    elif record["done"]:
        document = session.client.get("/comparisons", {"campaign": id})
        session.show(document, lambda: compared(document))
    if record["state"] == "completed":
        return CLEAN
    reason = f": {record['reason']}" if record["reason"] else ""
    click.echo(f"the campaign is {record['state']}{reason}", err=True)
    return ERROR


def _read(name: str) -> dict[str, Any]:  # any: TOML
    """The campaign in a file, or of a file that ships.

    :raise InvalidInput: it cannot be read, or is no TOML.
    """
    file = Path(name)
    try:
        if file.stat().st_size > _LARGEST_FILE_BYTES:
            raise InvalidInput("is larger than 1 MiB", field=name, remedy="name a campaign's file")
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
            raise InvalidInput(f"is no TOML: {error}", field=name, remedy="mend it") from error
        raise InvalidInput(
            f"holds what no campaign has: {error}", field=name, remedy="write dates as text"
        ) from error
    except RecursionError as error:
        raise InvalidInput("is nested too deeply", field=name, remedy="mend it") from error
    return plan


def _shipped(name: str) -> str:
    from vmtune.reference.files import scenario_file, scenario_files

    try:
        return scenario_file(name).text
    except NotFound:
        raise InvalidInput(
            "there is no such file, and none of that name ships",
            field=name,
            code="no_file",
            remedy=f"name a file of yours, or one of {', '.join(scenario_files())}",
        ) from None


def expected(forecast: Document, arms: int) -> Iterator[str]:
    """What a campaign of so many arms can find, and how long it takes."""
    found = forecast["detectable_percent"]
    yield (
        f"it has {'one arm, and nothing to compare' if arms == 1 else 'too few blocks'} for a "
        "verdict: it will show values"
        if found is None or arms == 1
        else f"it can find a difference of {found:g} % (in 80 % of such campaigns; runs of one "
        f"arm spread by {forecast['noise_percent']:g} %: {forecast['noise_reason']})"
    )
    yield (
        f"{forecast['runs']} runs take about {lasting(forecast['duration_s'])} "
        f"({forecast['duration_reason']})"
    )


def _expected(record: Document) -> Iterator[str]:
    yield from expected(record["forecast"], len(record["arms"]))


def lasting(seconds: float | None) -> str:
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
@click.option("--name", help="Only those of one name.")
@click.option("--state", "states", multiple=True, help="Only these, such as running.")
@click.option(
    "-n", "--newest", type=click.IntRange(min=0), default=30, show_default=True,
    help="Only so many, the newest; 0 for all.",
)  # fmt: skip
@common
@pass_session
def list_campaigns(
    session: Session, name: str | None, states: tuple[str, ...], newest: int
) -> None:
    """List campaigns, newest first."""
    found = session.client.items("/campaigns", {"name": name, "state": list(states)})
    rows = list(islice(found, newest or None))
    columns = (
        Column("CAMPAIGN"),
        Column("NAME"),
        Column("STATE"),
        Column("DONE", right=True),
        Column("LEFT", right=True),
        Column("ARMS", wraps=True),
        Column("ORDERED", spare=True),
    )
    cells = [
        (
            short(row["id"]),
            row["name"],
            row["state"],
            f"{row['done']} of {row['total']}",
            "" if row["ended"] else lasting(row["left_s"]),
            ", ".join(row["arms"]),
            render.moment(row["created_at"]),
        )
        for row in rows
    ]
    session.show({"items": rows, "next": None}, lambda: table(columns, cells, "no campaigns"))


@click.command()
@click.argument("name", metavar="CAMPAIGN")
@common
@pass_session
def show(session: Session, name: str) -> None:
    """Show a campaign, and how far it is.

    `vmtune compare CAMPAIGN` tells what came out.
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
            ("what", record["title"]),
            ("arms", ", ".join(record["arms"])),
            ("cells", ", ".join(record["cells"])),
            ("blocks", f"{record['blocks']}, in the order of seed {record['seed']}"),
            ("about", f"{record['primary_metric']}, margin {record['margin_percent']:g} %"),
            ("state", record["state"]),
            ("reason", record["reason"]),
            ("done", f"{record['done']} of {record['total']} runs"),
            ("runs", states),
            ("left", "" if record["ended"] else f"about {lasting(record['left_s'])}"),
            ("ordered", render.moment(record["created_at"])),
            ("ended", render.moment(record["ended_at"])),
        ]
    )
    yield from _expected(record)


@click.command()
@click.argument("name", metavar="CAMPAIGN")
@common
@pass_session
def pause(session: Session, name: str) -> None:
    """Begin no more of its runs.

    The one that is under way runs to its end.
    """
    _ask(session, name, "pause")


@click.command()
@click.argument("name", metavar="CAMPAIGN")
@common
@pass_session
def resume(session: Session, name: str) -> None:
    """Go on where it was paused."""
    _ask(session, name, "resume")


@click.command()
@click.argument("name", metavar="CAMPAIGN")
@common
@pass_session
def cancel(session: Session, name: str) -> None:
    """End it; what was measured stays.

    The run that is under way is cancelled.
    """
    id = _get(session, name)["id"]
    record = session.client.delete(f"/campaigns/{segment(id)}")
    session.say(record, f"asked for the end of campaign {record['name']}")


def _ask(session: Session, name: str, what: str) -> None:
    id = _get(session, name)["id"]
    record = session.client.post(f"/campaigns/{segment(id)}/{what}")
    session.say(record, f"campaign {record['name']} is {record['state']}")


def _get(session: Session, name: str) -> Document:
    """The campaign of that name, of that id, or whose id alone begins so.

    :raise NotFound: there is none.
    """
    try:
        return session.client.get(f"/campaigns/{segment(name)}")
    except ClientError:
        rows = islice(session.client.items("/campaigns"), 1000)
        found = [row for row in rows if str(row["id"]).startswith(name.lower())]
        if len(found) != 1:
            raise
        return session.client.get(f"/campaigns/{segment(found[0]['id'])}")
