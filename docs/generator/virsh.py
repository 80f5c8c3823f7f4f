"""The page of the options of ``virsh migrate``, from vmtune's table of them."""

from __future__ import annotations

from collections.abc import Iterator

from docs.generator.markdown import code, plain, table
from vmtune.model.tunables import virsh_options
from vmtune.model.tunables.tunable import Kind, Tunable
from vmtune.model.tunables.virsh import COMPRESSED, METHODS


def page() -> str:
    """Each option: what it is for vmtune, or why it is not taken."""
    return "\n\n".join(
        [
            "# Options of virsh migrate",
            "`vmtune migrate` takes options of `virsh migrate` "
            "([Use vmtune with virsh](../how-to/virsh.md)). An option that is a tunable takes "
            "precedence over the profile.",
            table(
                ("option", "vmtune", "what it is"),
                sorted(_rows(), key=lambda row: row[0].strip("`")),
            ),
        ]
    )


def _rows() -> Iterator[tuple[str, str, str]]:
    for option, row in virsh_options.TUNING.items():
        yield code(option), "tunable", _tunable(row)
    methods = (
        f"{code(method)}: {', '.join(_link(name) for name in values)}"
        for method, values in virsh_options.COMPRESSIONS.items()
    )
    yield code(METHODS), "tunables", "; ".join(methods)
    yield code(COMPRESSED), "tunables", f"as {code(METHODS)} says; {code('xbzrle')} by itself"
    for option, what in virsh_options.STEPS.items():
        yield code(option), "step", plain(what)
    for option, why in virsh_options.DONE_ANYWAY.items():
        yield code(option), "done anyway", plain(why)
    for option, why in virsh_options.NOT_DONE.items():
        yield code(option), "refused", plain(why)


def _tunable(row: Tunable) -> str:
    libvirt = row.libvirt
    assert libvirt is not None, "or virsh would not have it"
    said = _link(row.name)
    if row.kind is Kind.INTEGER and libvirt.scale > 1:
        said += ", in MiB/s"
    return f"{said}; from libvirt {libvirt.since.short}"


def _link(name: str) -> str:
    return f"[{code(name)}](tunables.md#{name})"
