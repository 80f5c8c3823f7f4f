"""Rows of the table of findings for QEMU's memory maps and the share of its coroutines."""

from __future__ import annotations

from vmtune.model.findings.kinds import blocker, warning

_ABORTS = "QEMU aborts there with `failed to allocate memory for stack`"

POOL_ROWS = (
    blocker(
        "maps_nearly_exhausted",
        "QEMU has {maps} of the {limit} memory maps that vm.max_map_count allows, "
        f"{{stacks}} coroutine stacks among them; {_ABORTS}",
        "run: sysctl -w vm.max_map_count={wanted}",
    ),
    blocker(
        "maps_would_run_out",
        "with these queues the guest can make QEMU use {most} memory maps, and "
        f"vm.max_map_count is {{limit}}; {_ABORTS}",
        "set vm.max_map_count={wanted} before the VM starts (sysctl -w), or {fewer}",
    ),
    warning(
        "maps_may_run_out",
        "the guest can make QEMU use {most} memory maps, and vm.max_map_count is {limit}; "
        f"{_ABORTS}",
        "set vm.max_map_count={wanted} (sysctl -w), or {fewer}",
    ),
)
