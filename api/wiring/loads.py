"""Rights for loads on running VMs: the same as for changing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vmtune.api.auth.security import check_scope
from vmtune.model.access.scopes import Identity, Scope

_TARGET = "target"
"""What names a running VM, wherever in a scenario, a campaign or a matrix."""


def check_may_load(who: Identity, *documents: Any) -> None:  # any JSON
    """A load on a running VM needs ``apply`` in addition to ``bench``: it competes with the guest.
    :param documents: the requested scenarios.
    :raise Forbidden: they name a running VM, and *who* lacks ``apply``.
    """
    if any(map(_names_a_vm, documents)):
        check_scope(who, Scope.APPLY)


def _names_a_vm(part: Any) -> bool:  # any JSON
    if isinstance(part, Mapping):
        return part.get(_TARGET) is not None or any(map(_names_a_vm, part.values()))
    return isinstance(part, list) and any(map(_names_a_vm, part))
