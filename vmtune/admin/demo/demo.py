"""The demo: what stock QEMU does, and what vmtune does better for the same guest."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from vmtune.admin.demo import compared as demo_compared
from vmtune.admin.demo import overview as demo_overview
from vmtune.admin.demo import promise as demo_promise
from vmtune.admin.demo import reaper as demo_reaper
from vmtune.admin.demo.lock import alone
from vmtune.admin.demo.reaper import RingRun
from vmtune.admin.demo.service import Service, running_service
from vmtune.client.connection.http import Client, Document
from vmtune.client.views.render import milliseconds, size
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
# It dirties more than the narrow link of the demo carries.
VM = VmSettings(
    name="vmtune-demo",
    memory_bytes=256 * MIB,
    workload=Workload(region_bytes=64 * MIB, dirty_mb_per_s=150),
)
_WIDTH = 78


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
    """Bring everything up, measure, print what came out, take everything down.

    :param keep: keep lab and service up until Ctrl-C, with more VMs to look at.
    :return: 0 when everything was measured.
    :raise VmtuneError: not root, a program is missing, a migration could not start.
    """
    require_root()
    with alone() as lock, _ending_on_sigterm(), ExitStack() as stack:
        began = time.monotonic()
        stage = _set_up(stack, lock, verbose)
        compared = demo_compared.measure(stage.client, verbose)
        runs = tuple(_runs(stage, verbose))
        promise = demo_promise.measure(stage.client, stage.vm.uuid, stage.hosts[1], verbose)
        found = Found(compared, runs, promise)
        if as_json:
            click.echo(json.dumps(document(found), indent=2))
        else:
            for line in report(found):
                click.echo(line)
            _print(verbose, f"\nThis took {time.monotonic() - began:.0f} s.")
        if keep:
            shown = demo_overview.fill(LAB, stage.client, stage.hosts, verbose)
            _keep(stage, shown)
        elif not as_json:
            for line in to_try():
                click.echo(line)
    return 0


def _set_up(stack: ExitStack, lock: int, verbose: bool) -> Stage:
    down(LAB)  # what a demo left that was killed
    began = time.monotonic()
    stack.callback(down, LAB)
    lab = up(LAB)
    _print(verbose, f"Lab: two libvirt hosts in network namespaces ({_since(began)})")
    began = time.monotonic()
    folder = LAB.folder / "service"  # goes with the lab, also when the next demo clears it away
    folder.mkdir()
    service = stack.enter_context(running_service(folder, holds=lock))
    _print(verbose, f"Service: {service.url}, SQLite in {folder} ({_since(began)})")
    hosts = ("a", "b")
    for name, host in zip(hosts, lab.hosts, strict=True):
        service.client.post("/hosts", {"name": name, "uri": host.uri, "peer_uri": host.peer_uri})
    vm = define_vm(LAB, VM)
    _print(
        verbose,
        f"VM: {vm.name}, {size(VM.memory_bytes)}, {vm.accelerator.upper()}; its guest dirties "
        f"{VM.workload.dirty_mb_per_s} MB/s",
    )
    if vm.accelerator != "kvm":
        _print(verbose, "  /dev/kvm cannot be used here: QEMU emulates the CPU (TCG)")
    return Stage(lab, service, vm, hosts)


def _runs(stage: Stage, verbose: bool) -> Iterator[RingRun]:
    """One benchmark run of each way to empty dirty rings, which are KVM's."""
    if stage.vm.accelerator == "kvm":
        yield from demo_reaper.measure(stage.client, verbose)
    else:
        _print(verbose, "Skipped: runs of the dirty-ring reaper, which need KVM")


@dataclass(frozen=True, slots=True)
class Found:
    """What the demo measured.

    :param runs: empty without KVM.
    """

    compared: demo_compared.Result
    runs: Sequence[RingRun]
    promise: demo_promise.Promise


def document(found: Found) -> Document:
    """All of it as JSON."""
    return {
        "comparison": found.compared.document,
        "runs": [run.record for run in found.runs],
        "migrations": [found.promise.stock, found.promise.kept],
    }


def report(found: Found) -> Iterator[str]:
    """What was measured, and three sentences on it."""
    yield ""
    yield from demo_compared.lines(found.compared)
    yield ""
    if found.runs:
        yield from demo_reaper.report(found.runs)
        yield ""
    yield from demo_promise.lines(found.promise)
    yield ""
    yield "What was seen:"
    for text in seen(found):
        yield from textwrap.wrap(text, _WIDTH, initial_indent="- ", subsequent_indent="  ")


def seen(found: Found) -> Iterator[str]:
    """A sentence on each part."""
    completed = found.compared.completed
    blocks, limit = demo_compared.BLOCKS, demo_compared.LIMIT_S
    tuned = found.compared.median("tuned")
    took = f", in {milliseconds(round(tuned))} (median)" if tuned is not None else ""
    yield (
        f"Over the narrow link {completed['stock']} of {blocks} migrations ended within {limit} s "
        f"with QEMU's defaults, and {completed['tuned']} of {blocks} with the profile{took}: "
        f"verdict {found.compared.verdict}."
    )
    by_arm = {run.arm: run for run in found.runs}
    stock, reaped = (by_arm.get(arm) for arm in list(demo_reaper.ARMS)[1:])
    if stock is not None and reaped is not None:
        yield (
            f"With a dirty ring that QEMU empties {_silence(stock)}; with vmtune's reaper "
            f"{_silence(reaped)}."
        )
    text = demo_promise.sentence(found.promise)
    stock_ended = found.promise.stock["state"] == "completed"
    yield (
        f"{text} Without an intent the same VM "
        + ("arrived, too." if stock_ended else "had not arrived when it was aborted.")
    )


def _silence(run: RingRun) -> str:
    if run.died:
        return f"there is no figure ({run.died})"
    return f"the guest stood still for up to {milliseconds(round(run.longest_ms or 0))}"


def to_try() -> Iterator[str]:
    """What to do next, as it can be typed here: no service runs any more."""
    again = "make demo KEEP=1" if os.environ.get("MAKELEVEL") else f"{program()} demo --keep"
    yield ""
    yield "Lab and service are removed. Three things to try:"
    yield f"- {again}   keeps them, with more VMs, and prints the web UI's address"
    yield f"- {program()} doctor   checks this machine for what harms migrations"
    yield f"- {program()} lab up   two libvirt hosts for experiments of your own"


def program() -> str:
    """The command as the user can type it: by its name, where that is on the PATH."""
    here = Path(sys.executable).with_name("vmtune")
    found = shutil.which("vmtune")
    if found is not None and Path(found).resolve() == here.resolve():
        return "vmtune"
    with contextlib.suppress(ValueError):
        return str(here.relative_to(Path.cwd()))
    return str(here)


def _keep(stage: Stage, shown: Sequence[str]) -> None:
    click.echo("")
    for line in shown:
        click.echo(line)
    for line in to_try_meanwhile(stage.service, stage.vm.uuid, stage.hosts):
        click.echo(line)
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()


def to_try_meanwhile(service: Service, vm: str, hosts: Sequence[str]) -> Iterator[str]:
    """What can be done while lab and service run.

    :param vm: UUID of the demo's VM, which is on one of *hosts*, and can go to another.
    """
    here = service.client.get(f"/vms/{vm}")["host"]
    to = next(host for host in hosts if host != here)
    command = f"{program()} --socket {service.socket}"
    yield "Three things to try:"
    yield f"- {service.url}   sign in with the token {service.sign_in_token()}"
    yield f"- {command} vm list --tuning drifted"
    yield f"- {command} migrate {VM.name} {to} --silence 500ms --within 30s"
    yield "The lab and the service run until you press Ctrl-C."


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
