"""Values of a profile: typed, in range, and free of contradictions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.errors import InvalidInput
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.rules import RULES, accept_values, contradictions
from vmtune.model.tunables.tunable import Kind, Tunable
from vmtune.packs import load

TUNABLES = BUILT_IN.with_packs(row for pack in load(["qemu-patched"]) for row in pack.tunables)


def refusal(values: dict[str, Any]) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        accept_values(values, BUILT_IN)
    return caught.value


def test_values_are_converted_and_ordered_as_the_table_is() -> None:
    values = accept_values(
        {"downtime_limit_ms": "1s", "multifd": "on", "multifd_channels": "4", "tls": None}, BUILT_IN
    )
    assert values == {"multifd": True, "multifd_channels": 4, "downtime_limit_ms": 1000}
    assert list(values) == ["multifd", "multifd_channels", "downtime_limit_ms"]


def test_off_is_kept_and_unset_is_not() -> None:
    assert accept_values({"multifd": False, "postcopy": None}, BUILT_IN) == {"multifd": False}


def test_zero_is_a_value() -> None:
    assert accept_values({"max_bandwidth_bytes_per_s": 0}, BUILT_IN) == {
        "max_bandwidth_bytes_per_s": 0
    }


@pytest.mark.parametrize(
    "misspelt", ["multifd_chanels", "multifd-channels", "channels", "downtime"]
)
def test_a_misspelt_name_is_refused_with_the_nearest(misspelt: str) -> None:
    problem = refusal({misspelt: 4}).problems[0]
    assert problem.field == f"values.{misspelt}"
    assert problem.code == "unknown_tunable"
    assert "multifd_channels" in problem.remedy or "downtime_limit_ms" in problem.remedy


def test_every_fault_is_told_at_once() -> None:
    problems = refusal(
        {"nonsense": 1, "multifd_channels": 256, "downtime_limit_ms": "3GB"}
    ).problems
    assert {p.field for p in problems} == {
        "values.nonsense",
        "values.multifd_channels",
        "values.downtime_limit_ms",
    }
    channels = next(p for p in problems if p.field == "values.multifd_channels")
    assert "1 to 255" in channels.remedy


@pytest.mark.parametrize("value", [True, 1.5, [], {}, "4 apples", "", "0x4"])
def test_a_value_of_another_type_is_refused(value: object) -> None:
    assert refusal({"multifd_channels": value}).problems[0].code == "invalid_value"


@pytest.mark.parametrize("value", [1, 0, "1", "maybe", []])
def test_a_switch_takes_no_numbers(value: object) -> None:
    assert "on or off" in str(refusal({"multifd": value}))


def test_a_power_of_two_names_its_neighbours() -> None:
    assert "4096 and 8192" in str(refusal({"dirty_ring_size_entries": 5000}))


def test_a_name_for_qemu_cannot_smuggle_anything() -> None:
    values = {"tls": True, "tls_hostname": "host,file=/etc/passwd"}
    assert refusal(values).problems[0].field == "values.tls_hostname"


BROKEN: dict[tuple[str, str], dict[str, Any]] = {
    ("multifd_channels", "needs_multifd"): {"multifd_channels": 4},
    ("multifd_compression", "needs_multifd"): {"multifd_compression": "zstd"},
    ("multifd_zlib_level", "needs_multifd_compression"): {"multifd_zlib_level": 1},
    ("multifd_zstd_level", "needs_multifd_compression"): {
        "multifd": True,
        "multifd_compression": "zlib",
        "multifd_zstd_level": 1,
    },
    ("multifd_qatzip_level", "needs_multifd_compression"): {"multifd_qatzip_level": 1},
    ("zero_copy_send", "needs_multifd"): {"zero_copy_send": True, "multifd": False},
    ("zero_copy_send", "excludes_multifd_compression"): {
        "multifd": True,
        "zero_copy_send": True,
        "multifd_compression": "zstd",
    },
    ("zero_copy_send", "excludes_tls"): {"multifd": True, "zero_copy_send": True, "tls": True},
    ("xbzrle", "excludes_multifd"): {"multifd": True, "xbzrle": True},
    ("xbzrle_cache_size_bytes", "needs_xbzrle"): {"xbzrle_cache_size_bytes": 4096},
    ("compress", "excludes_multifd"): {"compress": True, "multifd": True},
    ("compress", "excludes_postcopy"): {"compress": True, "postcopy": True},
    ("compress_threads", "needs_compress"): {"compress_threads": 4},
    ("decompress_threads", "needs_compress"): {"decompress_threads": 4},
    ("cpu_throttle_initial_percent", "needs_auto_converge"): {"cpu_throttle_initial_percent": 30},
    ("cpu_throttle_increment_percent", "needs_auto_converge"): {
        "cpu_throttle_increment_percent": 5
    },
    ("max_cpu_throttle_percent", "needs_auto_converge"): {"max_cpu_throttle_percent": 80},
    ("cpu_throttle_tailslow", "needs_auto_converge"): {"cpu_throttle_tailslow": True},
    ("throttle_trigger_threshold_percent", "needs_auto_converge"): {
        "throttle_trigger_threshold_percent": 60
    },
    ("cpu_throttle_initial_percent", "min_above_max"): {
        "auto_converge": True,
        "cpu_throttle_initial_percent": 90,
        "max_cpu_throttle_percent": 80,
    },
    ("dirty_limit", "excludes_auto_converge"): {"dirty_limit": True, "auto_converge": True},
    ("vcpu_dirty_limit_mib_per_s", "needs_dirty_limit"): {"vcpu_dirty_limit_mib_per_s": 20},
    ("vcpu_dirty_limit_period_ms", "needs_dirty_limit"): {"vcpu_dirty_limit_period_ms": 500},
    ("postcopy_preempt", "needs_postcopy"): {"postcopy_preempt": True},
    ("max_postcopy_bandwidth_bytes_per_s", "needs_postcopy"): {
        "max_postcopy_bandwidth_bytes_per_s": 1 << 20
    },
    ("postcopy_recovery", "needs_postcopy"): {"postcopy_recovery": "auto"},
    ("postcopy_recovery_attempts", "needs_postcopy"): {"postcopy_recovery_attempts": 3},
    ("postcopy_recovery_within_s", "needs_postcopy"): {"postcopy_recovery_within_s": 60},
    ("postcopy_recovery_attempts", "needs_postcopy_recovery"): {
        "postcopy_recovery": "manual",
        "postcopy_recovery_attempts": 3,
    },
    ("postcopy_recovery_within_s", "needs_postcopy_recovery"): {
        "postcopy_recovery": "manual",
        "postcopy_recovery_within_s": 60,
    },
    ("tls_creds", "needs_tls"): {"tls_creds": "creds0"},
    ("disk_io", "needs_disk_cache"): {"disk_io": "native", "disk_cache": "writeback"},
    ("tls_hostname", "needs_tls"): {"tls_hostname": "b.example"},
    ("iothread_thread_pool_min", "min_above_max"): {
        "iothread_thread_pool_min": 9,
        "iothread_thread_pool_max": 8,
    },
    ("main_loop_thread_pool_min", "min_above_max"): {
        "main_loop_thread_pool_min": 9,
        "main_loop_thread_pool_max": 8,
    },
    ("dirty_ring_size_entries", "ring_too_small"): {"dirty_ring_size_entries": 512},
    ("dirty_limit", "needs_dirty_ring"): {"dirty_limit": True, "dirty_ring_size_entries": 0},
    ("reaper_min_interval_ms", "needs_reaper_policy"): {"reaper_min_interval_ms": 60},
    ("reaper_max_interval_ms", "needs_reaper_policy"): {
        "reaper_policy": "off",
        "reaper_max_interval_ms": 60,
    },
    ("reaper_target_fill_percent", "needs_reaper_policy"): {"reaper_target_fill_percent": 50},
    ("reaper_target_fill_percent", "needs_predict"): {
        "reaper_policy": "levels",
        "reaper_target_fill_percent": 50,
    },
    ("reaper_min_interval_ms", "min_above_max"): {
        "reaper_policy": "predict",
        "reaper_min_interval_ms": 1001,
    },
    ("reaper_policy", "excludes_dirty_limit"): {"reaper_policy": "aimd", "dirty_limit": True},
    ("qemu_reaper_policy", "excludes_dirty_limit"): {
        "qemu_reaper_policy": "aimd",
        "dirty_limit": True,
    },
    ("qemu_reaper_policy", "excludes_reaper_policy"): {
        "qemu_reaper_policy": "fixed",
        "reaper_policy": "predict",
    },
    ("reaper_policy", "needs_dirty_ring"): {
        "reaper_policy": "predict",
        "dirty_ring_size_entries": 0,
    },
    ("copy_storage", "excludes_copy_storage_incremental"): {
        "copy_storage": True,
        "copy_storage_incremental": True,
    },
    ("copy_disks", "needs_copy_storage"): {"copy_disks": "vda"},
    ("copy_synchronous_writes", "needs_copy_storage"): {"copy_synchronous_writes": True},
    ("copy_detect_zeroes_disks", "needs_copy_storage"): {"copy_detect_zeroes_disks": "vda"},
    ("copy_target_zero_disks", "needs_copy_storage"): {"copy_target_zero_disks": "vda"},
    ("disks_port", "needs_copy_storage"): {"disks_port": 49300},
    ("copy_source_images", "needs_copy_storage"): {"copy_source_images": "remove"},
    ("copy_bandwidth_bytes_per_s", "needs_copy_storage"): {"copy_bandwidth_bytes_per_s": 9},
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.field}-{rule.code}")
def test_each_rule_is_broken_by_its_example_and_by_nothing_less(rule: Any) -> None:
    example = BROKEN[rule.field, rule.code]
    found = contradictions(accept_types(example))
    assert (f"values.{rule.field}", rule.code) in {(p.field, p.code) for p in found}
    assert all(p.remedy for p in found)
    without = {k: v for k, v in example.items() if k != rule.field}
    assert not [p for p in contradictions(accept_types(without)) if p.field == rule.field]


def accept_types(values: dict[str, Any]) -> dict[str, Any]:
    return {name: TUNABLES[name].accept(value) for name, value in values.items()}


def acceptable(tunable: Tunable) -> st.SearchStrategy[Any]:
    """Values that the tunable's own row accepts."""
    if tunable.kind is Kind.BOOLEAN:
        return st.booleans()
    if tunable.kind is Kind.CHOICE:
        return st.sampled_from(tunable.choices)
    if tunable.kind is Kind.TEXT:
        return st.from_regex(r"[a-z][a-z0-9.-]{0,20}", fullmatch=True)
    numbers = st.integers(tunable.minimum or 0, min(tunable.maximum or 0, 1 << 20))
    if tunable.power_of_two:
        return (
            numbers.map(lambda n: 1 << max(n.bit_length() - 1, 12) if n else 4096).filter(
                lambda n: n <= (tunable.maximum or n)
            )
            if (tunable.maximum or 0) >= 4096
            else st.sampled_from([2, 256, 1024])
        )
    return numbers


@given(
    st.lists(st.sampled_from(sorted(BUILT_IN)), unique=True, max_size=12).flatmap(
        lambda names: st.fixed_dictionaries({name: acceptable(BUILT_IN[name]) for name in names})
    )
)
def test_accepted_values_are_accepted_again_unchanged(values: dict[str, Any]) -> None:
    try:
        accepted = accept_values(values, BUILT_IN)
    except InvalidInput as error:
        assert all(problem.remedy for problem in error.problems)
    else:
        assert accept_values(accepted, BUILT_IN) == accepted
        shown = {name: BUILT_IN[name].render(value) for name, value in accepted.items()}
        again = {name: text.replace(",", "") for name, text in shown.items()}
        assert accept_values(again, BUILT_IN) == accepted


@given(
    st.dictionaries(
        st.text(max_size=20),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=5,
        ),
        max_size=6,
    )
)
def test_anything_else_is_refused_in_words(values: dict[str, Any]) -> None:
    try:
        accept_values(values, BUILT_IN)
    except InvalidInput as error:
        assert all(p.field.startswith("values.") and p.message for p in error.problems)
