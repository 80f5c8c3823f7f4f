"""What ``vmtune bench block --vm`` says before it loads a VM that runs, and asks."""

# ruff: noqa: PLC0415 - imported where needed: a command is to start in a blink

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from vmtune.client.commands.bench.alone import Wanted
from vmtune.client.connection.http import Document
from vmtune.client.session import Session
from vmtune.client.views.output import fields
from vmtune.client.vms import resolve
from vmtune.errors import InvalidInput

Json = Any  # any JSON
_READS = {"read", "randread"}


def target_of(session: Session, vm: str, nodes: Sequence[str], device: str | None) -> Document:
    """The VM and its part to measure, as a scenario's ``target``.

    :raise InvalidInput: the options do not name exactly one.
    :raise NotFound: there is no such VM.
    """
    if nodes and device:
        raise _refused(
            "--in-guest",
            "--node measures in QEMU, --in-guest in the guest: give only one",
            "remove --node or --in-guest",
        )
    if len(nodes) > 1:
        raise _refused("--node", "only one node of a VM can be measured at a time", "give one node")
    parts = {"node": nodes[0] if nodes else "", "device": device or ""}
    given = {name: text for name, text in parts.items() if text}
    return {"vm": resolve(session.client, vm), **given}


def check_left_out(given: Mapping[str, object]) -> None:
    """Refuse options that start or tune a QEMU.

    :param given: by their names; those that were left out are empty or None.
    :raise InvalidInput: naming the first.
    """
    for name, value in given.items():
        if value not in (None, "", (), []):
            raise _refused(
                name,
                "a running VM is measured with its current values",
                "remove the option; apply a profile to the VM before",
            )


def confirmed(session: Session, asked: Wanted, yes: bool) -> bool:
    """Say what will be done to the VM, and ask for confirmation unless *yes*.

    :raise InvalidInput: there is no terminal to ask on.
    """
    vm = session.client.get(f"/vms/{asked.rest['target']['vm']}")
    if session.shows_progress:
        for line in plan_lines(asked, vm):
            click.echo(line, err=True)
    if yes:
        return True
    if not session.shows_progress or not sys.stdin.isatty():
        raise _refused(
            "--yes",
            f"{vm['name']} is running and would be loaded; there is no terminal to ask",
            "confirm with --yes",
        )
    if click.confirm("Continue?", err=True):
        return True
    click.echo("not started", err=True)
    return False


def plan_lines(asked: Wanted, vm: Document) -> Iterator[str]:
    """What is exported, and what load that brings."""
    target = asked.rest["target"]
    yield from fields(
        [
            ("VM", f"{vm['name']} on {vm['host']}, {vm['state']}: measured as it is"),
            *_exported(target, not set(asked.lists["rw"]) <= _READS),
            ("load", _load(asked)),
            ("meanwhile", "the load shares resources with its guest; no profile is applied "
             "to it, and it cannot be migrated meanwhile"),
        ]
    )  # fmt: skip


def _exported(target: Mapping[str, Json], writes: bool) -> Iterator[tuple[str, str]]:
    if "device" in target:
        yield "in its guest", f"fio reads {target['device']}; nothing is written or installed"
        return
    what = f"its node {target['node']}" if "node" in target else "a temporary null-co node"
    how = "writable" if writes and "node" not in target else "read-only"
    yield "exported", f"{what}, {how}, by NBD on a unix socket of its machine, removed afterwards"


def _load(asked: Wanted) -> str:
    from vmtune.bench.model.scenario.block import USUAL_RAMP_S, USUAL_RUNTIME_S

    lists = asked.lists
    lasts_s = asked.rest.get("runtime_s", USUAL_RUNTIME_S) + asked.rest.get("ramp_s", USUAL_RAMP_S)
    most = max(lists["iodepth"]) * max(lists["numjobs"])
    each = f"{', '.join(lists['rw'])} of {', '.join(map(str, lists['block_size_bytes']))}"
    times = asked.combinations * (1 if asked.single else asked.times)
    often = f", {times} times" if times > 1 else ""
    at_once = "1 request" if most == 1 else f"up to {most:,} requests"
    return f"{each}, {at_once} in flight, for {lasts_s} s{often}"


def _refused(option: str, why: str, remedy: str) -> InvalidInput:
    return InvalidInput(why, field=option, code="not_for_running_vm", remedy=remedy)
