"""What TLS sent between two hosts, and what a guest dirtied, by recorded migrations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from vmtune.forecast.limits import channels
from vmtune.forecast.path import sent
from vmtune.model.migration.record import Migration, MigrationState, Sample
from vmtune.model.plan.situation import Encrypted
from vmtune.model.tunables.tunable import Value
from vmtune.storage import Store

_RECORDS = 50
_OF_VM = 3
"""A guest may do something else than long ago."""


def look_up_encrypted(
    store: Store, hosts: frozenset[str], vm: UUID, values: Mapping[str, Value]
) -> Encrypted | None:
    """By the migrations with TLS between *hosts*, in either direction, with as many channels.

    A migration whose bandwidth limit was reached says nothing of what TLS can send. Blocks.

    :return: None where no migration says what TLS sends, or what the guest dirties.
    """
    past = store.migrations.list(
        host=next(iter(hosts)), state=MigrationState.COMPLETED, limit=_RECORDS
    )
    alike = [record for record in past.items if _is_alike(record, hosts, values)]
    paces = [said.bytes_per_s for each in alike if (said := sent(each)) and not said.held_by_limit]
    dirtied = _dirtied(store, vm) if paces else None
    return None if dirtied is None else Encrypted(round(max(paces)), len(paces), dirtied)


def _is_alike(record: Migration, hosts: frozenset[str], values: Mapping[str, Value]) -> bool:
    between = {record.source, record.destination} == hosts
    same = channels(record.wanted) == channels(values)
    return between and record.wanted.get("tls") is True and same


def _dirtied(store: Store, vm: UUID) -> int | None:
    """The most that the guest dirtied within an iteration of its newest migration that was looked
    at for so long, in bytes a second, as long as nothing throttled it."""
    for record in store.migrations.list(vm=vm, limit=_OF_VM).items:
        rates = list(_rates(store.migrations.samples(record.id)))
        if rates:
            return max(rates)
    return None


def _rates(samples: Iterable[Sample]) -> Iterable[int]:
    for sample in samples:
        throttled = sample.throttle_percent or sample.dirty_limit_throttle_us
        if sample.dirty_pages_per_s and not throttled:
            yield sample.dirty_pages_per_s * sample.page_size_bytes
