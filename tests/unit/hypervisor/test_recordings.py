"""The tunables table against what QEMU 7.2, 10.0 and 11.1 were recorded to offer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.simulated.fakes import RECORDED, recording
from vmtune.hypervisor.qemu import names as qemu_names
from vmtune.model.migration.record import read_query_migrate
from vmtune.model.tunables.built_in import BUILT_IN, NOT_TUNED
from vmtune.model.tunables.tunable import Kind, QmpKind
from vmtune.model.versions import Version

VERSIONS = pytest.mark.parametrize("version", RECORDED)


def offered(replies: dict[str, Any], kind: QmpKind) -> set[str]:
    if kind is QmpKind.CAPABILITY:
        return set(qemu_names.capabilities(replies["query-migrate-capabilities"]))
    return set(replies["query-migrate-parameters"])


KINDS = pytest.mark.parametrize("kind", [QmpKind.CAPABILITY, QmpKind.PARAMETER])


@VERSIONS
@KINDS
def test_everything_that_qemu_offers_is_tuned_or_says_why_not(version: str, kind: QmpKind) -> None:
    unknown = offered(recording(version), kind) - set(BUILT_IN.by_qmp(kind)) - set(NOT_TUNED)
    assert not unknown


@VERSIONS
@KINDS
def test_every_tunable_is_offered_from_its_version_on(version: str, kind: QmpKind) -> None:
    names = offered(recording(version), kind)
    number = Version.parse(version)
    for name, tunable in BUILT_IN.by_qmp(kind).items():
        assert (name in names) is tunable.in_release(number), tunable.name


@pytest.mark.parametrize(
    ("version", "offered"), [("7.2.0", True), ("9.0.4", True), ("9.1.0", False), ("10.0.2", False)]
)
def test_the_last_release_with_it_has_bugfix_releases_with_it(version: str, offered: bool) -> None:
    assert BUILT_IN["compress"].in_release(Version.parse(version)) is offered
    assert BUILT_IN["dirty_limit"].in_release(Version.parse(version)) is (version != "7.2.0")


def test_what_is_not_tuned_was_seen_somewhere() -> None:
    """block-bitmap-mapping shows up only once it was set."""
    seen = {
        name
        for version in RECORDED
        for kind in (QmpKind.CAPABILITY, QmpKind.PARAMETER)
        for name in offered(recording(version), kind)
    }
    assert set(NOT_TUNED) - seen == {"block-bitmap-mapping"}


@VERSIONS
def test_defaults_of_the_table_are_qemus(version: str) -> None:
    parameters = recording(version)["query-migrate-parameters"]
    for name, tunable in BUILT_IN.by_qmp(QmpKind.PARAMETER).items():
        if name in parameters and tunable.kind is not Kind.TEXT:
            assert parameters[name] == tunable.default, tunable.name


@VERSIONS
def test_defaults_of_the_pools_are_qemus(version: str) -> None:
    replies = recording(version)
    for row in replies["query-iothreads"]:
        for name, tunable in BUILT_IN.by_qmp(QmpKind.IOTHREAD).items():
            if name in row:
                assert tunable.default is not None
                assert tunable.reads_back(tunable.default, row[name]), tunable.name
    for read in replies["qom-get"]:
        if read["property"] in BUILT_IN.by_qmp(QmpKind.IOTHREAD):
            assert read["value"] == BUILT_IN.by_qmp(QmpKind.IOTHREAD)[read["property"]].default


@VERSIONS
def test_every_compression_of_these_builds_is_a_choice(version: str) -> None:
    methods = set(recording(version)["multifd-compression"])
    assert methods <= set(BUILT_IN["multifd_compression"].choices)
    assert {"none", "zlib", "zstd"} <= methods


@VERSIONS
@pytest.mark.parametrize("state", ["active", "completed", "failed", "cancelled", "just-started"])
def test_each_recorded_migration_is_read_as_what_it_was(version: str, state: str) -> None:
    snapshot = read_query_migrate(recording(version)[f"query-migrate.{state}"])
    allowed = {state} if state != "just-started" else {"setup", "active"}
    assert snapshot.status.value in allowed


def test_remaining_memory_is_read_without_what_11_1_counts_for_devices_too() -> None:
    """Its figure of the whole VM is older, and earlier releases have none."""
    replies = {version: recording(version)["query-migrate.active"] for version in RECORDED}
    assert [version for version in replies if "remaining" in replies[version]] == ["11.1.3"]
    assert replies["11.1.3"]["remaining"] != replies["11.1.3"]["ram"]["remaining"]
    for reply in replies.values():
        sample = read_query_migrate(reply).sample
        assert sample is not None
        assert sample.remaining_bytes == reply["ram"]["remaining"]
