"""Who may load VMs that run: who may change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vmtune.api.auth.security import check_scope
from vmtune.model.access.scopes import Identity, Scope

_TARGET = "target"
"""What names a running VM, wherever in a scenario, a campaign or a matrix."""


def check_may_load(who: Identity, *documents: Any) -> None:  # any JSON
    """Beside the scope ``bench``, which is for QEMUs that are started for it, a running VM takes
    ``apply``: its guest shares with the load what it is on.

    :param documents: what was asked for.
    :raise Forbidden: they name a running VM, and *who* may not change VMs.
    """
    if any(map(_names_a_vm, documents)):
        check_scope(who, Scope.APPLY)


def _names_a_vm(part: Any) -> bool:  # any JSON
    if isinstance(part, Mapping):
        return part.get(_TARGET) is not None or any(map(_names_a_vm, part.values()))
    return isinstance(part, list) and any(map(_names_a_vm, part))
