"""Settings of the hosts that the service manages, and of retention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from vmtune.config.accept import integer, truth

_MAX_DAYS = 36_500
_DAY_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Migration limits, drift scans, host checks, retention and webhooks.

    :param max_outgoing_migrations: how many may leave one host at once, 1 to 1000; vmtune's own
        wait in the queue, those of others count. Why these defaults:
        docs/explanation/migration-queue.md.
    :param max_incoming_migrations: likewise, arrive on one host.
    :param max_migrations: likewise, of all hosts together.
    :param max_copying_migrations: likewise, leave and arrive on one host together that copy local
        disks, 1 to 1000.
    :param drift_scan_interval_s: how often every tuned VM is checked for drift; 0 for never. At
        most a week.
    :param host_check_interval_s: how often every host is asked how it is, which lists show; 0 for
        never. At most a day.
    :param samples_whole_days: for how long all samples of a migration are kept after its end; 0 for
        no limit. Why these defaults: docs/reference/retention.md.
    :param samples_thinned_s: after that, each interval of so many seconds is thinned to the last
        sample, the peaks, and the boundaries of iterations and phases; 1 to 3600.
    :param samples_days: for how long they are kept at all, with the reaper's rounds; the
        migration's record stays. 0 for no limit.
    :param forecast_days: for how long forecasts are kept after their migration's end, with what
        came of them; 0 for no limit.
    :param audit_days: for how long entries of the audit log are kept; 0 for no limit.
    :param gone_vms_days: for how long a VM is remembered, with its labels, that its host no longer
        has, counted from when it was last seen; 0 for no limit.
    :param idempotency_days: for how long a request with an ``Idempotency-Key`` is remembered with
        its answer; 0 for no limit.
    :param webhook_days: for how long deliveries of webhooks are kept after their end; 0 for no
        limit.
    :param webhook_own_addresses: also send webhooks to this machine's own, loopback and
        link-local addresses.
    """

    max_outgoing_migrations: int = 2
    max_incoming_migrations: int = 2
    max_migrations: int = 40
    max_copying_migrations: int = 1
    drift_scan_interval_s: int = 900
    host_check_interval_s: int = 60
    samples_whole_days: int = 30
    samples_thinned_s: int = 10
    samples_days: int = 365
    forecast_days: int = 365
    audit_days: int = 0
    gone_vms_days: int = 30
    idempotency_days: int = 7
    webhook_days: int = 30
    webhook_own_addresses: bool = False


CHECKS: Mapping[str, Callable[[object], object]] = {
    "max_outgoing_migrations": integer(1, 1000),
    "max_incoming_migrations": integer(1, 1000),
    "max_migrations": integer(1, 100_000),
    "max_copying_migrations": integer(1, 1000),
    "drift_scan_interval_s": integer(0, 7 * _DAY_S),
    "host_check_interval_s": integer(0, _DAY_S),
    "samples_whole_days": integer(0, _MAX_DAYS),
    "samples_thinned_s": integer(1, 3600),
    "samples_days": integer(0, _MAX_DAYS),
    "forecast_days": integer(0, _MAX_DAYS),
    "audit_days": integer(0, _MAX_DAYS),
    "gone_vms_days": integer(0, _MAX_DAYS),
    "idempotency_days": integer(0, _MAX_DAYS),
    "webhook_days": integer(0, _MAX_DAYS),
    "webhook_own_addresses": truth,
}
"""What accepts each."""
assert set(CHECKS) == {field.name for field in fields(ClusterSettings)}, "a setting without a check"
