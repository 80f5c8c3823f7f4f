"""What a kernel does with a dirty ring when a signal is pending."""

from __future__ import annotations

import doctest

from vmtune.model.host import ring_reset
from vmtune.model.host.ring_reset import resets_end_early


def test_the_documented_examples_hold() -> None:
    assert doctest.testmod(ring_reset).failed == 0


def test_what_the_kernel_showed_counts_more_than_its_version() -> None:
    assert resets_end_early(True, "6.1.0") is True
    assert resets_end_early(False, "7.0.0") is False
    assert resets_end_early(None, "7.0.0-rc1") is True
    assert resets_end_early(None, "5.10.0-8") is False
    assert resets_end_early(None, "unreadable") is None
    assert resets_end_early(None, "") is None
