"""The table of scenario families: what `vmtune bench migration` can run, each once.

A family varies one thing; its variants are to be compared with each other. The first eleven are
those of QEMU's guestperf (tests/migration-stress/guestperf/comparison.py of QEMU 10), with its
names and its parameters, but for what it got wrong:

- its ``compr-xbzrle-cache-20`` runs with 10 %, and QEMU refuses its caches, which are no powers of
  two: here each is the nearest one;
- it counts the iteration that is under way, so that its 0 and 1 are the same: here so many
  iterations have been completed, so those families have names of their own. Variant 4 does at the
  same moment what guestperf's 5 does.

Which of them a QEMU, a host or an accelerator cannot do is not said here: that follows from the
tunables (:func:`vmtune.bench.migration.scenarios.why_not`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from vmtune.bench.model.scenario.migration import Scenario, VmShape, nearest_power_of_two
from vmtune.bench.model.scenario.parts import GIB, MIB
from vmtune.model.migration.steps import AfterIterations, Step, StepAction
from vmtune.model.tunables.rows.reaper import OFF
from vmtune.model.tunables.tunable import Value
from vmtune.model.workload import Workload

Values = Mapping[str, Value]
UNLIMITED_MIB_PER_S = 125_000
"""guestperf's own default, a network of 1 Tbit/s."""
_BEAT_MS = 5
_AFTER = {0: "at once", 1: "after one iteration", 4: "after 4 iterations",
          19: "after 19 iterations"}  # fmt: skip
_GUESTPERFS_ITERATIONS = (1, 5, 20)


@dataclass(frozen=True, slots=True)
class Variant:
    """One scenario of a family.

    :param title: what distinguishes it, in words.
    :param guestperf: guestperf's name for it; empty where guestperf has none.
    """

    name: str
    title: str
    values: Values = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    guestperf: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """Scenarios that differ in one thing.

    :param why: what is learnt from it, and when to run it.
    :param values: what all its variants have besides their own.
    :param quick: the variants that the quick selection has.
    """

    name: str
    title: str
    why: str
    variants: tuple[Variant, ...]
    values: Values = field(default_factory=dict)
    workload: Workload = field(default_factory=lambda: Workload(GIB, beat_ms=_BEAT_MS))
    count_ring_full: bool = False
    quick: tuple[str, ...] = ()

    def scenarios(self) -> Iterable[Scenario]:
        """Its variants as they are run, guestperf's settings beneath their own."""
        for variant in self.variants:
            values: dict[str, Value] = {
                "downtime_limit_ms": 500,
                "max_bandwidth_bytes_per_s": UNLIMITED_MIB_PER_S * MIB,
                **self.values,
                **variant.values,
            }
            yield Scenario(
                name=f"{self.name}/{variant.name}",
                title=f"{self.title}: {variant.title}",
                why=self.why,
                vm=VmShape(memory_bytes=1536 * MIB, vcpus=1),
                workload=self.workload,
                values=values,
                steps=variant.steps,
                count_ring_full=self.count_ring_full and bool(values["dirty_ring_size_entries"]),
            )


def _iterations(action: StepAction, words: str, guestperf: str) -> tuple[Variant, ...]:
    return tuple(
        Variant(
            str(count),
            f"{words} {_AFTER[count]}",
            steps=(Step(AfterIterations(count), action),),
            guestperf=f"{guestperf}-{count + 1}" if count + 1 in _GUESTPERFS_ITERATIONS else "",
        )
        for count in _AFTER
    )


def _bandwidths(guestperf: str) -> tuple[Variant, ...]:
    """Networks of 100 Mbit/s to 100 Gbit/s, as guestperf rounds them to MiB/s."""
    return tuple(
        Variant(name, f"{mib} MiB/s", {"max_bandwidth_bytes_per_s": mib * MIB},
                guestperf=f"{guestperf}-{name}")
        for name, mib in (
            ("100mbs", 12), ("300mbs", 37), ("1gbs", 125), ("10gbs", 1250), ("100gbs", 12_500),
        )
    )  # fmt: skip


def _by(
    tunable: str, settings: Iterable[Value], name: str, title: str, guestperf: str = ""
) -> tuple[Variant, ...]:
    """A variant for each setting of one tunable; the texts have a ``{}`` for it."""
    return tuple(
        Variant(
            name.format(value), title.format(value), {tunable: value}, (), guestperf.format(value)
        )
        for value in settings
    )


_POSTCOPY_IN_5TH = (Step(AfterIterations(4), StepAction.POSTCOPY),)
"""As guestperf's 5, which counts the iteration that is under way."""
_DIRTY_LIMIT: Values = {"dirty_limit": True, "dirty_ring_size_entries": 65536}
_MIXED = Workload(GIB, zero_percent=20, random_percent=30, beat_ms=_BEAT_MS)
"""Pages of which some compress well and some not at all. With guestperf's, where every page is
the same, a compressor's figures mean nothing."""

_GUESTPERF = (
    Family(
        "pause-after", "Pausing the guest",
        "What it costs to pause the guest so that the rest fits, by when it is paused.",
        _iterations(StepAction.PAUSE, "paused", "pause-iters"),
        quick=("1",),
    ),
    Family(
        "post-copy-bandwidth", "Post-copy by bandwidth",
        "What post-copy costs the guest on networks of several speeds. The limit holds until "
        "the switch, as it does in guestperf; post-copy itself has none.",
        tuple(
            Variant(v.name, v.title, v.values, _POSTCOPY_IN_5TH, v.guestperf)
            for v in _bandwidths("post-copy-bw")
        ),
        {"postcopy": True},
    ),
    Family(
        "post-copy-after", "Post-copy by iterations",
        "What post-copy costs the guest, by when it begins: the later, the fewer pages are "
        "missing.",
        _iterations(StepAction.POSTCOPY, "post-copy", "post-copy-iters"),
        {"postcopy": True},
        quick=("1",),
    ),
    Family(
        "auto-converge-iters", "Auto-converge by step",
        "How much faster a larger throttle step ends the migration, and what it takes from the "
        "guest.",
        _by("cpu_throttle_increment_percent", (5, 10, 20), "step-{}", "{} % a step",
            "auto-converge-step-{}"),
        {"auto_converge": True},
        quick=("step-20",),
    ),
    Family(
        "auto-converge-bandwidth", "Auto-converge by bandwidth",
        "Whether auto-converge ends the migration on networks of several speeds.",
        _bandwidths("auto-converge-bw"),
        {"auto_converge": True},
    ),
    Family(
        "compr-mt", "Compression in threads",
        "Compression as it was before multifd, by its number of threads.",
        tuple(
            Variant(f"threads-{count}", f"{count} threads",
                    {"compress_threads": count, "decompress_threads": count},
                    guestperf=f"compr-mt-threads-{count}")
            for count in (1, 2, 4)
        ),
        {"compress": True},
        _MIXED,
        quick=("threads-2",),
    ),
    Family(
        "compr-xbzrle", "XBZRLE by cache",
        "How large a cache XBZRLE needs: a share of the guest's memory, rounded to the nearest "
        "power of two.",
        tuple(
            Variant(f"cache-{percent}", f"a cache of {percent} % of memory",
                    {"xbzrle_cache_size_bytes": nearest_power_of_two(GIB * percent // 100)},
                    guestperf=f"compr-xbzrle-cache-{percent}")
            for percent in (5, 10, 20, 50)
        ),
        {"xbzrle": True},
        quick=("cache-50",),
    ),
    Family(
        "compr-multifd", "Multifd by channels",
        "How many parallel connections pay off.",
        _by("multifd_channels", (4, 8, 32, 64), "channels-{}", "{} channels",
            "compr-multifd-channels-{}"),
        {"multifd": True},
        quick=("channels-4",),
    ),
    Family(
        "compr-dirty-limit-period", "Dirty limit by period",
        "How often the dirty limit should measure the vCPUs.",
        _by("vcpu_dirty_limit_period_ms", (500, 800, 1000), "{}", "every {} ms",
            "compr-dirty-limit-period-{}"),
        {**_DIRTY_LIMIT, "vcpu_dirty_limit_mib_per_s": 1},
    ),
    Family(
        "compr-dirty-limit", "Dirty limit by rate",
        "What dirty rate to leave the vCPUs.",
        _by("vcpu_dirty_limit_mib_per_s", (10, 20, 50), "{}MB", "{} MiB/s a vCPU",
            "compr-dirty-limit-{}MB"),
        {**_DIRTY_LIMIT, "vcpu_dirty_limit_period_ms": 500},
        quick=("20MB",),
    ),
    Family(
        "compr-multifd-compression", "Multifd by compression",
        "Which compression pays off on this network and these CPUs.",
        _by("multifd_compression", ("zlib", "zstd", "qpl", "uadk"), "{}", "{}",
            "compr-multifd-compression-{}"),
        {"multifd": True, "multifd_channels": 2},
        _MIXED,
        quick=("zstd",),
    ),
)  # fmt: skip

_ADDED = (
    Family(
        "plain", "No tuning",
        "What QEMU does with its defaults: the baseline of all other scenarios.",
        (
            Variant("unlimited", "as fast as it goes"),
            Variant("1gbs", "125 MiB/s", {"max_bandwidth_bytes_per_s": 125 * MIB}),
        ),
        quick=("1gbs",),
    ),
    Family(
        "zero-copy", "Zero-copy send",
        "What sending without copying saves in time and CPU. Needs a network card: over "
        "loopback the kernel copies all the same, which missed_zero_copy shows.",
        (
            Variant("off", "copied", {"zero_copy_send": False}),
            Variant("on", "not copied", {"zero_copy_send": True}),
        ),
        {"multifd": True, "multifd_channels": 8},
        quick=("on",),
    ),
    Family(
        "zstd-level", "zstd by level",
        "How much CPU a higher level of zstd takes, and how much less it sends.",
        _by("multifd_zstd_level", (1, 3, 6, 10, 15, 20), "{}", "level {}"),
        {"multifd": True, "multifd_channels": 4, "multifd_compression": "zstd"},
        _MIXED,
    ),
    Family(
        "zlib-level", "zlib by level",
        "How much CPU a higher level of zlib takes, and how much less it sends.",
        _by("multifd_zlib_level", (1, 3, 6, 9), "{}", "level {}"),
        {"multifd": True, "multifd_channels": 4, "multifd_compression": "zlib"},
        _MIXED,
    ),
    Family(
        "post-copy-preempt", "Post-copy preemption",
        "Whether pages that the guest waits for come sooner on a connection of their own.",
        tuple(
            Variant(name, title, {"postcopy_preempt": on}, (Step(AfterIterations(1),
                    StepAction.POSTCOPY),))
            for name, title, on in (("off", "one connection", False), ("on", "its own", True))
        ),
        {"postcopy": True, "max_bandwidth_bytes_per_s": 125 * MIB,
         "max_postcopy_bandwidth_bytes_per_s": 125 * MIB},
        quick=("on",),
    ),
    Family(
        "switchover-bandwidth", "Bandwidth for the switchover",
        "A migration held to 125 MiB/s of a faster network: how much sooner it switches over "
        "when it is told what the network can do while the guest is stopped.",
        (
            Variant("measured", "by what was measured"),
            *(
                Variant(name, f"{mib} MiB/s",
                        {"avail_switchover_bandwidth_bytes_per_s": mib * MIB})
                for name, mib in (("1gbs", 125), ("10gbs", 1250), ("100gbs", 12_500))
            ),
        ),
        {"max_bandwidth_bytes_per_s": 125 * MIB},
        quick=("10gbs",),
    ),
    Family(
        "zero-page-detection", "Zero-page detection",
        "Who should look for pages of zeros, with a guest of which half is zeros.",
        _by("zero_page_detection", ("none", "legacy", "multifd"), "{}", "by {}"),
        {"multifd": True, "multifd_channels": 4},
        Workload(GIB, zero_percent=50, beat_ms=_BEAT_MS),
        quick=("multifd",),
    ),
)  # fmt: skip


_RING_ENTRIES = (1024, 2048, 4096, 8192, 16384, 32768, 65536)
_REAPERS = {
    OFF: "QEMU's own reaper", "predict": "reaped by predict", "levels": "reaped by levels",
    "aimd": "reaped by aimd",
}  # fmt: skip
_DIRTY_RING = Family(
    "dirty-ring", "Dirty ring and reaper",
    "What tracking by a dirty ring costs the guest, by the ring's size and by who empties it, "
    "compared with tracking by a bitmap. A vCPU whose ring is full stands still.",
    (
        Variant("bitmap", "tracked by a bitmap", {"dirty_ring_size_entries": 0}),
        *(
            Variant(f"{entries}-{'stock' if policy == OFF else policy}",
                    f"{entries:,} entries, {words}",
                    {"dirty_ring_size_entries": entries, "reaper_policy": policy})
            for entries in _RING_ENTRIES
            for policy, words in _REAPERS.items()
        ),
    ),
    {"max_bandwidth_bytes_per_s": 125 * MIB},
    count_ring_full=True,
    quick=("bitmap", "65536-stock", "65536-predict", "65536-levels", "65536-aimd"),
)  # fmt: skip


def _complete(rows: Iterable[Family]) -> Mapping[str, Family]:
    """The table by name, after proving that nothing in it is there twice.

    :raise AssertionError: naming the family and what is wrong with it.
    """
    table: dict[str, Family] = {}
    theirs: set[str] = set()
    for row in rows:
        assert row.name not in table, f"{row.name}: name"
        assert row.why.endswith("."), f"{row.name}: why"
        names = [variant.name for variant in row.variants]
        assert len(set(names)) == len(names) and set(row.quick) <= set(names), f"{row.name}: names"
        differing = [
            {name: v for name, v in s.values.items() if v is not False} | {"": str(s.steps)}
            for s in row.scenarios()
        ]
        for index, values in enumerate(differing):
            assert values not in differing[:index], f"{row.name}: {names[index]} is there twice"
        for variant in row.variants:
            assert not variant.guestperf or variant.guestperf not in theirs, variant.guestperf
            theirs.add(variant.guestperf)
        table[row.name] = row
    return MappingProxyType(table)


FAMILIES: Mapping[str, Family] = _complete((*_ADDED[:1], *_GUESTPERF, *_ADDED[1:], _DIRTY_RING))
"""Every family by name, in the order in which they are listed and run."""

SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {scenario.name: scenario for family in FAMILIES.values() for scenario in family.scenarios()}
)
"""Every scenario by name, ``family/variant``, at its full size."""

GUESTPERF_NAMES: Mapping[str, str] = MappingProxyType(
    {
        variant.guestperf: f"{family.name}/{variant.name}"
        for family in FAMILIES.values()
        for variant in family.variants
        if variant.guestperf
    }
)
"""guestperf's names of its own scenarios, and ours for them."""
