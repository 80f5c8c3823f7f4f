"""A service that runs benchmarks in folders of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.hosts.live import Service
from vmtune.bench.run_folder import processes_of


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    """A folder with a path short enough for sockets, in which nothing runs in the end.

    Benchmark runs of the service are in `b`, their scratch files in `s`, and what they make for
    VMs that run in `l`.
    """
    with tempfile.TemporaryDirectory(prefix="vt-") as name:
        yield Path(name)
        assert processes_of(Path(name)) == []


@pytest.fixture(scope="module")
def more_environment() -> Mapping[str, str]:
    """What else the service has in its environment; for a file of tests to override."""
    return {}


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, base: Path, more_environment: Mapping[str, str]
) -> Iterator[Service]:
    """The service of a file of tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VMTUNE_BENCH_DIR", str(base / "b"))
        patch.setenv("VMTUNE_BENCH_SCRATCH_DIR", str(base / "s"))
        patch.setenv("VMTUNE_BENCH_LIVE_DIR", str(base / "l"))
        for name, value in more_environment.items():
            patch.setenv(name, value)
        made = Service(tmp_path_factory.mktemp("service"))
        try:
            made.start()
            yield made
        finally:
            made.stop()
