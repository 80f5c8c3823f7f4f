"""A service, and each QEMU, for VMs without libvirt whose disks are copied."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.hosts.live import Service
from tests.support.qemus.qemu import Build, builds


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service of a file of tests."""
    made = Service(tmp_path_factory.mktemp("service"))
    made.start()
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture(params=[pytest.param(b, id=b.label) for b in builds()])
def build(request: pytest.FixtureRequest) -> Build:
    """Each QEMU of this machine."""
    found: Build = request.param
    if found.why_not:
        pytest.skip(found.why_not)
    return found
