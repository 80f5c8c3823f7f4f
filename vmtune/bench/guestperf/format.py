"""The report that QEMU's guestperf writes, as JSON: its fields, read strictly.

Two forms are known, distinguished by the fields of the second:

- the old one, of QEMU up to 8.0;
- the new one, of QEMU 10: with a dirty ring's size, the dirty limit, multifd's compression and
  the result. Releases between them have some of these.

Times of day are seconds since 1970, times that last milliseconds, bandwidths MiB/s but for the
transfer rate, which is Mbit/s (tests/migration-stress/guestperf of QEMU 10.0).

Read by hand and not by field types: a field that a form has is required, and one that it does not
have is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from vmtune.documents.strict import Reader, join
from vmtune.errors import InvalidInput

Json = Any  # any JSON
Document = dict[str, Json]

MAX_CHARACTERS = 64 << 20
MAX_PROGRESS = 100_000
MAX_TIMINGS = 1_000_000
MAX_BINDINGS = 4096
MAX_TEXT = 4096
MAX_TOLD = 200
MAX_COUNT = (1 << 63) - 1
MAX_MEMORY_GIB = 1 << 14
LATEST_S = 253_370_764_800
"""The year 9999: what a date can hold."""


class Form(StrEnum):
    """Which QEMU's guestperf can read it."""

    OLD = "old"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of guestperf's.

    :param check: adds a problem where the value is none of the field's.
    :param default: what guestperf has where the field's subject is not used.
    :param new: only the new form has it.
    """

    name: str
    check: Callable[[Reader, Json, str], object]
    default: Json
    new: bool = False


def _count(most: int = MAX_COUNT) -> Callable[[Reader, Json, str], object]:
    return lambda reader, raw, where: reader.integer(raw, where, 0, most)


def _number(most: float = MAX_COUNT) -> Callable[[Reader, Json, str], object]:
    return lambda reader, raw, where: reader.number(raw, where, 0, most)


def _text(reader: Reader, raw: Json, where: str) -> object:
    return reader.text(raw, where, MAX_TEXT)


def _boolean(reader: Reader, raw: Json, where: str) -> object:
    return reader.boolean(raw, where)


def _optional_count(reader: Reader, raw: Json, where: str) -> object:
    return None if raw is None else reader.integer(raw, where, 0, MAX_COUNT)


def _switch(reader: Reader, raw: Json, where: str) -> object:
    """An option that guestperf's command line takes as a text."""
    return _text(reader, raw, where) if isinstance(raw, str) else _boolean(reader, raw, where)


def _binding(reader: Reader, raw: Json, where: str) -> object:
    """A list of CPUs or of NUMA nodes."""
    return None if raw is None else reader.sequence(
        raw, where, lambda each, at: _text(reader, each, at), MAX_BINDINGS
    )  # fmt: skip


HARDWARE = (
    Field("cpus", _count(1 << 16), 1),
    Field("mem", _count(MAX_MEMORY_GIB), 1),
    Field("src_mem_bind", _binding, []),
    Field("dst_mem_bind", _binding, []),
    Field("src_cpu_bind", _binding, []),
    Field("dst_cpu_bind", _binding, []),
    Field("prealloc_pages", _switch, False),
    Field("huge_pages", _switch, False),
    Field("locked_pages", _switch, False),
    Field("dirty_ring_size", _optional_count, 0, new=True),
)
SCENARIO = (
    Field("name", _text, ""),
    Field("downtime", _number(), 500),
    Field("bandwidth", _number(1 << 43), 125_000),
    Field("max_iters", _count(), 30),
    Field("max_time", _number(), 300),
    Field("pause", _boolean, False),
    Field("pause_iters", _count(), 5),
    Field("post_copy", _boolean, False),
    Field("post_copy_iters", _count(), 5),
    Field("auto_converge", _boolean, False),
    Field("auto_converge_step", _count(), 10),
    Field("compression_mt", _boolean, False),
    Field("compression_mt_threads", _count(), 1),
    Field("compression_xbzrle", _boolean, False),
    Field("compression_xbzrle_cache", _number(100), 10),
    Field("multifd", _boolean, False),
    Field("multifd_channels", _count(), 2),
    Field("multifd_compression", _text, "", new=True),
    Field("dirty_limit", _boolean, False, new=True),
    Field("x_vcpu_dirty_limit_period", _count(), 500, new=True),
    Field("vcpu_dirty_limit", _count(), 1, new=True),
)
RAM = tuple(
    Field(name, _number(), 0)
    for name in (
        "transferred_bytes", "remaining_bytes", "total_bytes", "duplicate_pages", "skipped_pages",
        "normal_pages", "normal_bytes", "dirty_rate_pps", "transfer_rate_mbs", "iterations",
    )
)  # fmt: skip
PROGRESS = (
    Field("status", _text, "active"),
    Field("ram", lambda reader, raw, where: _object(reader, raw, where, RAM), {}),
    Field("now", _number(LATEST_S), 0),
    *(
        Field(name, _number(), 0)
        for name in ("duration", "downtime", "downtime_expected", "setup_time", "throttle_pcent")
    ),
    Field("dirty_limit_throttle_time_per_round", _number(), 0, new=True),
    Field("dirty_limit_ring_full_time", _number(), 0, new=True),
)
TIMING = (
    Field("tid", _count(), 0),
    Field("timestamp", _number(LATEST_S), 0),
    Field("value", _number(), 0),
)


def _entries(fields: tuple[Field, ...], most: int) -> Callable[[Reader, Json, str], object]:
    return lambda reader, raw, where: reader.sequence(
        raw, where, lambda each, at: _object(reader, each, at, fields), most
    )


REPORT = (
    Field("hardware", lambda reader, raw, where: _object(reader, raw, where, HARDWARE), {}),
    Field("scenario", lambda reader, raw, where: _object(reader, raw, where, SCENARIO), {}),
    Field("progress_history", _entries(PROGRESS, MAX_PROGRESS), []),
    Field("guest_timings", _entries(TIMING, MAX_TIMINGS), []),
    Field("qemu_timings", _entries(TIMING, MAX_TIMINGS), []),
    Field("vcpu_timings", _entries(TIMING, MAX_TIMINGS), []),
    Field(
        "result",
        lambda reader, raw, where: _object(
            reader, raw, where, (Field("success", _boolean, False),)
        ),
        {"success": False},
        new=True,
    ),
    Field("binary", _text, "qemu-system-x86_64"),
    Field("dst_host", _text, "localhost"),
    Field("kernel", _text, ""),
    Field("initrd", _text, ""),
    Field("transport", _text, "unix"),
    Field("sleep", _number(), 15),
)


def _object(reader: Reader, raw: Json, where: str, fields: tuple[Field, ...]) -> None:
    """Check an object. What is not in *fields* may be there: a later guestperf's."""
    given = reader.mapping(raw, where)
    if not isinstance(raw, Mapping):
        return
    for field in fields:
        at = join(where, field.name)
        if field.name in given:
            field.check(reader, given[field.name], at)
        elif not field.new:
            reader.refuse(at, "missing", f"{field.name} is missing", "give a whole report")


def looks_like_report(raw: object) -> bool:
    """Whether *raw* is meant to be a report of guestperf's."""
    return isinstance(raw, Mapping) and {"progress_history", "guest_timings"} <= raw.keys()


def read_report(text: str) -> Document:
    """The report in *text*, each of its fields checked.

    :raise InvalidInput: with a problem for each field that cannot be accepted; nothing of it
        is then to be used.
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(
            f"the report has more than {MAX_CHARACTERS:,} characters",
            field="report",
            code="too_long",
            remedy="import a report of a shorter run",
        )
    reader = Reader()
    try:
        raw = json.loads(
            text,
            object_pairs_hook=_object_of,
            parse_float=_finite,
            parse_constant=_finite,
        )
        _object(reader, raw, "", REPORT)
        whole = json.dumps(raw, ensure_ascii=False)
        whole.encode()  # half of a surrogate pair is no character
        if "\\u0000" in whole.replace("\\\\", ""):
            raise ValueError("a text has the character U+0000")
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"the report is not a JSON: {str(error)[:MAX_TOLD]}",
            field="report",
            code="not_json",
            remedy="give the file that guestperf wrote, as it is",
        ) from error
    reader.done("the report cannot be accepted")
    assert isinstance(raw, dict)
    return raw


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a number")
    return number


def _object_of(pairs: list[tuple[str, Json]]) -> Document:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name is there twice")
    return made


def in_form(report: Document, form: Form) -> Document:
    """*report* with the fields of *form*: those that the old one lacks are taken away, those
    that it has not yet are added with guestperf's own values for what is not used."""
    made = _fields_in_form(report, REPORT, form)
    made["hardware"] = _fields_in_form(made["hardware"], HARDWARE, form)
    made["scenario"] = _fields_in_form(made["scenario"], SCENARIO, form)
    made["progress_history"] = [
        _fields_in_form(entry, PROGRESS, form) for entry in made["progress_history"]
    ]
    return made


def _fields_in_form(given: Document, fields: tuple[Field, ...], form: Form) -> Document:
    """In guestperf's order; what it does not know comes last."""
    wanted = [field for field in fields if form is Form.NEW or not field.new]
    known = {field.name for field in fields}
    made = {field.name: given.get(field.name, field.default) for field in wanted}
    return made | {name: value for name, value in given.items() if name not in known}
