"""A run's record, reduced to the metrics of :data:`vmtune.bench.model.metrics.table.METRICS`.
Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vmtune.bench.block.reduce import reduce_block
from vmtune.bench.boot.reduce import reduce_boot
from vmtune.bench.migration.guest_metrics import guest_metrics
from vmtune.bench.migration.guest_passes import Span
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.metrics.table import METRICS, SUCCESS
from vmtune.bench.model.runs.run import CpuSample, HostSide, RunRecord, RunState
from vmtune.bench.model.runs.send_record import SendRecord
from vmtune.bench.srcu.reduce import reduce_srcu
from vmtune.model.migration.postcopy_figures import PostcopyFigures
from vmtune.model.migration.record import Sample
from vmtune.model.tunables.tunable import Value

GIB = 1 << 30
MetricValues = Iterator[tuple[str, float]]


def reduce(record: RunRecord, state: RunState, values: Mapping[str, Value]) -> dict[str, float]:
    """The metrics of a run of any kind that has ended; those that could not be had are missing.

    :param values: what the migration was tuned with: without auto-converge there is no throttle to
        report.
    """
    if record.block is not None:
        return {**reduce_block(record.block), **dict(_success(ScenarioKind.BLOCK, state))}
    if record.boot is not None:
        return {**reduce_boot(record.boot), **dict(_success(ScenarioKind.BOOT, state))}
    if record.srcu is not None:
        return {**reduce_srcu(record.srcu), **dict(_success(ScenarioKind.SRCU, state))}
    migration = _migration(record)
    found = {
        **dict(_success(ScenarioKind.MIGRATION, state)),
        **dict(_time(record, state, migration)),
        **guest_metrics(record, migration),
        **dict(_postcopy(record.postcopy)),
        **dict(_cpu(record.cpu, migration)),
        **dict(_sending(record, migration)),
        **dict(_sends(record.sends)),
        **dict(_transfer(record, values)),
        **dict(_control(record, values)),
    }
    return {name: float(found[name]) for name in METRICS if name in found}


def _success(kind: ScenarioKind, state: RunState) -> MetricValues:
    if state.completed is not None:
        yield SUCCESS[kind], float(state.completed)


def _migration(record: RunRecord) -> Span | None:
    """From its start to its end: the record's own where its end was not seen."""
    if record.migration_ms is None:
        return None
    ended = record.migration_ended_ms
    return record.migration_ms, max(
        record.migration_ms, record.ended_ms if ended is None else ended
    )


def _time(record: RunRecord, state: RunState, migration: Span | None) -> MetricValues:
    if migration is None:
        return
    yield "elapsed_ms", migration[1] - migration[0]
    totals = record.totals
    if state is not RunState.COMPLETED or totals is None:
        return
    yield "total_time_ms", totals.total_time_ms
    yield "downtime_ms", totals.downtime_ms
    if totals.setup_time_ms is not None:
        yield "setup_time_ms", totals.setup_time_ms


def _postcopy(figures: PostcopyFigures | None) -> MetricValues:
    if figures is None:
        return
    yield "postcopy_blocked_ms", figures.blocked_ms
    if figures.vcpu_blocked_ms:
        yield "postcopy_vcpu_blocked_ms", max(figures.vcpu_blocked_ms)
    if figures.latency_ns is not None:
        yield "postcopy_latency_us", figures.latency_ns / 1000
    most = figures.latency_at_most_us(0.99)
    if most is not None:
        yield "postcopy_latency_p99_us", most


_KINDS = ("vcpu", "migration", "multifd", "other")


def _cpu(cpu: Sequence[CpuSample], migration: Span | None) -> MetricValues:
    if migration is None:
        return
    for side in HostSide:
        own = sorted((s for s in cpu if s.side is side), key=lambda s: s.at_ms)
        if len(own) < 2 or own[-1].at_ms <= migration[0] or own[0].at_ms >= migration[1]:
            continue
        used = {kind: _used(own, f"{kind}_ms", migration) for kind in _KINDS}
        yield f"{side.value}_cpu_ms", sum(used.values())
        for kind, milliseconds in used.items():
            yield f"{side.value}_cpu_{kind}_ms", milliseconds


def _sending(record: RunRecord, migration: Span | None) -> MetricValues:
    own = sorted(
        (s for s in record.cpu if s.side is HostSide.SOURCE and s.send_system_ms is not None),
        key=lambda s: s.at_ms,
    )
    sent = record.totals.transferred_bytes if record.totals else 0
    if migration is None or len(own) < 2 or sent <= 0:
        return
    yield "source_send_system_ms_per_gib", _used(own, "send_system_ms", migration) / (sent / GIB)


def _sends(sends: SendRecord | None) -> MetricValues:
    if sends is None:
        return
    total = sends.total
    yield "sends", total.sends
    if total.sent_bytes:
        gib = total.sent_bytes / GIB
        yield "sendmsg_cpu_ms_per_gib", total.send_cpu_us / 1000 / gib
        yield "sendmsg_ms_per_gib", total.send_us / 1000 / gib
    if total.zero_copy_sends:
        yield "zero_copy_flush_ms", total.flush_us / 1000
        yield "zero_copy_copied_percent", 100 * total.copied_sends / total.zero_copy_sends


def _used(own: Sequence[CpuSample], field: str, span: Span) -> float:
    begin, end = (_at(own, field, moment) for moment in span)
    return max(0.0, end - begin)


def _at(own: Sequence[CpuSample], field: str, moment: float) -> float:
    """A counter at a moment, on the line between the samples around it; beyond the first and
    the last it stands still."""
    before, after = own[0], own[-1]
    for sample in own:
        if sample.at_ms <= moment:
            before = sample
        else:
            after = sample
            break
    low, high = float(getattr(before, field)), float(getattr(after, field))
    if moment <= before.at_ms or after.at_ms <= before.at_ms:
        return low
    return low + (high - low) * min(1.0, (moment - before.at_ms) / (after.at_ms - before.at_ms))


def _transfer(record: RunRecord, values: Mapping[str, Value]) -> MetricValues:
    samples, totals = record.samples, record.totals
    sending = [s for s in samples if s.transferred_bytes > 0]
    last = sending[-1] if sending else None
    if totals is not None:
        yield "transferred_bytes", totals.transferred_bytes
        yield "iterations", totals.iterations
    elif last is not None:
        yield "transferred_bytes", last.transferred_bytes
        yield "iterations", max(s.iteration for s in sending)
    rate = _throughput(record, sending)
    if rate is not None:
        yield "throughput_bytes_per_s", rate
    if values.get("zero_copy_send") is True and (last is not None or totals is not None):
        counts = [s.missed_zero_copy for s in samples]
        yield "missed_zero_copy", max([*counts, totals.missed_zero_copy if totals else 0])


def _throughput(record: RunRecord, sending: Sequence[Sample]) -> float | None:
    totals = record.totals
    if totals is not None:
        milliseconds = totals.total_time_ms - (totals.setup_time_ms or 0)
        sent = totals.transferred_bytes
    elif len(sending) > 1:
        milliseconds = sending[-1].at_ms - sending[0].at_ms
        sent = sending[-1].transferred_bytes - sending[0].transferred_bytes
    else:
        return None
    return sent * 1000 / milliseconds if milliseconds > 0 and sent >= 0 else None


def _control(record: RunRecord, values: Mapping[str, Value]) -> MetricValues:
    samples = record.samples
    if samples and values.get("auto_converge") is True:
        yield "throttle_max_percent", max(s.throttle_percent for s in samples)
    if samples and values.get("dirty_limit") is True:
        yield "dirty_limit_throttle_ms", max(s.dirty_limit_throttle_us for s in samples) / 1000
        yield "dirty_limit_ring_full_ms", max(s.dirty_limit_ring_full_us for s in samples) / 1000
    if record.ring_full_exits is not None:
        yield "ring_full_exits", record.ring_full_exits
    if record.reaper is not None:
        yield "reaper_rounds", max(record.reaper.round_count, len(record.reaper.rounds))
