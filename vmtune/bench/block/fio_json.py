"""fio's JSON: read into a record of what the benchmark needs, kept whole, and given back.

fio 3.0 and later, ``--output-format=json`` or ``json+``. Latencies are its completion latencies
(``clat_ns``), or the total ones where only those have percentiles (``lat_percentiles=1``). What
fio says of CPU time is its own, not that of the QEMU which it loads.

Read by hand and not by field types: which of fio's fields count depends on others, its releases
name them differently, and those that are not known are kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vmtune.documents.strict import Reader, join
from vmtune.errors import InvalidInput

MAX_CHARACTERS = 64 << 20
DIRECTIONS = ("read", "write", "trim")
MIXED = "mixed"
"""What fio calls all directions together (``unified_rw_reporting``)."""
_MAX_JOBS = 10_000
_MAX_TEXT = 10_000
_LARGEST = 1e18


@dataclass(frozen=True, slots=True)
class FioLatency:
    """How long requests took, in nanoseconds.

    :param kind: ``clat``: from submission to completion; ``lat``: and the submission itself.
    :param percentiles: by percent; empty where fio was run without them.
    """

    kind: str
    count: int
    min_ns: float
    max_ns: float
    mean_ns: float
    deviation_ns: float
    percentiles: Mapping[float, float]


@dataclass(frozen=True, slots=True)
class FioDirection:
    """What a job did in one direction.

    :param iops: over its own runtime, as fio computes it.
    :param latency: None where no request was completed.
    """

    direction: str
    requests: int
    iops: float
    bytes_per_s: float
    runtime_ms: int
    latency: FioLatency | None


@dataclass(frozen=True, slots=True)
class FioJob:
    """One job, or several that were reported as a group (``group_reporting``).

    :param error: fio's error number; 0 is none.
    :param options: as given to fio.
    :param directions: those in which there were requests; where fio reports them together
        only, one that is called mixed.
    :param mixed: all of them together, if fio was asked for that as well.
    :param runtime_ms: of all jobs of the group together; None where fio does not say.
    :param user_percent: share of it that fio's threads spent in user mode.
    """

    name: str
    error: int
    options: Mapping[str, str]
    directions: tuple[FioDirection, ...]
    runtime_ms: int | None
    user_percent: float
    system_percent: float
    mixed: FioDirection | None = None

    @property
    def requests(self) -> int:
        """In all directions."""
        return sum(each.requests for each in self.directions)

    @property
    def latency(self) -> FioLatency | None:
        """Of all its requests; None where fio reports only each direction, as percentiles of
        several cannot be put together."""
        if self.mixed is not None:
            return self.mixed.latency
        return self.directions[0].latency if len(self.directions) == 1 else None

    @property
    def iops(self) -> float:
        """In all directions."""
        return sum(each.iops for each in self.directions)


@dataclass(frozen=True, slots=True)
class FioReport:
    """A run of fio.

    :param document: fio's JSON, whole: what is not read here is not lost.
    :param messages: what fio printed before its JSON, such as why a job failed.
    """

    version: str
    jobs: tuple[FioJob, ...]
    document: Mapping[str, Any] = field(repr=False)  # any JSON: fio's
    messages: str = ""

    @property
    def failed(self) -> bool:
        """A job ended with an error, or none did anything: fio writes such a report, too, when
        it could not even connect."""
        return any(job.error for job in self.jobs) or not any(job.requests for job in self.jobs)

    @property
    def iops(self) -> float:
        """Of all jobs together."""
        return sum(job.iops for job in self.jobs)

    @property
    def requests(self) -> int:
        """Of all jobs together."""
        return sum(job.requests for job in self.jobs)

    @property
    def bytes_per_s(self) -> float:
        """Of all jobs together."""
        return sum(each.bytes_per_s for job in self.jobs for each in job.directions)

    @property
    def runtime_ms(self) -> int:
        """For how long it counted: the longest of any job."""
        found = [each.runtime_ms for job in self.jobs for each in job.directions]
        return max(found, default=0)

    @property
    def overall_latency(self) -> FioLatency | None:
        """Of all requests of all jobs, where fio reports one group of them."""
        return self.jobs[0].latency if len(self.jobs) == 1 else None

    def latency(self, direction: str) -> FioLatency | None:
        """The latencies of *direction*, where one job has them all; else None, as percentiles
        of several jobs cannot be put together."""
        found = [
            each.latency
            for job in self.jobs
            for each in job.directions
            if each.direction == direction and each.latency is not None
        ]
        return found[0] if len(found) == 1 else None


def read_fio(text: str) -> FioReport:
    """What fio printed.

    :raise InvalidInput: it is no report of fio 3, with a problem for each part that is not as
        fio writes it.
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(
            f"the report has more than {MAX_CHARACTERS:,} characters",
            field="fio",
            code="too_long",
            remedy="leave out its logs and histograms",
        )
    messages, document = _split(text)
    return fio_report(document, messages)


def fio_report(document: object, messages: str = "") -> FioReport:
    """What fio's JSON says.

    :raise InvalidInput: it is no report of fio 3.
    """
    reader = Reader()
    given = reader.mapping(document, "fio")
    version = reader.text(given.get("fio version", ""), "fio.fio version", _MAX_TEXT)
    if not version.startswith("fio-"):
        reader.refuse("fio.fio version", "not_fio", "it does not say which fio wrote it",
                      "use fio's --output-format=json")  # fmt: skip
    jobs = reader.sequence(
        given.get("jobs", []), "fio.jobs", lambda raw, where: _job(reader, raw, where), _MAX_JOBS
    )
    if not jobs and not reader.problems:
        reader.refuse("fio.jobs", "missing", "there are no jobs", "give fio a job")
    reader.done("this is not a report of fio")
    return FioReport(version, jobs, given, messages)


def _split(text: str) -> tuple[str, object]:
    """What stands before the JSON, and the JSON."""
    begin = 0 if text.startswith("{") else text.find("\n{") + 1
    try:
        return text[:begin].strip(), json.loads(text[begin:], parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"it is not a JSON: {error}",
            field="fio",
            code="not_json",
            remedy="use fio's --output-format=json, and let it come to its end",
        ) from error


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def _job(reader: Reader, raw: object, where: str) -> FioJob:
    parts = reader.mapping(raw, where)
    options = reader.mapping(parts.get("job options", {}), join(where, "job options"))
    separate = [name for name in DIRECTIONS if name in parts]
    together = [MIXED] if MIXED in parts else []
    directions = [
        _direction(reader, name, parts[name], join(where, name)) for name in separate or together
    ]
    both = separate and together
    if not directions:
        reader.refuse(where, "missing", "it has neither read nor write nor trim",
                      "use fio's --output-format=json")  # fmt: skip
    return FioJob(
        name=reader.text(parts.get("jobname", ""), join(where, "jobname"), _MAX_TEXT),
        error=_integer(reader, parts, "error", where),
        options={
            name: reader.text(value, join(where, f"job options.{name}"), _MAX_TEXT)
            for name, value in options.items()
        },
        directions=tuple(each for each in directions if each.requests),
        runtime_ms=_integer(reader, parts, "job_runtime", where)
        if "job_runtime" in parts
        else None,
        user_percent=_number(reader, parts, "usr_cpu", where),
        system_percent=_number(reader, parts, "sys_cpu", where),
        mixed=_direction(reader, MIXED, parts[MIXED], join(where, MIXED)) if both else None,
    )


def _direction(reader: Reader, name: str, raw: object, where: str) -> FioDirection:
    parts = reader.mapping(raw, where)
    requests = _integer(reader, parts, "total_ios", where)
    return FioDirection(
        direction=name,
        requests=requests,
        iops=_number(reader, parts, "iops", where),
        bytes_per_s=_number(reader, parts, "bw_bytes", where),
        runtime_ms=_integer(reader, parts, "runtime", where),
        latency=_latency(reader, parts, where) if requests else None,
    )


def _latency(reader: Reader, parts: Mapping[str, object], where: str) -> FioLatency | None:
    kinds = [kind for kind in ("clat", "lat") if f"{kind}_ns" in parts]
    if not kinds:
        if "clat" in parts or "lat" in parts:
            reader.refuse(join(where, "clat_ns"), "too_old", "this fio is older than 3.0",
                          "use fio 3.0 or later")  # fmt: skip
        return None  # disable_lat and disable_clat
    read = {kind: reader.mapping(parts[f"{kind}_ns"], join(where, f"{kind}_ns")) for kind in kinds}
    kind = next((each for each in kinds if "percentile" in read[each]), kinds[0])
    found = {"N": parts.get("total_ios"), **read[kind]}  # early fio 3 has no N
    place = join(where, f"{kind}_ns")
    return FioLatency(
        kind=kind,
        count=_integer(reader, found, "N", place),
        min_ns=_number(reader, found, "min", place),
        max_ns=_number(reader, found, "max", place),
        mean_ns=_number(reader, found, "mean", place),
        deviation_ns=_number(reader, found, "stddev", place),
        percentiles=_percentiles(reader, found.get("percentile", {}), join(place, "percentile")),
    )


def _percentiles(reader: Reader, raw: object, where: str) -> Mapping[float, float]:
    percentiles: dict[float, float] = {}
    for name, value in reader.mapping(raw, where).items():
        place = join(where, str(name))
        try:
            percent = float(name)
        except ValueError:
            percent = -1
        if not 0 <= percent <= 100:
            reader.refuse(place, "invalid_value", f"{name[:40]!r} is not a percentile",
                          "0 to 100 are")  # fmt: skip
        percentiles[percent] = reader.number(value, place, 0, _LARGEST)
    return dict(sorted(percentiles.items()))


def _integer(reader: Reader, parts: Mapping[str, object], name: str, where: str) -> int:
    return reader.integer(parts.get(name), join(where, name), 0, int(_LARGEST))


def _number(reader: Reader, parts: Mapping[str, object], name: str, where: str) -> float:
    return reader.number(parts.get(name), join(where, name), 0, _LARGEST)
