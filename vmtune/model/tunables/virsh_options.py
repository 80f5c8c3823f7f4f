"""Options of ``virsh migrate`` as ``vmtune migrate`` takes them: which are tunables, which steps,
which vmtune does anyway, and which it does not do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from vmtune.errors import InvalidInput, Problem
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.rows.names import MIB
from vmtune.model.tunables.tunable import Kind, LibvirtKind, Route, Tunable
from vmtune.model.tunables.virsh import COMPRESSED, METHODS

Given = Mapping[str, bool | int | str]
"""Options by their names, with the value given, or True."""

TIMEOUT, SUSPEND, TO_POSTCOPY = "--timeout", "--timeout-suspend", "--timeout-postcopy"
AFTER_PRECOPY = "--postcopy-after-precopy"


def _tunable_options() -> Mapping[str, Tunable]:
    """From the table: each option that sets one tunable by itself."""
    rows = {
        row.libvirt.virsh: row
        for row in BUILT_IN.values()
        if row.route is Route.MIGRATE
        and row.libvirt is not None
        and row.libvirt.kind in (LibvirtKind.FLAG, LibvirtKind.PARAMETER)
        and not row.libvirt.virsh.startswith(COMPRESSED)
    }
    assert all(option.startswith("--") and " " not in option for option in rows), rows
    return MappingProxyType(rows)


TUNING: Mapping[str, Tunable] = _tunable_options()
"""The options that set a tunable, with its row."""

COMPRESSIONS: Mapping[str, Mapping[str, bool | str]] = MappingProxyType(
    {
        "xbzrle": {"xbzrle": True},
        "mt": {"compress": True},
        "zlib": {"multifd_compression": "zlib"},
        "zstd": {"multifd_compression": "zstd"},
    }
)
"""What the methods of ``--comp-methods`` are."""

STEPS: Mapping[str, str] = MappingProxyType(
    {
        TIMEOUT: "seconds after which the guest is paused, or post-copy begins",
        SUSPEND: "at --timeout, pause the guest",
        TO_POSTCOPY: "at --timeout, begin post-copy",
        AFTER_PRECOPY: "begin post-copy after the first iteration",
    }
)
"""The options that are convergence steps."""

DONE_ANYWAY: Mapping[str, str] = MappingProxyType(
    {
        "--live": "vmtune always migrates live",
        "--p2p": "vmtune always lets the source's libvirt do it",
        "--persistent": "a VM stays persistent",
        "--undefinesource": "a VM stays defined on one host only",
        "--verbose": "vmtune always shows the progress",
    }
)
"""The options that change nothing: vmtune does so by itself."""

_XML = "vmtune does not change the VM's definition"
NOT_DONE: Mapping[str, str] = MappingProxyType(
    {
        "--offline": "vmtune migrates running VMs",
        "--direct": "QEMU's libvirt driver has no direct migration",
        "--tunnelled": "it excludes parallel connections and post-copy; use --tls",
        "--suspend": "the guest runs on the destination; pause it there",
        "--change-protection": "libvirt protects peer-to-peer migrations by itself",
        "--unsafe": "vmtune does not switch off libvirt's checks",
        "--rdma-pin-all": "vmtune does not drive RDMA",
        "--abort-on-error": "it concerns storage errors; use virsh itself",
        "--postcopy-resume": "use virsh itself to recover a post-copy migration",
        "--graphicsuri": "vmtune leaves graphics to libvirt",
        "--dname": _XML,
        "--xml": _XML,
        "--persistent-xml": _XML,
        "--comp-mt-level": "compress is fastest by default; set compress_threads",
        "--comp-mt-dthreads": "set decompress_threads in a profile",
    }
)
"""The options that vmtune does not take, each with why and what to do instead."""


@dataclass(frozen=True, slots=True)
class FromVirsh:
    """What options of virsh mean for vmtune.

    :param steps: None where none was given, so that the profile's stay.
    """

    values: Mapping[str, bool | int | str] = field(default_factory=dict)
    steps: list[dict[str, object]] | None = None


def from_virsh(given: Given) -> FromVirsh:
    """What *given* options mean.

    >>> from_virsh({"--parallel": True, "--bandwidth": 100}).values
    {'multifd': True, 'max_bandwidth_bytes_per_s': 104857600}

    :raise InvalidInput: naming each option that vmtune does not do, or that lacks another.
    """
    problems = [
        Problem(option, "not_done_by_vmtune", f"vmtune migrate does not take {option}", why)
        for option, why in NOT_DONE.items()
        if option in given
    ]
    values: dict[str, bool | int | str] = {}
    for option, row in TUNING.items():
        if option in given:
            value = given[option]
            scale = row.libvirt.scale if row.libvirt else 1
            scaled = row.kind is Kind.INTEGER and scale > 1
            values[row.name] = int(value) * scale if scaled else value
    values |= _compression(given, problems)
    steps = _steps(given, problems)
    if AFTER_PRECOPY in given or TO_POSTCOPY in given:
        values["postcopy"] = True
    if problems:
        raise InvalidInput("these options of virsh cannot be taken", problems=problems)
    return FromVirsh(values, steps)


def _compression(given: Given, problems: list[Problem]) -> dict[str, bool | int | str]:
    if METHODS not in given and COMPRESSED not in given:
        return {}
    if METHODS not in given and "--parallel" in given:
        problems.append(
            Problem(
                COMPRESSED,
                "method_missing",
                "parallel migration compresses by zlib or zstd, and none is named",
                f"add {METHODS} zstd",
            )
        )
        return {}
    values: dict[str, bool | int | str] = {}
    for method in str(given.get(METHODS, "xbzrle")).split(","):
        if method not in COMPRESSIONS:
            known = ", ".join(COMPRESSIONS)
            message = f"{method[:40]!r} is not a compression method"
            problems.append(Problem(METHODS, "invalid_value", message, f"use one of {known}"))
        else:
            values |= COMPRESSIONS[method]
    return values


def _steps(given: Given, problems: list[Problem]) -> list[dict[str, object]] | None:
    steps: list[dict[str, object]] = []
    if AFTER_PRECOPY in given:
        steps.append({"when": {"after_iterations": 1}, "then": {"do": "postcopy"}})
    if TIMEOUT in given:
        do = "postcopy" if TO_POSTCOPY in given else "pause"
        steps.append({"when": {"after_s": given[TIMEOUT]}, "then": {"do": do}})
    if SUSPEND in given and TO_POSTCOPY in given:
        message = f"{SUSPEND} and {TO_POSTCOPY} exclude each other"
        problems.append(Problem(SUSPEND, "excludes", message, "give one of them"))
    for option in (SUSPEND, TO_POSTCOPY):
        if option in given and TIMEOUT not in given:
            message = f"{option} says what to do at a timeout, and there is none"
            problems.append(Problem(option, "timeout_missing", message, f"add {TIMEOUT} SECONDS"))
    return steps or None


ALL = frozenset({*TUNING, *STEPS, *DONE_ANYWAY, *NOT_DONE, COMPRESSED, METHODS})
"""Every option that is known here."""
assert BUILT_IN["max_bandwidth_bytes_per_s"].libvirt is not None
assert BUILT_IN["max_bandwidth_bytes_per_s"].libvirt.scale == MIB
