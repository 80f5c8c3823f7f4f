"""Filters lists for callers that are restricted to some hosts and VMs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.orm import InstrumentedAttribute

from vmtune.model.access.scopes import Reach
from vmtune.storage.tables.core import VmRow


def within(
    reach: Reach,
    hosts: Sequence[InstrumentedAttribute[Any]],  # any: str or str | None
    vm: InstrumentedAttribute[UUID],
) -> list[ColumnElement[bool]]:
    """The condition for a record to be within *reach*: one of its hosts is, and its VM has the
    labels now. A removed VM is out of reach for a caller restricted by labels.

    :param hosts: the record's columns that name a host.
    """
    conditions: list[ColumnElement[bool]] = []
    if reach.hosts is not None:
        conditions.append(or_(*(column.in_(reach.hosts) for column in hosts)))
    if reach.labels:
        labelled = select(VmRow.uuid)
        for key, value in reach.labels:
            labelled = labelled.where(VmRow.labels[key].as_string() == value)
        conditions.append(vm.in_(labelled))
    return conditions
