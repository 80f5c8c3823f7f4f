"""Forgetting vmtune's own storage pools."""

from __future__ import annotations

from typing import cast
from uuid import uuid4

from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.libvirt.pools import forget_pools

VM = uuid4()


class Pools:
    """A libvirt with pools; those in *busy* cannot be forgotten."""

    def __init__(self, *names: str, busy: tuple[str, ...] = ()) -> None:
        self.names, self.busy = list(names), busy

    def pools_named(self, prefix: str) -> list[Made]:
        return [Made(self, name) for name in self.names if name.startswith(prefix)]


class Made:
    def __init__(self, of: Pools, name: str) -> None:
        self._of, self.name = of, name

    def deactivate(self) -> None:
        if self.name in self._of.busy:
            raise LibvirtRefused("pool has asynchronous jobs running")
        self._of.names.remove(self.name)


def test_those_of_a_vm_are_forgotten_and_what_stays_is_said() -> None:
    first, second = f"vmtune-{VM}-0", f"vmtune-{VM}-1"
    pools = Pools("images", first, second, busy=(second,))
    assert forget_pools(cast(Connection, pools), VM) == (second,)
    assert pools.names == ["images", second]
    pools.busy = ()
    assert forget_pools(cast(Connection, pools), VM) == ()
    assert pools.names == ["images"]
