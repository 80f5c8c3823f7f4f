"""The table of tunables, row by row."""

from __future__ import annotations

from pydantic import Field

from vmtune.api.schemas.common import Model, Page, ValueText
from vmtune.model.plan.plan import TAKES_EFFECT, TakesEffect
from vmtune.model.tunables.built_in import subject_of
from vmtune.model.tunables.tunable import (
    Kind,
    LibvirtKind,
    LibvirtName,
    QmpKind,
    Route,
    Side,
    Tunable,
)
from vmtune.units import Unit, examples


class QmpNameView(Model):
    """QEMU's own name of a tunable."""

    kind: QmpKind
    name: str


class LibvirtNameView(Model):
    """libvirt's own name of a tunable, and virsh's option."""

    kind: LibvirtKind
    name: str
    virsh: str
    since: str = Field(description="First libvirt that supports it.")

    @classmethod
    def of(cls, name: LibvirtName) -> LibvirtNameView:
        return cls.from_record(name, since=name.since.short)


class TunableView(Model):
    """One tunable: description, accepted values, and route to QEMU."""

    name: str
    title: str
    why: str = Field(description="What it does and when to change it.")
    subject: str = Field(description="What it is about; tunables of one subject follow each other.")
    kind: Kind
    unit: Unit
    route: Route
    side: Side = Field(description="The QEMU of a migration that needs the value.")
    default: ValueText | None = Field(description="Default of QEMU; null if it depends.")
    minimum: int | None
    maximum: int | None
    power_of_two: bool
    choices: list[str]
    allowed: str = Field(description="The accepted values in words.")
    examples: str = Field(description="Examples of a value; empty for a choice.")
    qmp: QmpNameView | None
    libvirt: LibvirtNameView | None
    probe: str = Field(description="How the current value is read.")
    since: str = Field(description="First QEMU that supports it.")
    until: str | None = Field(description="Last QEMU that supports it; null if all newer do.")
    overwriter: str = Field(description="What overwrites the value if it is set another way.")
    takes_effect: TakesEffect = Field(description="When it takes effect if nothing blocks it.")
    running: bool = Field(description="It can change during a migration.")
    pack: str = Field(description="Its tunable pack; empty for vmtune's own.")
    read_only: bool = Field(description="A counter, which cannot be set.")

    @classmethod
    def of(cls, row: Tunable) -> TunableView:
        return cls.from_record(
            row,
            subject=subject_of(row),
            default=ValueText.or_none(row.name, row.default, {row.name: row}),
            allowed=row.allowed(),
            examples=examples(row.unit) if row.kind is Kind.INTEGER else "",
            libvirt=LibvirtNameView.of(row.libvirt) if row.libvirt else None,
            since=row.since.short,
            until=row.until.short if row.until else None,
            takes_effect=TAKES_EFFECT[row.route],
        )


class TunablePage(Page[TunableView]):
    """Tunables, by subject."""
