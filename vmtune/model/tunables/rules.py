"""Rules across tunables that hold for every QEMU and libvirt: checked when a profile is written.

What depends on a version, a host or a VM is judged by the plan instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vmtune.errors import InvalidInput, Problem, first_problems
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.rows.reaper import ALONE_AT_THE_RINGS
from vmtune.model.tunables.rows.storage import COPIES, STORAGE_NAMES
from vmtune.model.tunables.tunable import Value

Values = Mapping[str, Value]
LEAST_DIRTY_RING_ENTRIES = 1024
_LONGEST_GUESSED = 100


@dataclass(frozen=True, slots=True)
class Rule:
    """One contradiction between settings of a profile.

    :param field: the tunable that is to blame.
    :param broken: whether the values contradict each other.
    """

    code: str
    field: str
    message: str
    remedy: str
    broken: Callable[[Values], bool]


def _on(values: Values, name: str) -> bool:
    return values.get(name) is True


def _compresses(values: Values) -> bool:
    return values.get("multifd_compression", "none") != "none"


def _greater(values: Values, lower: str, upper: str) -> bool:
    low, high = values.get(lower), values.get(upper)
    return isinstance(low, int) and isinstance(high, int) and low > high


def _needs(field: str, switch: str, remedy: str = "") -> Rule:
    """*field* has a meaning only where the profile switches *switch* on."""
    return Rule(
        f"needs_{switch}",
        field,
        f"{field} has no effect unless {switch} is on",
        remedy or f"set {switch} to on, or unset {field}",
        lambda values: (
            field in values and values[field] not in (False, "none") and not _on(values, switch)
        ),
    )


def _needs_copy(field: str) -> Rule:
    return Rule(
        "needs_copy_storage",
        field,
        f"{field} has no effect unless disks are copied",
        f"set copy_storage to on, or unset {field}",
        lambda values: (
            values.get(field, False) is not False and not any(_on(values, n) for n in COPIES)
        ),
    )


def _excludes(field: str, other: str, reason: str) -> Rule:
    return Rule(
        f"excludes_{other}",
        field,
        f"{field} and {other} exclude each other: {reason}",
        f"unset one of {field} and {other}",
        lambda values: _on(values, field) and _on(values, other),
    )


def _level(algorithm: str) -> Rule:
    field = f"multifd_{algorithm}_level"
    return Rule(
        "needs_multifd_compression",
        field,
        f"{field} has no effect unless multifd_compression is {algorithm}",
        f"set multifd_compression to {algorithm}, or unset {field}",
        lambda values: field in values and values.get("multifd_compression") != algorithm,
    )


def _ordered(lower: str, upper: str) -> Rule:
    return Rule(
        "min_above_max",
        lower,
        f"{lower} is greater than {upper}",
        f"lower {lower} or raise {upper}",
        lambda values: _greater(values, lower, upper),
    )


def _reaps(values: Values) -> bool:
    return _acts(values, "reaper_policy")


def _acts(values: Values, name: str) -> bool:
    """Whether *name*, one of those that act through the dirty rings, does."""
    return values.get(name, ALONE_AT_THE_RINGS[name]) != ALONE_AT_THE_RINGS[name]


def _alone(field: str, other: str, reason: str) -> Rule:
    return Rule(
        f"excludes_{other}",
        field,
        reason,
        f"unset one of {field} and {other}",
        lambda values: _acts(values, field) and _acts(values, other),
    )


def _needs_reaper(field: str) -> Rule:
    return Rule(
        "needs_reaper_policy",
        field,
        f"{field} has no effect unless reaper_policy names a policy",
        f"set reaper_policy to predict, or unset {field}",
        lambda values: field in values and not _reaps(values),
    )


def _number(values: Values, name: str) -> int:
    """What *values* say, or else the default."""
    value = values.get(name, BUILT_IN[name].default)
    assert isinstance(value, int), f"{name} has no default"
    return value


# Sources: QEMU migration/options.c (migrate_caps_check, migrate_params_check), libvirt
# qemu_migration_params.c, QEMU util/async.c (aio_context_set_thread_pool_params).
RULES: tuple[Rule, ...] = (
    _needs("multifd_channels", "multifd"),
    _needs("multifd_compression", "multifd"),
    _level("zlib"),
    _level("zstd"),
    _level("qatzip"),
    _needs("zero_copy_send", "multifd"),
    Rule(
        "excludes_multifd_compression",
        "zero_copy_send",
        "zero_copy_send sends guest pages as they are and cannot compress them",
        "set multifd_compression to none, or unset zero_copy_send",
        lambda values: _on(values, "zero_copy_send") and _compresses(values),
    ),
    _excludes("zero_copy_send", "tls", "encrypted pages are copies"),
    _excludes("xbzrle", "multifd", "QEMU 8 and later refuse the pair, and libvirt cannot ask"),
    _needs("xbzrle_cache_size_bytes", "xbzrle"),
    _excludes("compress", "multifd", "QEMU refuses the pair; multifd has its own compression"),
    _excludes("compress", "postcopy", "QEMU refuses the pair"),
    _needs("compress_threads", "compress"),
    _needs("decompress_threads", "compress"),
    _needs("cpu_throttle_initial_percent", "auto_converge"),
    _needs("cpu_throttle_increment_percent", "auto_converge"),
    _needs("max_cpu_throttle_percent", "auto_converge"),
    _needs("cpu_throttle_tailslow", "auto_converge"),
    Rule(
        "needs_auto_converge",
        "throttle_trigger_threshold_percent",
        "throttle_trigger_threshold_percent has no effect unless auto_converge is on, or "
        "dirty_limit",
        "set auto_converge to on, or unset throttle_trigger_threshold_percent",
        lambda values: (
            "throttle_trigger_threshold_percent" in values
            and not (_on(values, "auto_converge") or _on(values, "dirty_limit"))
        ),
    ),
    _ordered("cpu_throttle_initial_percent", "max_cpu_throttle_percent"),
    _excludes("dirty_limit", "auto_converge", "both throttle the vCPUs"),
    _needs("vcpu_dirty_limit_mib_per_s", "dirty_limit"),
    _needs("vcpu_dirty_limit_period_ms", "dirty_limit"),
    _needs("postcopy_preempt", "postcopy"),
    _needs("max_postcopy_bandwidth_bytes_per_s", "postcopy"),
    _needs("postcopy_recovery", "postcopy"),
    _needs("postcopy_recovery_attempts", "postcopy"),
    _needs("postcopy_recovery_within_s", "postcopy"),
    Rule(
        "needs_postcopy_recovery",
        "postcopy_recovery_attempts",
        "nothing is tried by itself where postcopy_recovery is manual",
        "set postcopy_recovery to auto, or unset postcopy_recovery_attempts",
        lambda values: (
            "postcopy_recovery_attempts" in values and values.get("postcopy_recovery") == "manual"
        ),
    ),
    Rule(
        "needs_postcopy_recovery",
        "postcopy_recovery_within_s",
        "nothing is tried by itself where postcopy_recovery is manual",
        "set postcopy_recovery to auto, or unset postcopy_recovery_within_s",
        lambda values: (
            "postcopy_recovery_within_s" in values and values.get("postcopy_recovery") == "manual"
        ),
    ),
    _needs("tls_creds", "tls"),
    _needs("tls_hostname", "tls"),
    _excludes("copy_storage", "copy_storage_incremental", "one copies more than the other"),
    *(_needs_copy(name) for name in STORAGE_NAMES if name not in COPIES),
    _ordered("iothread_thread_pool_min", "iothread_thread_pool_max"),
    _ordered("main_loop_thread_pool_min", "main_loop_thread_pool_max"),
    Rule(
        "needs_disk_cache",
        "disk_io",
        "native I/O needs a cache of none or directsync",
        "set disk_cache to none or directsync, or disk_io to io_uring",
        lambda values: (
            values.get("disk_io") == "native"
            and values.get("disk_cache", "none") not in ("none", "directsync")
        ),
    ),
    Rule(
        "ring_too_small",
        "dirty_ring_size_entries",
        f"a dirty ring has at least {LEAST_DIRTY_RING_ENTRIES} entries",
        f"set {LEAST_DIRTY_RING_ENTRIES} to 65536, or 0 for bitmap tracking",
        lambda values: 0 < int(values.get("dirty_ring_size_entries", 0)) < LEAST_DIRTY_RING_ENTRIES,
    ),
    Rule(
        "needs_dirty_ring",
        "dirty_limit",
        "dirty_limit works on a dirty ring, and this profile asks for bitmap tracking",
        "set dirty_ring_size_entries to 1024 or more, or unset dirty_limit",
        lambda values: _on(values, "dirty_limit") and values.get("dirty_ring_size_entries") == 0,
    ),
    _needs_reaper("reaper_min_interval_ms"),
    _needs_reaper("reaper_max_interval_ms"),
    _needs_reaper("reaper_target_fill_percent"),
    Rule(
        "needs_predict",
        "reaper_target_fill_percent",
        "only the policy predict has a target fill; levels and aimd have thresholds of their own",
        "set reaper_policy to predict, or unset reaper_target_fill_percent",
        lambda values: (
            "reaper_target_fill_percent" in values and values.get("reaper_policy") != "predict"
        ),
    ),
    Rule(
        "min_above_max",
        "reaper_min_interval_ms",
        "reaper_min_interval_ms is greater than reaper_max_interval_ms, which is 1,000 ms "
        "where it is not set",
        "lower reaper_min_interval_ms or raise reaper_max_interval_ms",
        lambda values: (
            _number(values, "reaper_min_interval_ms") > _number(values, "reaper_max_interval_ms")
        ),
    ),
    _alone(
        "reaper_policy",
        "dirty_limit",
        "dirty_limit holds vCPUs back when their rings are full, which the reaper prevents",
    ),
    _alone(
        "qemu_reaper_policy",
        "dirty_limit",
        "dirty_limit holds vCPUs back when their rings are full, which the reaper inside QEMU "
        "prevents",
    ),
    _alone(
        "qemu_reaper_policy",
        "reaper_policy",
        "the reaper inside QEMU and vmtune's own would empty the same rings",
    ),
    Rule(
        "needs_dirty_ring",
        "reaper_policy",
        "the reaper empties dirty rings, and this profile asks for bitmap tracking",
        "set dirty_ring_size_entries to 65536, or unset reaper_policy",
        lambda values: _reaps(values) and values.get("dirty_ring_size_entries") == 0,
    ),
)


def contradictions(values: Values, prefix: str = "values.") -> list[Problem]:
    """The rules that *values* break, each as a problem with its remedy."""
    return [
        Problem(prefix + rule.field, rule.code, rule.message, rule.remedy)
        for rule in RULES
        if rule.broken(values)
    ]


def unknown_tunable(name: str, field: str, tunables: TunableRegistry, remedy: str = "") -> Problem:
    """The problem of a name that is in no row of the table, with the nearest that are.

    :param remedy: what else to do; empty for nothing.
    """
    guessed = name[:_LONGEST_GUESSED]
    near = difflib.get_close_matches(guessed, tunables, n=3, cutoff=0.5)
    starting = [known for known in tunables if known.startswith(guessed) and known not in near]
    hint = ", ".join([*near, *starting][:4])
    return Problem(
        field[:_LONGEST_GUESSED],
        "unknown_tunable",
        f"there is no tunable {name[:60]!r}",
        (f"did you mean {hint}?" if hint else "`vmtune tunables` lists them")
        + (f" {remedy}" if remedy else ""),
    )


def accept_values(
    raw: Mapping[str, object],
    tunables: TunableRegistry,
    prefix: str = "values.",
    remedy: str = "",
) -> dict[str, Value]:
    """*raw* as typed values in the tunables' units, in the table's order.

    A null is the same as a name left out: unset.

    :param remedy: of an unknown name, besides the names that are like it.
    :raise InvalidInput: with one problem for each name that is unknown, each value
        that is refused, and each contradiction between the accepted ones.
    """
    values: dict[str, Value] = {}
    problems = first_problems(
        sorted(raw.keys() - tunables.keys()),
        lambda name: unknown_tunable(name, prefix + name, tunables, remedy),
    )
    for name, tunable in tunables.items():
        if raw.get(name) is None:
            continue
        try:
            values[name] = tunable.accept(raw[name])
        except ValueError as error:
            problems.append(
                Problem(prefix + name, "invalid_value", str(error), f"allowed: {tunable.allowed()}")
            )
    problems.sort(key=lambda problem: problem.field)
    if not problems:
        problems = contradictions(values, prefix)
    if problems:
        raise InvalidInput("the values cannot be accepted", problems=problems)
    return values
