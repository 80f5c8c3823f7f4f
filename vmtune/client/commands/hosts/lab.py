"""``vmtune lab``: two libvirt hosts on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from vmtune import lab as hosts
from vmtune.client.connection.http import Document
from vmtune.client.session import Session, common, pass_session
from vmtune.client.views.output import Column, fields, paint, table
from vmtune.errors import InvalidInput
from vmtune.lab import LabSettings, LabStatus, VmSettings, define_vm
from vmtune.model.workload import Workload
from vmtune.units import Unit, UnitError, parse

_F = TypeVar("_F", bound=Callable[..., Any])  # any: click calls it with its options
_SETTINGS = {
    "folder": "Everything the lab keeps; made by up, removed by down.",
    "name_a": "Name of the first host and its network namespace.",
    "name_b": "Name of the second.",
    "address_a": "Address of the first host, such as 10.99.0.1/24.",
    "address_b": "Address of the second, in the same network.",
    "libvirtd": "The daemon to run on both hosts.",
    "libvirt_root": "A folder with unpacked libvirt packages to run instead.",
    "qemu": "The emulator of the VMs.",
}
_PATHS = ("folder", "libvirtd", "libvirt_root", "qemu")


def _lab_options(command: _F) -> _F:
    """An option, and a VMTUNE_LAB_* variable, for each setting of the lab."""
    for name, text in reversed(_SETTINGS.items()):
        variable = f"VMTUNE_LAB_{name.upper()}"
        command = click.option(
            f"--{name.replace('_', '-')}",
            type=click.Path(path_type=Path) if name in _PATHS else str,
            envvar=variable,
            help=f"{text}  [env: {variable}]",
        )(command)
    return command


def _lab_settings(options: dict[str, Any]) -> LabSettings:  # any: a path or a text each
    """The lab's settings: its defaults, but for the options that were given."""
    given: dict[str, Any] = {  # any: a path or a text, by the setting
        name: value.absolute() if isinstance(value, Path) else value
        for name in _SETTINGS
        if (value := options[name]) is not None
    }
    return LabSettings(**given)


@click.group()
@common
def lab() -> None:
    """Two libvirt hosts on this machine, to try things on. In namespaces; needs root."""


@lab.command()
@_lab_options
@common
@pass_session
def up(session: Session, /, **options: Any) -> None:  # any: click's values of the lab's settings
    """Bring the lab up, or leave nothing. A lab that is up already is left as it is."""
    status = hosts.up(_lab_settings(options))
    document = _document(status)
    session.show(document, lambda: _lines(document))


@lab.command()
@_lab_options
@common
@pass_session
def down(session: Session, /, **options: Any) -> None:  # any: click's values of the lab's settings
    """Take the lab down, whatever is left of it, with its VMs."""
    settings = _lab_settings(options)
    hosts.down(settings)
    document = _document(hosts.status(settings))
    session.say(document, "the lab is down")


@lab.command()
@_lab_options
@common
@pass_session
def status(session: Session, /, **options: Any) -> None:  # any: click's values of the settings
    """Show what there is of the lab: down, up or broken."""
    document = _document(hosts.status(_lab_settings(options)))
    session.show(document, lambda: _lines(document))


@lab.command()
@_lab_options
@click.option("--name", help="The VM's name.")
@click.option("--host", type=click.Choice(["a", "b"]), default="a", help="Where it starts.")
@click.option("--memory", help="Its memory, such as 512Mi.")
@click.option("--region", help="How much of it the guest dirties, such as 128Mi.")
@click.option("--stride", help="From one written byte to the next, such as 4Ki.")
@click.option("--idle", help="Rest of the guest after each pass, such as 200ms.")
@click.option("--dirty-rate", help="How fast the guest may dirty memory, such as 200MB/s.")
@click.option("--zero", help="Share of its pages that hold zeros, such as 20%.")
@click.option("--random", help="Share of its pages that cannot be compressed, such as 30%.")
@click.option("--beat", help="How often each worker's heart beats, such as 5ms.")
@click.option(
    "--ring", type=int, help="The CPU's ring that it works in: 3 where KVM emulates ring 0."
)
@click.option(
    "--listener",
    type=click.Path(path_type=Path),
    help="A folder with unix sockets named serial and beat, which you listen on.",
)
@click.option("--vcpus", type=int, help="Its vCPUs, with a worker of the guest on each.")
@click.option("--iothreads", type=int, help="Its iothreads.")
@click.option("--dirty-ring", type=int, help="Entries of its dirty ring; KVM only.")
@common
@pass_session
def vm(session: Session, /, host: str, **options: Any) -> None:  # any: click's values
    """Define and start a VM whose guest dirties memory."""
    settings = _lab_settings(options)
    work = {
        "region_bytes": _amount("--region", options["region"], Unit.BYTES),
        "stride_bytes": _amount("--stride", options["stride"], Unit.BYTES),
        "dirty_mb_per_s": _megabytes("--dirty-rate", options["dirty_rate"]),
        "zero_percent": _amount("--zero", options["zero"], Unit.PERCENT),
        "random_percent": _amount("--random", options["random"], Unit.PERCENT),
        "idle_ms": _amount("--idle", options["idle"], Unit.MS),
        "beat_ms": _amount("--beat", options["beat"], Unit.MS),
        "cpu_ring": options["ring"],
    }
    listener = options["listener"]
    given = {
        "name": options["name"],
        "memory_bytes": _amount("--memory", options["memory"], Unit.BYTES),
        "workload": Workload(**_set(work)),
        "listener": listener and listener.absolute(),
        "vcpus": options["vcpus"],
        "iothreads": options["iothreads"],
        "dirty_ring_entries": options["dirty_ring"],
    }
    wanted = VmSettings(**_set(given))
    made = define_vm(settings, wanted, host=host)
    document = {**asdict(made), "serial": str(made.serial)}
    session.show(document, lambda: fields([(name, str(v)) for name, v in document.items()]))


def _set(options: dict[str, Any]) -> dict[str, Any]:  # any: click's values
    """Those that were given."""
    return {name: value for name, value in options.items() if value is not None}


def _megabytes(option: str, text: str | None) -> int | None:
    rate = _amount(option, text, Unit.BYTES_PER_S)
    if rate is None:
        return None
    if rate % 10**6:
        raise InvalidInput(f"{text} is not a whole number of MB/s", field=option, remedy="round it")
    return rate // 10**6


def _amount(option: str, text: str | None, unit: Unit) -> int | None:
    try:
        return None if text is None else parse(text, unit)
    except UnitError as error:
        raise InvalidInput(str(error), field=option, remedy="see `vmtune lab vm --help`") from None


def _document(status: LabStatus) -> Document:
    return {
        "state": status.state,
        "folder": str(status.folder),
        "hosts": [{**asdict(host), "running": host.running} for host in status.hosts],
        "vms": [asdict(vm) for vm in status.vms],
    }


def _lines(document: Document) -> Iterator[str]:
    yield f"the lab in {document['folder']} is {paint(document['state'])}"
    yield ""
    columns = (Column("HOST"), Column("LIBVIRTD"), Column("URI"), Column("PEER URI"))
    cells = [
        (
            host["name"],
            "running" if host["running"] else "not running",
            host["uri"],
            host["peer_uri"],
        )
        for host in document["hosts"]
    ]
    yield from table(columns, cells, "no hosts")
    if document["vms"]:
        yield ""
        vms = [(vm["name"], vm["host"], vm["state"]) for vm in document["vms"]]
        yield from table((Column("VM"), Column("HOST"), Column("STATE")), vms, "no VMs")
