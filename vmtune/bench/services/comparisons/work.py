"""Comparisons as they are asked for over the API: computed and written where heavy work is done."""

from __future__ import annotations

import json

from vmtune.bench.report.report import to_document
from vmtune.bench.report.words import result_texts
from vmtune.bench.services.comparisons.comparisons import Asked, ComparisonService
from vmtune.bench.services.comparisons.files import ReportFormat, report_file
from vmtune.bench.services.runs.files import RunFile
from vmtune.documents.dataclass_json import to_json
from vmtune.storage import Store


def comparison_json(store: Store, asked: Asked) -> bytes:
    """A comparison as JSON.

    :raise InvalidInput: it is not said what is compared, or there is nothing to compare.
    :raise NotFound: no such campaign or reference.
    """
    report = ComparisonService(store).compared(asked)
    document = {**to_document(report), "texts": to_json(result_texts(report))}
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def comparison_file(store: Store, asked: Asked, format: ReportFormat) -> RunFile:
    """Likewise, as a file."""
    return report_file(ComparisonService(store).compared(asked), format)
