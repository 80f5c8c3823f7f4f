"""Workloads of the guest, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from vmtune.model.workload import Workload

HOUR_MS = 3_600_000


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Any that a guest can have."""
    stride = draw(st.integers(1, 1 << 30))
    region = draw(st.integers(stride, (1 << 38) - 1))
    check = draw(st.sampled_from([0, 1]))
    if check:
        stride, region = -(-stride // 8) * 8, max(-(-stride // 8) * 8, region // 8 * 8)
    zero = 0 if check else draw(st.integers(0, 100))
    return Workload(
        region_bytes=region,
        stride_bytes=stride,
        dirty_mb_per_s=draw(st.integers(0, 1_000_000)),
        zero_percent=zero,
        random_percent=0 if check else draw(st.integers(0, 100 - zero)),
        idle_ms=draw(st.integers(0, HOUR_MS)),
        beat_ms=draw(st.integers(0, HOUR_MS)),
        check=check,
        cpu_ring=draw(st.sampled_from([0, 3])),
        skew_percent=0 if check or 4096 % stride else draw(st.sampled_from([0, 50, 80, 99])),
    )
