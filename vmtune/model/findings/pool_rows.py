"""Rows of the table of findings for QEMU's memory maps and what its coroutines take of them."""

from __future__ import annotations

from vmtune.model.findings.kinds import blocker, warning

_ENDS = "QEMU ends itself there with `failed to allocate memory for stack`"

POOL_ROWS = (
    blocker(
        "maps_nearly_exhausted",
        "QEMU has {maps} memory maps of the {limit} that vm.max_map_count allows it, "
        f"{{stacks}} coroutine stacks among them; {_ENDS}",
        "run: sysctl -w vm.max_map_count={wanted}",
    ),
    blocker(
        "maps_would_run_out",
        "with these queues its guest can make QEMU take {most} memory maps, and "
        f"vm.max_map_count is {{limit}}; {_ENDS}",
        "run before it starts: sysctl -w vm.max_map_count={wanted}; or {fewer}",
    ),
    warning(
        "maps_may_run_out",
        "its guest can make QEMU take {most} memory maps, and vm.max_map_count is {limit}; "
        f"{_ENDS}",
        "run: sysctl -w vm.max_map_count={wanted}; or {fewer}",
    ),
)
