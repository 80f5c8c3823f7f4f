"""What holds for every test."""

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A test says nothing about speed: how long an example takes is the machine's affair.
settings.register_profile("vmtune", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("vmtune")

# A job in a shell's background ignores SIGINT, and so would every program that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

_HERE = Path(__file__).parent
_ALONE = tuple(
    _HERE / part
    for part in (
        "contract/test_driver.py",
        "contract/test_driver_libvirt.py",
        "contract/test_reaping_qemu.py",
        "contract/test_sysctl.py",
        "e2e",
    )
)
"""What shares the machine's KVM, its network namespaces and its limits."""


@pytest.hookimpl(tryfirst=True)  # before the plugin that distributes them reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run these one after the other, by one of the processes that the suite is divided among."""
    for item in items:
        if any(item.path.is_relative_to(part) for part in _ALONE):
            item.add_marker(pytest.mark.xdist_group("the machine"))
