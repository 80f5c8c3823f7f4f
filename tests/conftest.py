"""What holds for every test."""

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A test says nothing about speed: how long an example takes is the machine's affair.
settings.register_profile("vmtune", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# `make check` tries fewer examples of each property; `make test` all of them.
settings.register_profile("quick", settings.get_profile("vmtune"), max_examples=15)
settings.load_profile("vmtune")

# A job in a shell's background ignores SIGINT, and so would every program that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

_TESTS = Path(__file__).parent
_WHOLE_SERVICE = (
    "unit/api",
    "unit/bench/services",
    "unit/services/cluster",
    "unit/services/evacuations",
    "unit/services/migrations",
    "unit/services/tuning/test_applications.py",
)
"""Tests that run the whole service in their process, with a database of its own: each is quick,
and together they take longer than all others."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave them out of `make check`, as if each had the marker."""
    for item in items:
        if item.path.relative_to(_TESTS).as_posix().startswith(_WHOLE_SERVICE):
            item.add_marker(pytest.mark.integration)
