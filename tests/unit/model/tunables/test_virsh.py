"""Tunables in the words of ``virsh migrate``, and back."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.errors import InvalidInput
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.rows.names import MIB
from vmtune.model.tunables.rules import accept_values
from vmtune.model.tunables.tunable import Kind, LibvirtKind, Route, Value
from vmtune.model.tunables.virsh import VirshOptions, known_options, only_known, to_virsh
from vmtune.model.tunables.virsh_options import ALL, NOT_DONE, TUNING, from_virsh
from vmtune.model.versions import Version

EXPRESSIBLE = [
    row
    for row in BUILT_IN.values()
    if row.route is Route.MIGRATE
    and row.libvirt is not None
    and row.libvirt.kind is not LibvirtKind.AUTOMATIC
]


def installed() -> frozenset[str]:
    if shutil.which("virsh") is None:
        pytest.skip("virsh is not installed")
    done = subprocess.run(["virsh", "help", "migrate"], capture_output=True, text=True, check=True)
    return known_options(done.stdout)


def test_the_installed_virsh_has_no_option_that_is_not_known_here() -> None:
    known = installed()
    assert "--live" in known
    assert known - {"--domain", "--desturi"} <= ALL


def test_the_installed_virsh_has_every_option_that_sets_a_tunable() -> None:
    """But those of a later libvirt."""
    said = subprocess.run(["virsh", "--version"], capture_output=True, text=True, check=True)
    version = Version.parse(said.stdout.strip())
    due = {option for option, row in TUNING.items() if row.libvirt and row.libvirt.since <= version}
    assert due <= installed()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, ""),
        ({"multifd": True}, "--parallel"),
        ({"multifd": False, "auto_converge": False}, ""),
        ({"multifd": True, "multifd_channels": 4}, "--parallel --parallel-connections 4"),
        ({"multifd_channels": 4}, ""),
        ({"max_bandwidth_bytes_per_s": 8 * MIB}, "--bandwidth 8"),
        ({"max_bandwidth_bytes_per_s": 0}, ""),
        ({"max_bandwidth_bytes_per_s": 8 * MIB + 1}, ""),
        ({"xbzrle": True, "xbzrle_cache_size_bytes": 1 << 26},
         "--comp-xbzrle-cache 67108864 --compressed --comp-methods xbzrle"),
        ({"compress": True, "xbzrle": True}, "--compressed --comp-methods mt,xbzrle"),
        ({"multifd": True, "multifd_compression": "zstd", "multifd_zstd_level": 3},
         "--parallel --comp-zstd-level 3 --compressed --comp-methods zstd"),
        ({"multifd": True, "multifd_compression": "none"}, "--parallel"),
        ({"tls": True, "tls_hostname": "b.example"}, "--tls --tls-destination b.example"),
        ({"migrate_uri": "tcp://[fd00::2]", "listen_address": "fd00::2"},
         "--migrateuri 'tcp://[fd00::2]' --listen-address fd00::2"),
        ({"disks_uri": "tcp://b.example:49153"}, "--disks-uri tcp://b.example:49153"),
        ({"copy_storage": True, "copy_disks": "vda,vdb", "disks_port": 49300},
         "--copy-storage-all --migrate-disks vda,vdb --disks-port 49300"),
        ({"postcopy": True, "postcopy_preempt": True}, "--postcopy"),
        ({"downtime_limit_ms": 500, "reaper_policy": "off"}, ""),
    ],
)  # fmt: skip
def test_values_as_options(values: dict[str, Value], words: str) -> None:
    assert shlex.join(to_virsh(values, BUILT_IN).words) == words


def test_what_cannot_be_said_is_told_with_a_reason() -> None:
    values: dict[str, Value] = {
        "multifd": True,
        "multifd_channels": 3,
        "max_bandwidth_bytes_per_s": MIB + 1,
        "downtime_limit_ms": 500,
        "announce_rounds": 7,
        "dirty_ring_size_entries": 4096,
        "reaper_policy": "predict",
    }
    said = to_virsh(values, BUILT_IN, {"multifd": "QEMU lacks it"})
    assert said.words == []
    reasons = {each.tunable: each.reason for each in said.not_expressed}
    assert reasons.keys() == values.keys()
    assert reasons["multifd"] == "QEMU lacks it"
    assert "unless multifd is on" in reasons["multifd_channels"]
    assert "whole MiB/s" in reasons["max_bandwidth_bytes_per_s"]
    assert "vmtune apply" in reasons["downtime_limit_ms"]
    assert "destination" in reasons["announce_rounds"]
    assert "next start" in reasons["dirty_ring_size_entries"]
    assert "when it sees the migration" in reasons["reaper_policy"]


def test_every_value_is_said_or_unsaid_or_needs_no_option() -> None:
    for row in BUILT_IN.values():
        value: Value = {
            Kind.BOOLEAN: True,
            Kind.INTEGER: (row.minimum or 0) or MIB,
            Kind.CHOICE: next((c for c in row.choices if c not in ("none", "off")), ""),
            Kind.TEXT: "name",
        }[row.kind]
        said = to_virsh({row.name: value}, BUILT_IN)
        assert said.words or said.not_expressed, row.name


def test_options_that_virsh_lacks_are_dropped_with_what_needs_them() -> None:
    said = to_virsh({"multifd": True, "multifd_compression": "zstd", "multifd_zstd_level": 1,
                   "auto_converge": True}, BUILT_IN)  # fmt: skip
    known = frozenset({"--compressed", "--comp-methods", "--comp-zstd-level", "--auto-converge"})
    left = only_known(said, known, "4.0")
    assert left.words == ["--auto-converge"]
    reasons = {each.tunable: each.reason for each in left.not_expressed}
    assert reasons["multifd"] == "virsh 4.0 has no --parallel"
    assert set(reasons) == {"multifd", "multifd_compression", "multifd_zstd_level"}


def test_a_virsh_that_knows_all_leaves_it_as_it_is() -> None:
    said = to_virsh({"multifd": True, "multifd_channels": 8}, BUILT_IN)
    assert only_known(said, ALL, "11.3.0") == said


_TRUE = st.just(True)
_VALUES = st.fixed_dictionaries(
    {},
    optional={
        "multifd": _TRUE,
        "multifd_channels": st.integers(1, 255),
        "multifd_compression": st.sampled_from(["zlib", "zstd"]),
        "zero_copy_send": _TRUE,
        "auto_converge": _TRUE,
        "cpu_throttle_initial_percent": st.integers(1, 99),
        "max_bandwidth_bytes_per_s": st.integers(1, 10_000).map(lambda n: n * MIB),
        "postcopy": _TRUE,
        "xbzrle": _TRUE,
    },
)


@given(_VALUES)
def test_what_is_said_means_the_same_again(values: dict[str, Value]) -> None:
    try:
        accepted = accept_values(values, BUILT_IN)
    except InvalidInput:
        return
    said = to_virsh(accepted, BUILT_IN)
    given_options: dict[str, bool | int | str] = {}
    for option in said.options:
        number = int(option.value) if option.value.isdigit() else option.value
        given_options[option.option] = number if option.value else True
    assert from_virsh(given_options).values == accepted


@given(st.text())
def test_any_text_can_be_a_virsh_help(text: str) -> None:
    assert all(option.startswith("--") for option in known_options(text))
    assert isinstance(
        only_known(to_virsh({"multifd": True}, BUILT_IN), known_options(text), "x"), VirshOptions
    )


class TestMeaning:
    def test_timeouts_are_steps(self) -> None:
        assert from_virsh({"--timeout": 5}).steps == [
            {"when": {"after_s": 5}, "then": {"do": "pause"}}
        ]
        both = from_virsh({"--timeout": 5, "--timeout-postcopy": True})
        assert both.steps == [{"when": {"after_s": 5}, "then": {"do": "postcopy"}}]
        assert both.values == {"postcopy": True}
        after = from_virsh({"--postcopy-after-precopy": True})
        assert after.steps == [{"when": {"after_iterations": 1}, "then": {"do": "postcopy"}}]

    def test_what_vmtune_does_anyway_changes_nothing(self) -> None:
        said = from_virsh({"--live": True, "--p2p": True, "--persistent": True, "--verbose": True})
        assert (said.values, said.steps) == ({}, None)

    def test_compression_without_a_method_is_virshs_own(self) -> None:
        assert from_virsh({"--compressed": True}).values == {"xbzrle": True}

    @pytest.mark.parametrize(
        ("options", "field"),
        [
            *((({option: True}), option) for option in NOT_DONE),
            ({"--timeout-suspend": True}, "--timeout-suspend"),
            ({"--timeout": 1, "--timeout-suspend": True, "--timeout-postcopy": True},
             "--timeout-suspend"),
            ({"--compressed": True, "--parallel": True}, "--compressed"),
            ({"--compressed": True, "--comp-methods": "gzip"}, "--comp-methods"),
        ],
    )  # fmt: skip
    def test_what_it_does_not_do_is_refused_with_a_remedy(
        self, options: dict[str, bool | int | str], field: str
    ) -> None:
        with pytest.raises(InvalidInput) as caught:
            from_virsh(options)
        (problem,) = caught.value.problems
        assert problem.field == field
        assert problem.message
        assert problem.remedy
