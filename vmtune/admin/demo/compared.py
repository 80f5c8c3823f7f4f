"""The demo's campaign: the same guest over the same narrow link, untuned and tuned, in blocks.

The link carries less than the guest dirties, which is where tuning decides whether a migration
ends at all. Its pages compress well, as those of most guests do in part: that is said with the
result.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vmtune.bench.report.report import Report, from_document
from vmtune.bench.report.tables import pairs
from vmtune.client.commands.bench.campaign import CampaignProgression
from vmtune.client.connection.http import Client, Document
from vmtune.client.views.output import Column, table
from vmtune.client.views.progress import viewer
from vmtune.client.watch import CAMPAIGN, watch_to_end
from vmtune.errors import SetupError

MIB = 1 << 20
BLOCKS = 6
"""The fewest from which there can be a verdict."""
LIMIT_S = 3
LINK_MIB_PER_S = 32
_DIRTY_MB_PER_S = 150
_NAME = "stock-against-tuned"
_METRICS = ("total_time_ms",)
TUNED: Mapping[str, Any] = {  # any: values as people write them
    "multifd": True,
    "multifd_channels": 2,
    "multifd_compression": "zstd",
    "multifd_zstd_level": 1,
}
PLAN: Mapping[str, Any] = {  # any JSON
    "name": _NAME,
    "title": "A writing guest over a narrow link: stock against tuned",
    "why": f"The guest dirties {_DIRTY_MB_PER_S} MB/s, the link carries {LINK_MIB_PER_S} MiB/s.",
    "blocks": BLOCKS,
    "warmup_runs": 0,
    "scenario": {
        "name": "demo/narrow-link",
        "vm": {"memory_bytes": 128 * MIB, "vcpus": 1},
        "workload": {
            "region_bytes": 64 * MIB,
            "dirty_mb_per_s": _DIRTY_MB_PER_S,
            "beat_ms": 5,
        },
        "values": {"max_bandwidth_bytes_per_s": LINK_MIB_PER_S * MIB},
        "warmup_s": 1,
        "cooldown_s": 0,
        "max_seconds": LIMIT_S,
        "max_iterations": 10_000,
    },
    "arms": [{"name": "stock"}, {"name": "tuned", "values": TUNED}],
}


@dataclass(frozen=True, slots=True)
class Result:
    """What came out.

    :param completed: how many migrations ended within the limit, by arm.
    :param verdict: on the total time.
    """

    document: Document
    report: Report

    @property
    def completed(self) -> Mapping[str, int]:
        """Migrations that ended, by arm."""
        counts = {arm.name: 0 for arm in self.report.arms}
        for run in self.report.runs:
            counts[run.arm] += run.state.value == "completed"
        return counts

    @property
    def verdict(self) -> str:
        """On the total time."""
        found = self.report.cells[0].primary.verdict
        return found.value if found else "none"

    def median(self, arm: str) -> float | None:
        """Of its total time in milliseconds; None where that is only known to be above a limit."""
        primary = self.report.cells[0].primary
        summary = primary.a if primary.a.arm == arm else primary.b
        return summary.median.value if summary.median and not summary.median.above else None


def measure(client: Client, verbose: bool) -> Result:
    """Run the campaign to its end, and compare its arms.

    :raise SetupError: it did not complete.
    """
    id = str(client.post("/campaigns", PLAN)["id"])
    with viewer(verbose, CampaignProgression()) as shown:
        record = watch_to_end(client, id, shown, kind=CAMPAIGN)
    if record["state"] != "completed":
        raise SetupError(
            f"the campaign {_NAME} ended as {record['state']}: {record['reason']}",
            code="demo_campaign",
            remedy="`vmtune doctor` says what this machine lacks",
        )
    asked = {"campaign": id, "metric": list(_METRICS)}
    document = client.get("/comparisons", asked)
    return Result(document, from_document(json.loads(json.dumps(document))))


def lines(result: Result) -> Iterator[str]:
    """The comparison, narrow enough for any terminal."""
    yield f"1. A guest dirties {_DIRTY_MB_PER_S} MB/s and the link carries {LINK_MIB_PER_S} MiB/s."
    yield "   stock: QEMU's defaults, as `virsh migrate --live`. tuned: two connections, zstd."
    yield f"   {BLOCKS} migrations each, in random order, each given up after {LIMIT_S} s."
    yield ""
    for pair in pairs(result.report, result.report.cells[0]):
        columns = (
            Column("METRIC"),
            Column("STOCK", right=True),
            Column("TUNED", right=True),
            Column("DIFFERENCE", right=True),
            Column("VERDICT"),
        )
        rows = [(each.title, *each.medians, each.effect, each.verdict) for each in pair.results]
        yield from table(columns, rows, "nothing to compare")
    yield "   The guest's pages compress to almost nothing: other guests gain less from zstd."
