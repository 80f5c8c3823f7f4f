"""A block benchmark's record, reduced to :data:`vmtune.bench.model.metrics.block.METRICS`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from vmtune.bench.block.fio_json import FioReport, fio_report
from vmtune.bench.model.metrics.block import METRICS, PERCENTILES
from vmtune.bench.model.scenario.block import BlockRecord, CpuMark, LoadPhase
from vmtune.errors import InvalidInput
from vmtune.model.guest_io import GuestIo, failure_of

_NS_IN_US = 1000
MetricValues = Iterator[tuple[str, float]]


def reduce_block(record: BlockRecord) -> Mapping[str, float]:
    """The metrics of a measurement that has ended; those that could not be had are missing."""
    found = {**dict(_load(record)), **dict(_memory(record))}
    return {name: float(found[name]) for name in METRICS if name in found}


def _load(record: BlockRecord) -> MetricValues:
    if record.guest_io is not None:
        yield from _by_guest(record, record.guest_io)
        return
    report = _report(record)
    ended_well = record.fio_status == 0 and not record.qemu_ended
    if report is None or report.failed or not ended_well:
        return
    yield "iops", report.iops
    yield "bandwidth_bytes_per_s", report.bytes_per_s
    latency = report.overall_latency
    if latency is not None:
        yield "latency_mean_us", latency.mean_ns / _NS_IN_US
        for name, percent in PERCENTILES.items():
            if percent in latency.percentiles:
                yield f"latency_{name}_us", latency.percentiles[percent] / _NS_IN_US
    used_ms = _cpu_ms(record)
    if used_ms is not None and report.requests:
        yield "qemu_cpu_us_per_io", used_ms * 1000 / report.requests


def _by_guest(record: BlockRecord, found: GuestIo) -> MetricValues:
    if record.qemu_ended or failure_of(found):
        return
    latency = found.latency
    yield "iops", found.iops
    yield "bandwidth_bytes_per_s", found.iops * found.block_bytes
    yield "latency_mean_us", latency.mean_ns / _NS_IN_US
    for name, percent in PERCENTILES.items():
        ns = latency.percentile_ns(percent)
        if ns is not None:
            yield f"latency_{name}_us", ns / _NS_IN_US
    used_ms = _cpu_ms(record)
    if used_ms is not None:
        yield "qemu_cpu_us_per_io", used_ms * 1000 / found.requests


def _report(record: BlockRecord) -> FioReport | None:
    if record.fio is None:
        return None
    try:
        return fio_report(record.fio, record.fio_output)
    except InvalidInput:
        return None


def _cpu_ms(record: BlockRecord) -> float | None:
    """What QEMU used while requests counted, its vCPUs aside; None where that was not seen from
    end to end."""
    if record.measured_ms is None or len(record.cpu) < 2:
        return None
    begin, end = record.measured_ms
    marks = sorted(record.cpu, key=lambda mark: mark.at_ms)
    if begin < marks[0].at_ms or end > marks[-1].at_ms:
        return None
    return _at(marks, end) - _at(marks, begin)


def _at(marks: Sequence[CpuMark], moment: float) -> float:
    """CPU time at a moment between two looks: as if it went evenly."""
    for earlier, later in pairwise(marks):
        if earlier.at_ms <= moment <= later.at_ms:
            span = later.at_ms - earlier.at_ms
            share = (moment - earlier.at_ms) / span if span else 0.0
            return earlier.cpu_ms + share * (later.cpu_ms - earlier.cpu_ms)
    raise AssertionError("the moment is not among the marks")


def _memory(record: BlockRecord) -> MetricValues:
    for phase in LoadPhase:
        seen = [sample for sample in record.processes if sample.phase is phase]
        if not seen:
            continue
        during = phase is LoadPhase.DURING
        for stem, name in (("maps", ""), ("vsz", "_bytes"), ("rss", "_bytes")):
            values = [getattr(sample, stem + name) for sample in seen]
            yield f"{stem}_{phase.value}{name}", max(values) if during else values[-1]
