"""Choosing scenarios, making them small, and why one cannot be run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.examples import facts
from vmtune.bench.migration.families import FAMILIES, SCENARIOS
from vmtune.bench.migration.scenarios import BenchHosts, quick, select, why_not
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.bench.model.scenario.parts import GIB, MIB
from vmtune.errors import InvalidInput
from vmtune.model.host.facts import VmFacts
from vmtune.model.migration.steps import AfterIterations, SetValues, Step
from vmtune.model.tunables.tunable import Value
from vmtune.model.versions import Version


def make_bench_hosts(
    version: Version = facts.QEMU_10, kvm: bool = True, **changes: object
) -> BenchHosts:
    qemu: VmFacts = facts.vm(version, may_lock_memory=True)
    made = BenchHosts(
        facts.direct_host("a"), facts.direct_host("b"), qemu, kvm, "" if kvm else "no /dev/kvm"
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # fields of BenchHosts


def skipped(on: BenchHosts) -> dict[str, str]:
    return {n: reason for n, s in SCENARIOS.items() if (reason := why_not(s, on)) is not None}


def families(names: dict[str, str]) -> set[str]:
    return {name.partition("/")[0] for name in names}


def test_what_qemu_10_lacks_is_skipped_with_the_reason() -> None:
    found = skipped(make_bench_hosts())
    assert set(found) == {
        *(f"compr-mt/threads-{n}" for n in (1, 2, 4)),
        "compr-multifd-compression/qpl",
        "compr-multifd-compression/uadk",
    }
    assert "QEMU 9.0 was the last that had it" in found["compr-mt/threads-1"]
    assert "built without qpl" in found["compr-multifd-compression/qpl"]


def test_what_qemu_7_lacks_is_skipped_with_the_reason() -> None:
    found = skipped(make_bench_hosts(facts.QEMU_7))
    assert families(found) >= {
        "compr-dirty-limit",
        "compr-dirty-limit-period",
        "switchover-bandwidth",
        "zero-page-detection",
    }
    assert "compr-mt" not in families(found)
    assert "switchover-bandwidth/measured" not in found
    assert "zero-page-detection/none" in found
    assert "it came with QEMU 8.1" in found["compr-dirty-limit/20MB"]
    assert "it came with QEMU 8.2" in found["dirty-ring/65536-predict"]
    assert "dirty-ring/65536-stock" not in found


def test_probing_counts_more_than_the_release() -> None:
    """A build that a distribution has added compression to."""
    qemu = facts.vm(may_lock_memory=True)
    built = replace(qemu, compression_methods=qemu.compression_methods | {"qpl"})
    assert why_not(SCENARIOS["compr-multifd-compression/qpl"], make_bench_hosts(qemu=built)) is None


def test_without_kvm_there_is_no_dirty_ring() -> None:
    found = skipped(make_bench_hosts(kvm=False))
    extra = set(found) - set(skipped(make_bench_hosts()))
    assert extra == {name for name, s in SCENARIOS.items() if s.needs_kvm}
    assert found["compr-dirty-limit/20MB"].endswith("whose dirty ring it uses: no /dev/kvm")


def test_zero_copy_needs_memory_that_may_be_locked() -> None:
    locked = facts.vm(may_lock_memory=False, locked_memory_limit_bytes=64 << 10)
    reason = why_not(SCENARIOS["zero-copy/on"], make_bench_hosts(qemu=locked))
    assert reason is not None and "1,536 MiB" in reason
    assert why_not(quick(SCENARIOS["zero-copy/on"]), make_bench_hosts(qemu=locked)) is not None
    assert why_not(SCENARIOS["zero-copy/off"], make_bench_hosts(qemu=locked)) is None


def test_what_excludes_each_other_in_one_release_is_judged_too() -> None:
    both = Scenario("mine/both", values={"multifd": True, "postcopy": True})
    reason = why_not(both, make_bench_hosts())
    assert reason is not None and "refuses post-copy together with multifd" in reason
    assert why_not(both, make_bench_hosts(facts.QEMU_7)) is None


def test_what_the_steps_need_is_judged_too() -> None:
    step = Step(AfterIterations(1), SetValues((("vcpu_dirty_limit_mib_per_s", 9),)))
    values: dict[str, Value] = {"dirty_limit": True, "dirty_ring_size_entries": 65536}
    limited = Scenario("mine/limited", values=values, steps=(step,))
    assert why_not(limited, make_bench_hosts()) is None
    reason = why_not(limited, make_bench_hosts(facts.QEMU_7))
    assert reason is not None and "vcpu_dirty_limit_mib_per_s" in reason


def test_both_vms_have_to_fit_the_host() -> None:
    small = facts.direct_host("a", memory_bytes=2 * GIB)
    reason = why_not(SCENARIOS["plain/unlimited"], make_bench_hosts(host=small))
    assert reason == "both VMs together need 3 GiB, and the host has 2 GiB"
    assert why_not(quick(SCENARIOS["plain/unlimited"]), make_bench_hosts(host=small)) is None


def test_selecting_by_family_by_name_and_by_pattern() -> None:
    assert [s.name for s in select(["compr-mt/threads-2", "zero-copy"])] == [
        "compr-mt/threads-2",
        "zero-copy/off",
        "zero-copy/on",
    ]
    assert {s.family for s in select(["compr-dirty*"])} == {
        "compr-dirty-limit",
        "compr-dirty-limit-period",
    }
    assert len(select(["*", "plain/unlimited"])) == len(SCENARIOS)
    assert select([]) == ()


def test_what_is_not_there_is_told_with_what_is_near() -> None:
    with pytest.raises(InvalidInput) as caught:
        select(["plain", "zero-coppy", "?"])
    first, second = caught.value.problems
    assert (first.field, first.code) == ("scenarios.1", "unknown_scenario")
    assert "zero-copy" in first.remedy
    assert (second.field, second.remedy.startswith("there are plain")) == ("scenarios.2", True)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_can_be_made_small(name: str) -> None:
    scenario, small = SCENARIOS[name], quick(SCENARIOS[name])
    assert small.name == name
    assert small.steps == scenario.steps
    assert small.vm.memory_bytes == 96 * MIB
    assert small.workload.region_bytes == 64 * MIB
    assert (small.workload.zero_percent, small.workload.random_percent) == (0, 0)
    assert small.workload.beat_ms == scenario.workload.beat_ms
    assert small.longest_s <= 25
    changed = {n for n in small.values if small.values[n] != scenario.values[n]}
    assert changed <= {
        "downtime_limit_ms",
        "max_bandwidth_bytes_per_s",
        "xbzrle_cache_size_bytes",
    }
    assert int(small.values["max_bandwidth_bytes_per_s"]) <= min(
        125 * MIB, int(scenario.values["max_bandwidth_bytes_per_s"])
    )


def test_an_unlimited_scenario_is_limited_when_it_is_made_small() -> None:
    unlimited = Scenario("mine/fast", values={"max_bandwidth_bytes_per_s": 0})
    assert quick(unlimited).values["max_bandwidth_bytes_per_s"] == 125 * MIB


def test_in_small_it_converges_in_several_iterations_and_auto_converge_acts() -> None:
    """The arithmetic of pre-copy: what one iteration leaves, the next has to send."""
    small = quick(SCENARIOS["plain/unlimited"])
    bandwidth = int(small.values["max_bandwidth_bytes_per_s"])
    dirty = small.workload.dirty_mb_per_s * 10**6
    assert 0.5 < dirty / bandwidth < 1
    remaining, seconds, iterations = float(small.workload.region_bytes), 0.0, 0
    while remaining > bandwidth * int(small.values["downtime_limit_ms"]) / 1000:
        seconds += remaining / bandwidth
        remaining *= dirty / bandwidth
        iterations += 1
    assert iterations >= 3
    assert seconds < 5
    passes = small.warmup_s * dirty / small.workload.region_bytes
    assert passes >= 3


def test_the_quick_selection_has_one_of_most_families_and_takes_minutes() -> None:
    chosen = [
        quick(SCENARIOS[f"{family.name}/{name}"])
        for family in FAMILIES.values()
        for name in family.quick
    ]
    assert {s.family for s in chosen} == {f.name for f in FAMILIES.values() if f.quick}
    assert len({s.name for s in chosen}) == len(chosen) >= 12
    with_kvm = [s for s in chosen if why_not(s, make_bench_hosts()) is None]
    without = [s for s in chosen if why_not(s, make_bench_hosts(kvm=False)) is None]
    assert {s.family for s in with_kvm} > {s.family for s in without}
    assert len(without) >= 10
