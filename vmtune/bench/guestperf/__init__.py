"""Reports of QEMU's guestperf: in, out, and in both forms."""

from vmtune.bench.guestperf.exporting import export_report
from vmtune.bench.guestperf.format import Form, looks_like_report
from vmtune.bench.guestperf.importing import NAME, import_report

__all__ = ["NAME", "Form", "export_report", "import_report", "looks_like_report"]
