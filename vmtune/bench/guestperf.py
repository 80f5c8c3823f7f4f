"""Reports of QEMU's guestperf: in, out, and in both forms."""

from vmtune.bench.guestperf_export import export_report
from vmtune.bench.guestperf_format import Form, looks_like_report
from vmtune.bench.guestperf_import import NAME, import_report

__all__ = ["NAME", "Form", "export_report", "import_report", "looks_like_report"]
