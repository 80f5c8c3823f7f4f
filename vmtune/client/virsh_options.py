"""The options of ``virsh migrate``, as options of a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import click

from vmtune.model.tunables.tunable import Kind
from vmtune.model.tunables.virsh import COMPRESSED, METHODS
from vmtune.model.tunables.virsh_options import DONE_ANYWAY, NOT_DONE, STEPS, TIMEOUT, TUNING

_F = TypeVar("_F", bound=Callable[..., object])
_TAKES_TEXT = frozenset(
    {"--graphicsuri", "--dname", "--xml", "--persistent-xml"}
    | {"--migrate-disks", "--migrate-disks-detect-zeroes", "--disks-port"}
    | {"--comp-mt-level", "--comp-mt-dthreads"}
)
"""Of those that vmtune does not do, the ones that take a value."""
_PREFIX = "virsh_"


def virsh_options(command: _F) -> _F:
    """Add all of virsh's options; those that mean a tunable are shown in the help."""
    for option, why in NOT_DONE.items():
        kind: dict[str, object] = {"type": str} if option in _TAKES_TEXT else {"is_flag": True}
        command = _add(command, option, hidden=True, help=why, **kind)
    for option, why in DONE_ANYWAY.items():
        command = _add(command, option, hidden=True, help=why, is_flag=True)
    for option, does in STEPS.items():
        text = does[0].upper() + does[1:] + "."
        kind = {"type": click.IntRange(min=1)} if option == TIMEOUT else {"is_flag": True}
        command = _add(command, option, help=text, **kind)
    command = _add(command, METHODS, help="xbzrle, mt, zlib or zstd.", metavar="METHOD")
    command = _add(command, COMPRESSED, help="Compress, with --comp-methods.", is_flag=True)
    for option, row in reversed(list(TUNING.items())):
        scale = row.libvirt.scale if row.libvirt else 1
        text = f"As in virsh: {row.name}{', in MiB/s' if scale > 1 else ''}."
        if row.kind is Kind.BOOLEAN:
            command = _add(command, option, help=text, is_flag=True)
        elif row.kind is Kind.INTEGER:
            command = _add(command, option, help=text, type=click.IntRange(min=0))
        else:
            command = _add(command, option, help=text)
    return command


def _add(command: _F, option: str, **how: object) -> _F:
    name = _PREFIX + option.removeprefix("--").replace("-", "_")
    return click.option(option, name, default=None, **how)(command)  # type: ignore[arg-type]  # click's own mix of keywords


def named(given: Mapping[str, object]) -> dict[str, bool | int | str]:
    """The options that were given, by their names."""
    found: dict[str, bool | int | str] = {}
    for name, value in given.items():
        if name.startswith(_PREFIX) and isinstance(value, bool | int | str) and value is not False:
            found["--" + name.removeprefix(_PREFIX).replace("_", "-")] = value
    return found
