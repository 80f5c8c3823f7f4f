"""The sends of a run's migration, iteration by iteration, as people read them."""

from __future__ import annotations

from collections.abc import Iterator

from vmtune.client.connection.http import Document
from vmtune.client.views.output import Column, fields, table

_GIB = 1 << 30
_PUBLISHED = "zero-copy-multifd"


def sends(record: Document) -> Iterator[str]:
    """What a patched QEMU counted.

    :param record: the API's ``SendRecord``.
    """
    columns = (
        Column("ITERATION", right=True),
        Column("SENDS", right=True),
        Column("SENT", right=True),
        Column("SENDMSG, CPU", right=True),
        Column("SENDMSG, TIME", right=True),
        Column("ZERO-COPY", right=True),
        Column("COPIED", right=True),
        Column("FLUSHES", right=True),
    )
    rows = [(f"{each['iteration']:,}", each["counts"]) for each in record["iterations"]]
    rows.append(("all", record["total"]))
    yield from table(columns, [(name, *_cells(counts)) for name, counts in rows], "no sends")
    yield from fields(
        [
            (
                "published",
                "sendmsg took 15 times less with zero-copy, by a network card that need not copy "
                f"(vmtune reference show {_PUBLISHED})",
            )
        ]
    )


def _cells(counts: Document) -> tuple[str, ...]:
    return (
        f"{counts['sends']:,}",
        f"{counts['sent_bytes'] / (1 << 20):,.1f} MiB",
        _per_gib(counts["send_cpu_us"], counts["sent_bytes"]),
        _per_gib(counts["send_us"], counts["sent_bytes"]),
        f"{counts['zero_copy_sends']:,}",
        f"{counts['copied_sends']:,}",
        f"{counts['flush_us'] / 1000:,.1f} ms in {counts['flushes']:,}",
    )


def _per_gib(microseconds: int, sent_bytes: int) -> str:
    return f"{microseconds / 1000 / (sent_bytes / _GIB):,.0f} ms/GiB" if sent_bytes else "-"
