"""The table of families against guestperf's own list, and each scenario against its name."""

from __future__ import annotations

import pytest

from vmtune.bench.migration.families import FAMILIES, GUESTPERF_NAMES, SCENARIOS
from vmtune.bench.model.scenario.migration import from_json, to_json
from vmtune.bench.model.scenario.parts import GIB, MIB
from vmtune.model.migration.steps import AfterIterations, Step, StepAction
from vmtune.model.tunables.built_in import BUILT_IN

# What guestperf's names say they vary, and to what. The names are those of
# tests/migration-stress/guestperf/comparison.py of QEMU 10.
GUESTPERF = {
    **{f"pause-iters-{n}": ("pause", n) for n in (1, 5, 20)},
    **{
        f"{start}-bw-{name}": ("max_bandwidth_bytes_per_s", mib * MIB)
        for start in ("post-copy", "auto-converge")
        for name, mib in {
            "100mbs": 12,
            "300mbs": 37,
            "1gbs": 125,
            "10gbs": 1250,
            "100gbs": 12500,
        }.items()
    },
    **{f"post-copy-iters-{n}": ("postcopy", n) for n in (1, 5, 20)},
    **{f"auto-converge-step-{n}": ("cpu_throttle_increment_percent", n) for n in (5, 10, 20)},
    **{f"compr-mt-threads-{n}": ("compress_threads", n) for n in (1, 2, 4)},
    **{
        f"compr-xbzrle-cache-{n}": ("xbzrle_cache_size_bytes", size * MIB)
        for n, size in {5: 64, 10: 128, 20: 256, 50: 512}.items()
    },
    **{f"compr-multifd-channels-{n}": ("multifd_channels", n) for n in (4, 8, 32, 64)},
    **{
        f"compr-dirty-limit-period-{n}": ("vcpu_dirty_limit_period_ms", n) for n in (500, 800, 1000)
    },
    **{f"compr-dirty-limit-{n}MB": ("vcpu_dirty_limit_mib_per_s", n) for n in (10, 20, 50)},
    **{
        f"compr-multifd-compression-{name}": ("multifd_compression", name)
        for name in ("zlib", "zstd", "qpl", "uadk")
    },
}


def test_every_scenario_of_guestperf_is_there() -> None:
    assert set(GUESTPERF_NAMES) == set(GUESTPERF)
    assert set(GUESTPERF_NAMES.values()) <= set(SCENARIOS)


@pytest.mark.parametrize("theirs", GUESTPERF)
def test_a_scenario_does_what_its_name_says(theirs: str) -> None:
    scenario = SCENARIOS[GUESTPERF_NAMES[theirs]]
    what, wanted = GUESTPERF[theirs]
    if what in ("pause", "postcopy"):
        assert isinstance(wanted, int)
        # It counts the iteration that is under way.
        assert scenario.steps == (Step(AfterIterations(wanted - 1), StepAction(what)),)
    else:
        assert scenario.values[what] == wanted


def test_what_distinguishes_guestperfs_families_is_switched_on() -> None:
    switches = {
        "post-copy": "postcopy",
        "auto-converge": "auto_converge",
        "compr-mt": "compress",
        "compr-xbzrle": "xbzrle",
        "compr-multifd": "multifd",
        "compr-dirty-limit": "dirty_limit",
    }
    for theirs, ours in GUESTPERF_NAMES.items():
        scenario = SCENARIOS[ours]
        wanted = {switch for start, switch in switches.items() if theirs.startswith(start)}
        assert {s for s in switches.values() if scenario.values.get(s)} == wanted, ours
        assert scenario.needs_kvm is ("dirty-limit" in theirs)
        assert (scenario.values.get("decompress_threads") or 0) == (
            scenario.values.get("compress_threads") or 0
        )


def test_post_copy_by_bandwidth_switches_in_the_fifth_iteration() -> None:
    for variant in FAMILIES["post-copy-bandwidth"].variants:
        scenario = SCENARIOS[f"post-copy-bandwidth/{variant.name}"]
        assert scenario.steps == (Step(AfterIterations(4), StepAction.POSTCOPY),)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_survives_its_json_and_is_as_guestperf_runs_it(name: str) -> None:
    scenario = SCENARIOS[name]
    assert from_json(to_json(scenario)) == scenario
    assert scenario.name == name
    assert scenario.title and scenario.why
    assert (scenario.max_iterations, scenario.max_seconds) == (30, 300)
    assert (scenario.workload.region_bytes, scenario.vm.memory_bytes) == (GIB, 1536 * MIB)
    assert scenario.values["downtime_limit_ms"] == 500
    assert scenario.workload.beat_ms


def test_compression_is_measured_with_pages_that_differ() -> None:
    for scenario in SCENARIOS.values():
        compresses = scenario.values.get("compress") or "multifd_compression" in scenario.values
        mixed = scenario.workload.random_percent and scenario.workload.zero_percent
        assert bool(mixed) is bool(compresses), scenario.name


def test_the_added_families_are_there() -> None:
    levels = SCENARIOS["zstd-level/20"].values
    assert (levels["multifd_compression"], levels["multifd_zstd_level"]) == ("zstd", 20)
    assert SCENARIOS["zlib-level/9"].values["multifd_zlib_level"] == 9
    assert SCENARIOS["zero-copy/on"].values["zero_copy_send"] is True
    assert SCENARIOS["zero-copy/off"].values["multifd"] is True
    assert SCENARIOS["post-copy-preempt/on"].values["postcopy_preempt"] is True
    assert SCENARIOS["post-copy-preempt/on"].steps == (
        Step(AfterIterations(1), StepAction.POSTCOPY),
    )
    assert SCENARIOS["zero-page-detection/legacy"].values["zero_page_detection"] == "legacy"
    switchover = "avail_switchover_bandwidth_bytes_per_s"
    assert SCENARIOS["switchover-bandwidth/10gbs"].values[switchover] == 1250 * MIB
    assert switchover not in SCENARIOS["switchover-bandwidth/measured"].values


def test_each_ring_is_held_against_a_bitmap_with_each_reaper() -> None:
    names = [f"dirty-ring/{v.name}" for v in FAMILIES["dirty-ring"].variants]
    seen = {
        (int(values["dirty_ring_size_entries"]), values.get("reaper_policy"))
        for values in (SCENARIOS[name].values for name in names)
    }
    sizes = (1024, 2048, 4096, 8192, 16384, 32768, 65536)
    choices = BUILT_IN["reaper_policy"].choices
    assert seen == {(0, None)} | {(size, policy) for size in sizes for policy in choices}
    for name in names:
        assert SCENARIOS[name].count_ring_full is SCENARIOS[name].needs_kvm
    assert SCENARIOS["dirty-ring/4096-stock"].values["reaper_policy"] == "off"
    assert not SCENARIOS["dirty-ring/bitmap"].needs_kvm
