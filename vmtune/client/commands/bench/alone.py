"""``vmtune bench block``, ``boot`` and ``srcu``: what is measured alone on one machine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import click

from vmtune.client.commands.bench.campaign import CampaignProgression, expected
from vmtune.client.complete import assignments, qemus
from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Document, segment
from vmtune.client.session import (
    CLEAN,
    DIFFERENCES,
    ERROR,
    INTERRUPTED,
    Session,
    common,
    pass_session,
)
from vmtune.client.values import parse_assignments
from vmtune.client.views.bench_kinds import compared, measured
from vmtune.client.views.progress import Progression, RunProgression, viewer
from vmtune.client.watch import CAMPAIGN, RUN, Watched, watch_to_end

_BLOCKS = 6
"""The minimum for a verdict between two QEMUs."""
_MAX_BLOCKS = 1000
_MAX_SEED = (1 << 53) - 1
_SYSTEM, _VM = "system", "vm"

Json = Any  # any JSON
_SUCCEEDED = {"completed", "ended as planned"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be measured.

    :param lists: of each dimension its choices; every combination is measured.
    :param names: what a single scenario calls each dimension.
    :param rest: what holds for all.
    :param arms: QEMUs by their names.
    """

    kind: str
    lists: Mapping[str, Sequence[Json]]
    names: Mapping[str, str]
    rest: Mapping[str, Json]
    arms: Sequence[str]
    values: Mapping[str, Json] = field(default_factory=dict)
    name: str = ""
    blocks: int | None = None
    seed: int | None = None
    kvm: bool | None = None

    @property
    def single(self) -> bool:
        """It is one run, of one combination on one QEMU."""
        return len(self.arms) == 1 and self.blocks is None and self.combinations == 1

    @property
    def live(self) -> bool:
        """It is a VM that runs."""
        return "target" in self.rest

    @property
    def times(self) -> int:
        """How often each combination is measured, where it is no single run."""
        return self.blocks or _BLOCKS

    @property
    def combinations(self) -> int:
        """How many there are."""
        return prod(len(choices) for choices in self.lists.values())

    @property
    def run(self) -> Document:
        """The request body of a single run."""
        cell = {self.names[each]: choices[0] for each, choices in self.lists.items()}
        scenario = {"kind": self.kind, "cell": cell, **self.rest}
        run = {"scenario": scenario, "qemu": _named(self.arms[0]), "values": dict(self.values)}
        return run if self.kvm is None else {**run, "kvm": self.kvm}

    @property
    def campaign(self) -> Document:
        """The request body of several runs: a matrix."""
        arms = [
            {
                "name": _VM if self.live else arm,
                "qemu": _named(arm),
                "values": dict(self.values),
            }
            for arm in self.arms
        ]
        plan = {
            "name": self.name or self.kind,
            "arms": arms,
            "blocks": self.times,
            self.kind: {**{n: list(each) for n, each in self.lists.items()}, **self.rest},
        }
        chosen = {"seed": self.seed, "kvm": self.kvm}
        return {**plan, **{name: each for name, each in chosen.items() if each is not None}}


def _named(arm: str) -> str:
    """A QEMU as the service takes it."""
    return "" if arm == _SYSTEM else arm


def listed(words: Sequence[str]) -> list[str]:
    """``("1,8", "64")`` as 1, 8, 64."""
    return [part.strip() for word in words for part in word.split(",") if part.strip()]


def numbers(words: Sequence[str], option: str) -> list[int]:
    """Likewise, of whole numbers.

    :raise click.BadParameter: one is none.
    """
    try:
        return [int(part) for part in listed(words)]
    except ValueError as error:
        raise click.BadParameter(f"{', '.join(words)!r} are not whole numbers: {option}") from error


_Command = Callable[..., Any]


def repeated(command: _Command) -> _Command:
    """The options that all of these commands have."""
    for add in reversed(
        (
            click.option(
                "--blocks", type=click.IntRange(1, _MAX_BLOCKS),
                help="How often everything is measured, each block in random order; default 6 for "
                "more than one measurement.",
            ),
            click.option(
                "--seed", type=click.IntRange(0, _MAX_SEED), help="Seed of the order of the runs."
            ),
            click.option("--name", help="Name of the campaign, for more than one run."),
            click.option(
                "--no-wait", is_flag=True, help="Start it and return; see `bench runs`."
            ),
            common,
            pass_session,
        )
    ):  # fmt: skip
        command = add(command)
    return command


def shared(command: _Command) -> _Command:
    """The options that commands have which start QEMUs."""
    command = repeated(command)
    for add in reversed(
        (
            click.option(
                "--qemu", "arms", multiple=True, metavar="NAME", shell_complete=qemus,
                help="QEMU of the service's settings; several are compared with the first.",
            ),
            click.option(
                "--set", "values", multiple=True, metavar="TUNABLE=VALUE",
                shell_complete=assignments, help="Tunable of QEMU; may be repeated.",
            ),
        )
    ):  # fmt: skip
        command = add(command)
    return command


def wanted(
    kind: str,
    lists: Mapping[str, Sequence[Json]],
    names: Mapping[str, str],
    rest: Mapping[str, Json],
    options: Mapping[str, Json],
    kvm: bool | None = None,
) -> Wanted:
    """What the options request; the service chooses the rest."""
    return Wanted(
        kind,
        lists,
        names,
        {name: value for name, value in rest.items() if value is not None},
        listed(options["arms"]) or [_SYSTEM],
        parse_assignments(options["values"]),
        options["name"] or "",
        options["blocks"],
        options["seed"],
        kvm,
    )


def measure(session: Session, asked: Wanted, no_wait: bool) -> int:
    """Start it, watch it until it ends, and show the results.

    Exits 0 if all runs completed, 2 if one timed out or did not converge, 1 if one failed.
    """
    kind: Watched = RUN if asked.single else CAMPAIGN
    record = session.client.post(kind.path, asked.run if asked.single else asked.campaign)
    id = str(record["id"])
    if no_wait:
        what = "run" if asked.single else "campaign"
        session.report(record, f"started {what} {id}")
        return CLEAN
    if session.shows_progress and not asked.single:
        for line in (
            f"{record['name']}: campaign {id}",
            *expected(record["forecast"], len(record["arms"])),
        ):
            click.echo(line, err=True)
    shown: Progression = (
        RunProgression(record["scenario"]) if asked.single else CampaignProgression()
    )
    try:
        with viewer(session.shows_progress, shown) as view:
            record = watch_to_end(session.client, id, view, kind=kind)
    except ClientError:
        click.echo(
            f"The outcome is unknown; check: vmtune bench {_show_command(asked, id)}", err=True
        )
        raise
    except KeyboardInterrupt:
        with contextlib.suppress(ClientError):  # it has just ended
            session.client.delete(f"{kind.path}/{segment(id)}")
        click.echo(f"\ncancelled; completed runs are kept: {id}", err=True)
        return INTERRUPTED
    return _show_results(session, asked, record)


def _show_command(asked: Wanted, id: str) -> str:
    return f"show {id}" if asked.single else f"campaign show {id}"


def _show_results(session: Session, asked: Wanted, record: Document) -> int:
    """Show the results and return the exit code."""
    if asked.single:
        document = {"items": [record], "skipped": []}
        session.show(document, lambda: measured(asked.kind, [record]))
        return _code([record["state"]])
    found = session.client.items("/runs", {"campaign": record["id"]})
    runs = [run for run in found if run["counts"] and run["slot"]["block"]][::-1]
    runs.sort(key=lambda run: run["scenario"])  # and within it in the order of the arms' runs
    whole: dict[str, Json] = {"items": runs, "skipped": [], "campaign": record}
    if session.for_programs:
        session.show(whole, list)
    elif runs:
        session.show(whole, lambda: measured(asked.kind, runs))
        if len(asked.arms) > 1:
            result = session.client.get("/comparisons", {"campaign": record["id"]})
            session.show(result, lambda: ["", *compared(result)])
            click.echo(f"Each metric: vmtune compare {record['name']}")
    if record["state"] != "completed":
        reason = f": {record['reason']}" if record["reason"] else ""
        click.echo(f"the campaign is {record['state']}{reason}", err=True)
        return ERROR
    return _code([run["state"] for run in runs])


def _code(states: Sequence[str]) -> int:
    if set(states) <= _SUCCEEDED:
        return CLEAN
    return DIFFERENCES if set(states) <= _SUCCEEDED | {"not converged"} else ERROR
