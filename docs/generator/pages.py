"""The generated pages, each by its path below docs/."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from docs.generator import cli, http_api, published, releases, settings, tables, virsh

PAGES: Mapping[str, Callable[[], str]] = {
    "reference/tunables.md": tables.tunables,
    "reference/findings.md": tables.findings,
    "reference/benchmark-metrics.md": tables.benchmark_metrics,
    "reference/service-metrics.md": tables.service_metrics,
    "reference/settings.md": settings.page,
    "reference/virsh-options.md": virsh.page,
    "reference/published-tables.md": published.page,
    "reference/releases.md": releases.page,
    "reference/cli.md": cli.page,
    "reference/http-api.md": http_api.page,
}
