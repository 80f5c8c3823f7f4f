"""Studies are read from TOML and JSON, whole, and what is wrong is told by field."""

import json
from datetime import UTC, datetime

import pytest

from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.bench.model.tune.auto import NOT_SEARCHED, auto_space
from vmtune.bench.model.tune.file import from_json, read_toml, to_json
from vmtune.bench.model.tune.limits import Limits
from vmtune.bench.model.tune.records import (
    OUTCOMES,
    TrialOutcome,
    TrialRecord,
    TrialRun,
    with_run,
)
from vmtune.bench.model.tune.seeds import seeds_of
from vmtune.bench.model.tune.space import Dimension, settle
from vmtune.documents import dataclass_json as documents
from vmtune.errors import InvalidInput
from vmtune.model.tunables.built_in import BUILT_IN

KNOWN = {"precopy/stock": Scenario("precopy/stock")}
STUDY = """
name = "faster"
scenario = "precopy/stock"
objective = "minimise total_time_ms where guest_silence_ms <= 300 and completed"
budget = {runs = 150, seconds = "1h"}
limits = {bandwidth_bytes_per_s = "1Gbit/s", hours = "22:00-06:00", spare = ["db1"]}

[space]
multifd = {}
multifd_channels = {low = 1, high = 16}
multifd_compression = ["none", "zstd"]
downtime_limit_ms = {low = "100ms", high = "1s", step = "50ms"}
xbzrle_cache_size_bytes = {low = "16Mi", high = "128Mi"}
"""


def test_a_study_from_toml() -> None:
    spec = read_toml(STUDY, KNOWN)
    assert spec.kind is ScenarioKind.MIGRATION
    assert spec.budget.seconds == 3600
    assert spec.space == {
        "multifd": Dimension((False, True)),
        "multifd_channels": Dimension(low=1, high=16, log=True),
        "multifd_compression": Dimension(("none", "zstd")),
        "xbzrle_cache_size_bytes": Dimension(tuple(1 << n for n in range(24, 28))),
        "downtime_limit_ms": Dimension(low=100, high=1000, step=50),
    }
    assert spec.base["max_bandwidth_bytes_per_s"] == 125_000_000
    assert from_json(json.loads(json.dumps(to_json(spec))), KNOWN) == spec


def test_switches_come_before_what_needs_them() -> None:
    space = read_toml(STUDY, KNOWN).space
    assert space is not None
    assert list(space).index("multifd") < list(space).index("multifd_channels")


def test_auto_is_left_to_what_the_qemus_offer() -> None:
    spec = read_toml(STUDY.split("[space]", maxsplit=1)[0] + 'space = "auto"', KNOWN)
    assert spec.space is None


@pytest.mark.parametrize(
    ("old", "new", "field", "code"),
    [
        ('"faster"', '"Faster!"', "name", "invalid_name"),
        ('"precopy/stock"', '"precopy/none"', "scenario", "unknown_scenario"),
        ("minimise total_time_ms", "minimise speed", "objective", "invalid_metric"),
        ("runs = 150", "runs = 20", "budget.runs", "too_few"),
        ('runs = 150, seconds = "1h"', "", "budget", "missing"),
        ("22:00-06:00", "22-6", "limits.hours", "invalid_hours"),
        ("multifd = {}", "multifd = {low = 1}", "space.multifd.low", "no_number"),
        ("multifd = {}", "multifdd = {}", "space.multifdd", "unknown_tunable"),
        ("high = 16", "high = 900", "space.multifd_channels.high", "invalid_value"),
        ("low = 1, high = 16", "low = 1", "space.multifd_channels.high", "missing"),
        ("low = 1, high = 16", "low = 9, high = 3", "space.multifd_channels.low", "empty_range"),
        ('["none", "zstd"]', '["none", "lz9"]', "space.multifd_compression.choices.1",
         "invalid_value"),
        ('["none", "zstd"]', '["zstd"]', "space.multifd_compression.choices", "one_choice"),
        ("high = 16}", "high = 16, log = true, step = 2}", "space.multifd_channels.step",
         "step_with_log"),
        ("high = 16}", "high = 16, hight = 2}", "space.multifd_channels.hight", "unknown_field"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_by_field(old: str, new: str, field: str, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_toml(STUDY.replace(old, new), KNOWN)
    found = [(one.field, one.code) for one in caught.value.problems]
    assert (field, code) in found, found
    assert all(one.remedy for one in caught.value.problems)


def test_settings_without_effect_fall_away_and_contradictions_stay() -> None:
    settings, broken = settle({"multifd_channels": 4, "multifd_compression": "zstd"}, {})
    assert settings == {}
    assert broken == []
    settings, broken = settle({"multifd": True, "xbzrle": True}, {})
    assert settings == {"multifd": True, "xbzrle": True}
    assert [one.code for one in broken] == ["excludes_multifd"]


def test_auto_takes_what_both_offer_and_the_scenario_leaves_open() -> None:
    offered = set(BUILT_IN)
    space = auto_space(ScenarioKind.MIGRATION, BUILT_IN, offered, {})
    assert {"multifd", "multifd_channels", "multifd_zstd_level", "auto_converge"} <= set(space)
    assert not set(space) & NOT_SEARCHED.keys()
    assert not [name for name in space if BUILT_IN[name].read_only]
    without = auto_space(ScenarioKind.MIGRATION, BUILT_IN, offered - {"multifd"}, {})
    assert not [name for name in without if name.startswith("multifd")]
    given = auto_space(ScenarioKind.MIGRATION, BUILT_IN, offered, {"xbzrle": True})
    assert "multifd" not in given
    block = auto_space(ScenarioKind.BLOCK, BUILT_IN, offered, {})
    assert {"iothread_poll_max_ns", "virtio_blk_queue_size"} <= set(block)
    assert not set(block) & set(space)
    boot = auto_space(ScenarioKind.BOOT, BUILT_IN, offered, {})
    ring = boot["dirty_ring_size_entries"]
    assert set(boot) == {"dirty_ring_size_entries"}
    assert ring.choices == (0, *(1 << n for n in range(10, 17)))


def test_seeds_are_the_current_profile_whole_and_of_rivals_what_the_space_has() -> None:
    spec = read_toml(STUDY, KNOWN)
    assert spec.space is not None
    found = seeds_of(spec.scenario, spec.space, {"tls": True, "multifd": True})
    assert found[0].name == "current"
    assert found[0].settings == {"tls": True, "multifd": True}
    rivals = found[1:]
    assert {"lan-10g", "wan"} <= {one.name for one in rivals}
    assert all(set(one.settings) <= set(spec.space) for one in rivals)
    assert len({tuple(sorted(one.settings.items())) for one in rivals}) == len(rivals)


def test_hours_open_and_close() -> None:
    night = Limits(hours="22:00-06:00")
    assert night.opens_in_s(datetime(2026, 1, 1, 23, 30, tzinfo=UTC)) == 0
    assert night.opens_in_s(datetime(2026, 1, 1, 5, 59, 59, tzinfo=UTC)) == 0
    assert night.opens_in_s(datetime(2026, 1, 1, 6, 0, 0, tzinfo=UTC)) == 16 * 3600
    assert night.opens_in_s(datetime(2026, 1, 1, 21, 59, 30, tzinfo=UTC)) == 30


def test_limits_hold_settings_and_count_breaches() -> None:
    limits = Limits(bandwidth_bytes_per_s=1000, cpu_percent=50)
    most = "max_bandwidth_bytes_per_s"
    assert limits.kept({})[most] == 1000
    assert limits.kept({most: 0})[most] == 1000
    assert limits.kept({most: 5000})[most] == 1000
    assert limits.kept({most: 500})[most] == 500
    found = limits.breaches("r1", {"throughput_bytes_per_s": 1200}, 60)
    assert [(one.limit, one.value, one.allowed) for one in found] == [
        ("bandwidth_bytes_per_s", 1200, 1000),
        ("cpu_percent", 60, 50),
    ]
    assert limits.breaches("r2", {"throughput_bytes_per_s": 1000}, 40) == ()


def test_a_record_is_written_and_read_back() -> None:
    trial = TrialRecord(0, "default")
    run = TrialRun("r1", 1, TrialOutcome.COMPLETED, {"total_time_ms": 5.0}, 3.0)
    trials = with_run(with_run((), trial, run), trial, TrialRun("", 2, TrialOutcome.PRUNED))
    assert [one.block for one in trials[0].runs] == [1, 2]
    made = documents.to_json(trials[0])
    assert documents.from_json(TrialRecord, json.loads(json.dumps(made))) == trials[0]
    assert set(OUTCOMES.values()) == set(TrialOutcome) - {TrialOutcome.PRUNED}
