"""``vmtune lab``: two libvirt hosts on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from vmtune import lab as hosts
from vmtune.client.connection.http import Document
from vmtune.client.session import Session, common, pass_session, watchable
from vmtune.client.views.output import Column, fields, paint, table
from vmtune.errors import InvalidInput
from vmtune.lab import LabSettings, LabStatus, VmSettings, define_vm
from vmtune.model.workload import Workload
from vmtune.units import Unit, UnitError, parse

_F = TypeVar("_F", bound=Callable[..., Any])  # any: click calls it with its options
_SETTINGS = {
    "folder": "Folder of the lab; `up` creates it, `down` removes it.",
    "name_a": "Name of the first host and its network namespace.",
    "name_b": "Name of the second host.",
    "address_a": "Address of the first host, such as 10.99.0.1/24.",
    "address_b": "Address of the second host, in the same network.",
    "libvirtd": "Libvirt daemon of both hosts.",
    "libvirt_root": "Folder with unpacked libvirt packages to run instead.",
    "qemu": "QEMU binary of the VMs.",
    "device_a": "Network device that becomes the first host's link, such as a card's port.",
    "device_b": "Network device of the second host, wired to the first one's.",
    "migration_address_a": "Of machines: where the first host's migrations arrive.",
    "migration_address_b": "Of machines: where the second host's migrations arrive.",
    "root_a": "Of machines: root of another release for the first host.",
    "root_b": "Of machines: root of another release for the second host.",
    "root_c": "Of machines: root of another release for the third host.",
    "name_c": "Name of the third host.",
    "address_c": "Address of the third host, in the same network.",
    "migration_address_c": "Of machines: where the third host's migrations arrive.",
}
_PATHS = ("folder", "libvirtd", "libvirt_root", "qemu", "root_a", "root_b", "root_c")


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
    command = click.option(
        "--hosts",
        type=int,
        envvar="VMTUNE_LAB_HOSTS",
        default=None,
        help="Number of hosts: 2, or 3 machines.  [env: VMTUNE_LAB_HOSTS]",
    )(command)
    return click.option(
        "--machines/--no-machines",
        envvar="VMTUNE_LAB_MACHINES",
        default=None,
        help="Give each host a root of its own, sshd, TLS, SASL and polkit.  "
        "[env: VMTUNE_LAB_MACHINES]",
    )(command)


def _lab_settings(options: dict[str, Any]) -> LabSettings:  # any: a path or a text each
    """The lab's settings: its defaults, but for the options that were given."""
    given: dict[str, Any] = {  # any: a path or a text, by the setting
        name: value.absolute() if isinstance(value, Path) else value
        for name in _SETTINGS
        if (value := options[name]) is not None
    }
    if options["hosts"] is not None:
        given["hosts"] = options["hosts"]
    return LabSettings(**given, machines=bool(options["machines"]))


@click.group()
@common
def lab() -> None:
    """Two libvirt hosts on this machine, for experiments. They run in namespaces; needs root."""


@lab.command()
@_lab_options
@common
@pass_session
def up(session: Session, /, **options: Any) -> None:  # any: click's values of the lab's settings
    """Start the lab; clean up after an error. A running lab stays unchanged."""
    status = hosts.up(_lab_settings(options))
    document = _document(status)
    session.show(document, lambda: _lines(document))


@lab.command()
@_lab_options
@common
@pass_session
def down(session: Session, /, **options: Any) -> None:  # any: click's values of the lab's settings
    """Stop the lab and its VMs and remove all remains."""
    settings = _lab_settings(options)
    hosts.down(settings)
    document = _document(hosts.status(settings))
    session.report(document, "the lab is down")


@lab.command()
@_lab_options
@watchable
@pass_session
def status(session: Session, /, **options: Any) -> None:  # any: click's values of the settings
    """Show the state of the lab: down, up or broken."""
    document = _document(hosts.status(_lab_settings(options)))
    session.show(document, lambda: _lines(document))


@lab.command()
@_lab_options
@click.option("--name", help="Name of the VM.")
@click.option(
    "--host", type=click.Choice(["a", "b", "c"]), default="a", help="Host that starts it."
)
@click.option("--memory", help="Memory, such as 512Mi.")
@click.option("--region", help="Memory that the guest dirties, such as 128Mi.")
@click.option("--stride", help="Stride between written bytes, such as 4Ki.")
@click.option("--idle", help="Pause of the guest after each pass, such as 200ms.")
@click.option("--dirty-rate", help="Maximum dirty rate of the guest, such as 200MB/s.")
@click.option("--zero", help="Share of zero pages, such as 20%.")
@click.option("--random", help="Share of incompressible pages, such as 30%.")
@click.option("--beat", help="Heartbeat interval of each worker, such as 5ms.")
@click.option("--check", is_flag=True, help="The guest checks its memory in each pass.")
@click.option("--ring", type=int, help="CPU ring of the workload: 3 where KVM emulates ring 0.")
@click.option("--skew", help="0: pages in order; 50 to 99: drawn, 80 by the 80-20 rule.")
@click.option(
    "--listener",
    type=click.Path(path_type=Path),
    help="Folder with unix sockets named serial and beat, which you listen on.",
)
@click.option("--vcpus", type=int, help="Number of vCPUs, with one guest worker on each.")
@click.option("--iothreads", type=int, help="Number of iothreads.")
@click.option("--dirty-ring", type=int, help="Entries of the dirty ring; KVM only.")
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
        "check": 1 if options["check"] else None,
        "cpu_ring": options["ring"],
        "skew_percent": _amount("--skew", options["skew"], Unit.PERCENT),
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
        raise InvalidInput(
            f"{text} is not a whole number of MB/s", field=option, remedy="use a whole number"
        )
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
