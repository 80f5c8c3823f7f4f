"""The demo: a real VM migrates between two real libvirt hosts, untuned and tuned."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from vmtune.admin.demo import reaper as demo_reaper
from vmtune.admin.demo.service import Service, running_service
from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Client, Document
from vmtune.client.views.output import Column, table
from vmtune.client.views.progress import viewer
from vmtune.client.views.render import size, value
from vmtune.client.watch import watch_to_end
from vmtune.errors import SetupError
from vmtune.lab import LabSettings, LabStatus, LabVm, VmSettings, define_vm, down, up
from vmtune.lab.privileges import require_root
from vmtune.model.workload import Workload

MIB = 1 << 20
LAB = LabSettings(
    name_a="vmtune-demo-a",
    name_b="vmtune-demo-b",
    address_a="10.98.0.1/24",
    address_b="10.98.0.2/24",
    folder=Path("/run/vmtune-demo"),
)
# Small enough to converge on two cores, busy enough that each migration takes several rounds.
VM = VmSettings(
    name="vmtune-demo",
    memory_bytes=512 * MIB,
    workload=Workload(region_bytes=96 * MIB, idle_ms=300),
)
PROFILES: Mapping[str, Mapping[str, Any]] = {  # any: values as people write them
    "stock": {},
    "tuned": {
        "multifd": True,
        "multifd_channels": 2,
        "multifd_compression": "zstd",
        "multifd_zstd_level": 1,
        "downtime_limit_ms": "200ms",
    },
}
ROUNDS = 3
_LOCK = Path("/run/vmtune-demo.lock")
_CONVERGES_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class Stage:
    """What the demo runs on.

    :param hosts: the names under which the service knows both hosts; the VM starts on the first.
    """

    lab: LabStatus
    service: Service
    vm: LabVm
    hosts: tuple[str, str]

    @property
    def client(self) -> Client:
        """The service's client."""
        return self.service.client


def run(keep: bool = False, as_json: bool = False, verbose: bool = True) -> int:
    """Bring everything up, migrate back and forth, print the tables, take everything down.

    :param keep: keep lab and service up until Ctrl-C.
    :return: 0 when every migration completed.
    :raise VmtuneError: not root, a program is missing, a migration could not start.
    """
    require_root()
    with _alone(), _ending_on_sigterm(), ExitStack() as stack:
        stage = _set_up(stack, verbose)
        records = list(_migrations(stage, verbose))
        runs = list(_runs(stage, verbose))
        if as_json:
            click.echo(json.dumps({"migrations": records, "runs": runs}, indent=2))
        else:
            for line in report(records, runs):
                click.echo(line)
        if keep:
            _keep(stage)
        else:
            _print(
                verbose,
                "\nStopping the lab and the service. `make demo KEEP=1` keeps them running,",
            )
            _print(verbose, "with the API documentation at " + stage.service.docs)
    return 0


def _set_up(stack: ExitStack, verbose: bool) -> Stage:
    down(LAB)  # what a demo left that was killed
    began = time.monotonic()
    stack.callback(down, LAB)
    lab = up(LAB)
    _print(verbose, f"Lab: two libvirt hosts in network namespaces ({_since(began)})")
    began = time.monotonic()
    folder = LAB.folder / "service"  # goes with the lab, also when the next demo clears it away
    folder.mkdir()
    service = stack.enter_context(running_service(folder))
    _print(verbose, f"Service: {service.url}, SQLite in {folder} ({_since(began)})")
    hosts = ("a", "b")
    for name, host in zip(hosts, lab.hosts, strict=True):
        service.client.post("/hosts", {"name": name, "uri": host.uri, "peer_uri": host.peer_uri})
    vm = define_vm(LAB, VM)
    accelerator = vm.accelerator.upper()
    _print(
        verbose,
        f"VM: {vm.name}, {size(VM.memory_bytes)}, {accelerator}; its guest rewrites every page "
        f"of {size(VM.workload.region_bytes)} continuously",
    )
    if vm.accelerator != "kvm":
        _print(verbose, "  /dev/kvm cannot be used here: QEMU emulates the CPU (TCG)")
    for name, values in PROFILES.items():
        profile = service.client.post("/profiles", {"name": name, "values": values})
        texts = [f"{key} {value(key, raw)}" for key, raw in profile["values"].items()]
        what = ", ".join(texts) or "no values set, as with virsh migrate --live"
        _print(verbose, f"Profile {name}: {what}")
    return Stage(lab, service, vm, hosts)


def _migrations(stage: Stage, verbose: bool) -> Iterator[Document]:
    """Back and forth, under each profile; their order changes each round."""
    here = 0
    order = [sorted(PROFILES, reverse=number % 2 == 1) for number in range(ROUNDS)]
    names = [name for pair in order for name in pair]
    for count, name in enumerate(names, 1):
        source, destination = stage.hosts[here], stage.hosts[1 - here]
        _print(verbose, f"Migration {count} of {len(names)}: {name}, {source} to {destination}")
        record = _migrate(stage, name, destination, verbose)
        if record["state"] == "completed":
            here = 1 - here
        elif record["state"] == "cancelled":
            _print(
                verbose, f"  it did not converge within {_CONVERGES_WITHIN_S:g} s and was aborted"
            )
        else:
            raise SetupError(
                f"the migration with {name} ended as {record['state']}: {record['failure']}",
                code="demo_migration",
                remedy="`make demo KEEP=1` keeps everything running for inspection",
            )
        yield record


def _migrate(stage: Stage, profile: str, destination: str, verbose: bool) -> Document:
    """One migration to its end; aborted if it does not converge."""
    order = {"vm": stage.vm.uuid, "destination": destination, "profile": profile}
    record = stage.client.post("/migrations", order)

    def abort() -> None:
        with contextlib.suppress(ClientError):  # it has just ended
            stage.client.delete(f"/migrations/{record['id']}")

    deadline = threading.Timer(_CONVERGES_WITHIN_S, abort)
    deadline.start()
    try:
        with viewer(verbose) as shown:
            return watch_to_end(stage.client, record["id"], shown)
    finally:
        deadline.cancel()


def _runs(stage: Stage, verbose: bool) -> Iterator[Document]:
    """One benchmark run of each way to empty dirty rings, which are KVM's."""
    if stage.vm.accelerator == "kvm":
        yield from demo_reaper.measure(stage.client, verbose)
    else:
        _print(verbose, "Skipped: runs of the dirty-ring reaper, which need KVM")


def report(records: Sequence[Document], runs: Sequence[Document] = ()) -> Iterator[str]:
    """The demo's tables: times and effective values of each profile, and the guest under several
    ways to empty dirty rings.

    :param runs: empty without KVM.
    """
    yield ""
    # Takes a second, and only here.
    from vmtune.admin.demo import verdict as demo_verdict  # noqa: PLC0415

    yield from demo_verdict.lines(records, tuple(PROFILES), _CONVERGES_WITHIN_S * 1000)
    yield ""
    effects = (
        Column("PROFILE"),
        Column("TUNABLE"),
        Column("WANTED", right=True),
        Column("QEMU RAN WITH", right=True),
        Column("STATUS"),
    )
    yield from table(effects, list(_effects(records)), "no tuned values")
    if runs:
        yield ""
        yield from demo_reaper.report(runs)


def _effects(records: Sequence[Document]) -> Iterator[tuple[str, ...]]:
    """One row for each profile, tunable and way in which it ended."""
    counts: dict[tuple[str, ...], int] = {}
    for record in records:
        for o in record["outcomes"]:
            name = o["tunable"]
            cells = (value(name, o["wanted"]), value(name, o["seen"]))
            row: tuple[str, ...] = (record["profile"], name, *cells, o["status"])
            counts[row] = counts.get(row, 0) + 1
    for row, count in counts.items():
        runs = sum(1 for record in records if record["profile"] == row[0])
        yield (*row[:-1], f"{row[-1]} in {count} of {runs}")


def _keep(stage: Stage) -> None:
    click.echo("")
    token = stage.service.sign_in_token()
    click.echo(f"The web UI is at {stage.service.url}, the API documentation at")
    click.echo(f"{stage.service.docs}; sign in with the token {token}")
    click.echo(f"The command line: {stage.service.command} vm list")
    click.echo("The lab and the service run until you press Ctrl-C.")
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()


@contextmanager
def _alone() -> Iterator[None]:
    """One demo at a time on a machine.

    :raise SetupError: another one runs.
    """
    handle = os.open(_LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SetupError(
                "another demo runs on this machine", code="demo_runs", remedy="wait until it ends"
            ) from None
        try:
            yield
        finally:  # however it ends: by Ctrl-C, too
            _LOCK.unlink(missing_ok=True)
    finally:
        os.close(handle)


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """A polite kill ends the demo as Ctrl-C does: everything is taken down."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _since(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"


def _print(verbose: bool, sentence: str) -> None:
    if verbose:
        click.echo(sentence, err=True)
