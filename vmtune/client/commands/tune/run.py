"""``vmtune tune run`` and ``watch``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from vmtune.client.commands.bench.campaign import read_plan
from vmtune.client.commands.tune.views import StudyProgression, lines, planned
from vmtune.client.complete import profiles, studies, tunable_names
from vmtune.client.connection.errors import ClientError
from vmtune.client.resolve import STUDY as STUDIES
from vmtune.client.resolve import named
from vmtune.client.session import CLEAN, ERROR, INTERRUPTED, Session, common, pass_session
from vmtune.client.views.progress import viewer
from vmtune.client.watch import STUDY, watch_to_end
from vmtune.errors import InvalidInput

_DEFAULT_NAME = "tune"
_MINUTE_S = 60


@click.command()
@click.argument("file", metavar="[STUDY.toml]", required=False)
@click.option("--name", help="Name of the study.")
@click.option("--scenario", help="Scenario to tune for; see `vmtune bench scenarios`.")
@click.option(
    "--objective",
    help='Such as "minimise total_time_ms where guest_silence_ms <= 300 and completed".',
)
@click.option(
    "--vary", "space", multiple=True, metavar="TUNABLE[=VALUES]", shell_complete=tunable_names,
    help="A tunable to vary: NAME, NAME=LOW..HIGH or NAME=A,B,C. Repeat it; without any: all that "
    "are worth it here.",
)  # fmt: skip
@click.option("--runs", type=click.IntRange(min=1), help="Budget of runs, all included.")
@click.option("--minutes", type=click.IntRange(min=1), help="Budget of time, all included.")
@click.option("--margin", type=float, help="Smallest gain that matters, in percent.")
@click.option("--profile", help="Profile in use now, to be beaten too.", shell_complete=profiles)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the search.")
@click.option("--no-wait", is_flag=True, help="Start it and return; see `tune show`.")
@click.option("--dry-run", is_flag=True, help="Only show what would be varied.")
@common
@pass_session
def run(
    session: Session,
    file: str | None,
    name: str | None,
    scenario: str | None,
    objective: str | None,
    space: tuple[str, ...],
    runs: int | None,
    minutes: int | None,
    margin: float | None,
    profile: str | None,
    seed: int | None,
    no_wait: bool,
    dry_run: bool,
) -> int:
    """Start a study and watch it; the word run is optional.

    Options replace what STUDY.toml says. Ctrl-C stops watching; the study continues in the
    service. `tune cancel` cancels it.

    Exits 0 if it completed, whatever it found.
    """
    given = {
        "name": name,
        "scenario": scenario,
        "objective": objective,
        "margin_percent": margin,
        "profile": profile,
        "seed": seed,
    }
    order = read_plan(file) if file is not None else {}
    order |= {key: value for key, value in given.items() if value is not None}
    if file is None:
        _check(order)
        order.setdefault("name", _DEFAULT_NAME)
    if space:
        order["space"] = read_space(space)
    budget = {"runs": runs, "seconds": None if minutes is None else minutes * _MINUTE_S}
    if any(each is not None for each in budget.values()):
        order["budget"] = {key: value for key, value in budget.items() if value is not None}
    if dry_run:
        document = session.client.post("/studies/plan", order)
        session.show(document, lambda: planned(document))
        return CLEAN
    record = session.client.post("/studies", order)
    if no_wait:
        session.show(record, lambda: lines(record))
        return CLEAN
    if session.shows_progress:
        click.echo(f"{record['name']}: study {record['id']}", err=True)
    return _watch(session, str(record["id"]))


def _check(order: dict[str, Any]) -> None:
    """:raise InvalidInput: there is no file, and not enough options in its place."""
    for name in ("scenario", "objective"):
        if name not in order:
            raise InvalidInput(
                f"the {name} is missing",
                field=f"--{name}",
                code="missing",
                remedy="give a file, or --scenario and --objective",
            )


def read_space(given: Sequence[str]) -> dict[str, Any]:  # any JSON
    """``multifd``, ``multifd_channels=1..8`` and ``multifd_compression=none,zstd`` as a study
    file has them.

    :raise InvalidInput: one is not written like that.
    """
    found: dict[str, Any] = {}
    for text in given:
        name, equals, values = text.partition("=")
        low, range_, high = values.partition("..")
        choices = [value.strip() for value in values.split(",")]
        if not equals:
            found[name] = {}
        elif range_ and low.strip() and high.strip():
            found[name] = {"low": _value(low), "high": _value(high)}
        elif len(choices) > 1 and all(choices):
            found[name] = {"choices": [_value(value) for value in choices]}
        else:
            raise InvalidInput(
                f"{text[:60]!r} does not say between which values to search",
                field="--vary",
                code="invalid_value",
                remedy="write NAME, NAME=LOW..HIGH or NAME=A,B,C",
            )
    return found


def _value(text: str) -> int | str:
    text = text.strip()
    return int(text) if text.isdecimal() else text


@click.command()
@click.argument("study", metavar="STUDY", shell_complete=studies)
@common
@pass_session
def watch(session: Session, study: str) -> int:
    """Watch a study until it ends."""
    return _watch(session, str(named(session.client, study, STUDIES)["id"]))


def _watch(session: Session, id: str) -> int:
    try:
        with viewer(session.shows_progress, StudyProgression()) as shown:
            record = watch_to_end(session.client, id, shown, kind=STUDY)
    except ClientError:
        click.echo(f"The study may continue; check: vmtune tune show {id}", err=True)
        raise
    except KeyboardInterrupt:
        click.echo(
            f"\nStopped watching; the study continues. To cancel it: vmtune tune cancel {id}",
            err=True,
        )
        return INTERRUPTED
    session.show(record, lambda: lines(record))
    if record["state"] == "completed":
        return CLEAN
    reason = f": {record['reason']}" if record["reason"] else ""
    click.echo(f"the study is {record['state']}{reason}", err=True)
    return ERROR
