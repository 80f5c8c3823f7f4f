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
_TOGETHER = {
    "drivers": (
        "contract/test_block_live.py",
        "contract/test_block_run.py",
        "contract/test_driver.py",
        "contract/test_driver_libvirt.py",
        "contract/test_patched_qemu.py",
        "contract/test_reaping_qemu.py",
        "contract/test_sysctl.py",
    ),
    "labs": ("e2e/test_controlled.py", "e2e/test_hook.py", "e2e/test_migration.py",
             "e2e/test_observed.py"),
    "benches": ("e2e",),
}  # fmt: skip
"""What starts QEMUs and libvirts by the dozen, in groups that take about as long: of each group one
test runs at a time, so that a machine of two cores has two at most."""


@pytest.hookimpl(tryfirst=True)  # before the plugin that distributes them reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run a group's tests one after the other, by one of the processes of the suite."""
    for item in items:
        for name, parts in _TOGETHER.items():
            if any(item.path.is_relative_to(_HERE / part) for part in parts):
                item.add_marker(pytest.mark.xdist_group(name))
                break
