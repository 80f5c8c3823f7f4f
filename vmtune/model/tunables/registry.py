"""The tunables that a process knows: vmtune's own and those of the packs that it was started with.

A registry never changes. The wiring makes one, and gives it to those who look tunables up by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from vmtune.errors import InvalidInput, SetupError
from vmtune.model.tunables.tunable import (
    Kind,
    LibvirtKind,
    QmpKind,
    QmpName,
    Route,
    Side,
    Tunable,
)


class TunableRegistry(Mapping[str, Tunable]):
    """Tunables by name, in the order in which people should read them."""

    def __init__(self, rows: Iterable[Tunable]) -> None:
        """
        :raise AssertionError: a row is half-filled, or two have one name or one place in QEMU.
        """
        found: dict[str, Tunable] = {}
        qmp_names: set[QmpName] = set()
        for row in rows:
            assert row.name not in found, f"{row.name}: there are two"
            assert row.qmp is None or row.qmp not in qmp_names, f"{row.name}: {row.qmp} twice"
            _check_complete(row)
            found[row.name] = row
            if row.qmp is not None:
                qmp_names.add(row.qmp)
        self._rows: Mapping[str, Tunable] = MappingProxyType(found)

    def __getitem__(self, name: str) -> Tunable:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"TunableRegistry({len(self)} tunables)"

    def row(self, name: str) -> Tunable:
        """The row of a tunable that a record names.

        :raise SetupError: its pack is not loaded.
        """
        row = self.get(name)
        if row is None:
            raise SetupError(
                f"no tunable {name[:60]!r} is known: its pack is not loaded",
                field=f"values.{name}",
                code="pack_not_loaded",
                remedy="name the pack in the setting packs, and start the service again",
            )
        return row

    def on(self, route: Route | None = None, side: Side | None = None) -> tuple[Tunable, ...]:
        """The tunables of a route and a side; None for all."""
        return tuple(
            row for row in self.values() if route in (None, row.route) and side in (None, row.side)
        )

    def by_qmp(self, kind: QmpKind) -> Mapping[str, Tunable]:
        """The tunables that QEMU keeps as *kind*, by QEMU's name."""
        return {t.qmp.name: t for t in self.values() if t.qmp and t.qmp.kind is kind}

    def with_packs(self, rows: Iterable[Tunable]) -> TunableRegistry:
        """These tunables, then *rows* of tunable packs.

        :raise InvalidInput: a name, or a place in QEMU, that another tunable has.
        """
        known = dict(self._rows)
        owners = {row.qmp: row.name for row in self.values() if row.qmp}
        for row in rows:
            owner = owners.setdefault(row.qmp, row.name) if row.qmp else row.name
            if row.name in known or owner != row.name:
                raise InvalidInput(
                    f"the pack {row.pack} has a tunable {row.name}, which is there already "
                    f"as {owner}",
                    field="packs",
                    code="shadowing_name",
                    remedy="load one of both packs, or rename it",
                )
            known[row.name] = row
        return TunableRegistry(known.values())


def _check_complete(row: Tunable) -> None:
    """:raise AssertionError: naming the row and what it lacks."""
    assert row.name.isidentifier(), f"{row.name}: name"
    assert row.title and row.why.endswith("."), f"{row.name}: title or why"
    if row.kind is Kind.INTEGER:
        assert row.minimum is not None and row.maximum is not None, f"{row.name}: range"
        suffix = row.unit.value
        named = suffix in ("", "count") or row.name.endswith("_" + suffix)
        assert named, f"{row.name}: the name must end with its unit, {suffix}"
    assert (row.kind is Kind.CHOICE) == bool(row.choices), f"{row.name}: choices"
    assert row.default is None or row.accept(row.default) == row.default, f"{row.name}: default"
    if row.route is Route.MIGRATE:
        assert row.libvirt is not None and row.overwriter, f"{row.name}: libvirt"
    if row.route in (Route.MONITOR, Route.LIVE):
        assert row.qmp is not None, f"{row.name}: qmp"
    if row.route is Route.BOOT:
        in_xml = row.libvirt is not None and row.libvirt.kind is LibvirtKind.XML
        assert in_xml, f"{row.name}: its place in the domain XML"
    if row.route is Route.CONTROL:
        assert row.qmp is None and row.libvirt is None, f"{row.name}: it is vmtune's own"
