"""Traces, as a collector receives them: OTLP over HTTP, decoded."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from structlog.testing import capture_logs

from tests.support.served.api import running_api
from tests.support.simulated.fakes import VM
from tests.unit.hypervisor.libvirt.connections import Host
from vmtune import tracing
from vmtune.api.serving.traces import start_traces
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.connection import Link

VARIABLES = (
    "OTEL_SDK_DISABLED",
    "OTEL_TRACES_EXPORTER",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
)


class Collector(HTTPServer):
    """Takes spans."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[Any] = []
        self.resource: dict[str, str] = {}
        self.paths: set[str] = set()


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.add(self.path)
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            told = {a.key: a.value.string_value for a in of_resource.resource.attributes}
            self.server.resource |= told
            for scope in of_resource.scope_spans:
                self.server.spans += scope.spans
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def collecting() -> Iterator[Collector]:
    with Collector() as collector:
        thread = threading.Thread(target=collector.serve_forever, daemon=True)
        thread.start()
        yield collector
        collector.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _off(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    yield
    tracing.stop()


async def test_a_collector_receives_requests_jobs_and_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "_ENDS_WITHIN_S", 30.0)  # all is sent, on a busy machine too
    with collecting() as collector:
        address = f"http://127.0.0.1:{collector.server_port}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        start_traces("one")
        async with running_api(tmp_path) as api:
            await api.get(f"/vms/{VM}")
            body = {"vm": str(VM), "destination": "b"}
            started = await api.post("/migrations", body, expect=202)
            assert (await api.ended(started["id"]))["state"] == "completed"
        link = Link("test:///x", Host().open)
        await link.change(Connection.hostname)
        await link.ask(Connection.hostname)
        await link.close()
        tracing.stop()
    assert collector.paths == {"/v1/traces"}
    told = collector.resource
    assert (told["service.name"], told["service.instance.id"]) == ("vmtune", "one")
    spans = {span.name: span for span in collector.spans}
    assert any("/vms/{vm}" in name for name in spans), list(spans)
    assert "libvirt Connection.hostname" in spans
    phases = [f"migration: {phase}" for phase in ("prepare", "run", "finalize")]
    assert set(phases) <= spans.keys()
    for phase in phases:  # a record's id leads to its trace
        assert spans[phase].trace_id == UUID(started["id"]).bytes
    assert len([span for span in collector.spans if span.name.startswith("libvirt")]) == 1


@pytest.mark.parametrize(
    ("variables", "exporter"),
    [
        ({}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, ""),
        ({"OTEL_SDK_DISABLED": "True", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, ""),
        ({"OTEL_SDK_DISABLED": "false", "OTEL_TRACES_EXPORTER": "otlp"}, "otlp"),
    ],
)
def test_the_usual_variables_switch_it(variables: dict[str, str], exporter: str) -> None:
    assert tracing.wanted(variables) == exporter


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OTEL_TRACES_EXPORTER", "zipkin", "zipkin is not one of otlp, console, none"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"),
    ],
)
def test_what_there_is_not_is_told_and_the_service_goes_on(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv(name, value)
    with capture_logs() as lines:
        start_traces("")
    (line,) = lines
    assert (line["event"], line["log_level"]) == ("tracing disabled", "warning")
    assert said in line["reason"]
    assert tracing.provider() is None


def test_without_the_extra_one_warning_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    for module in ("opentelemetry.sdk.resources", "opentelemetry.sdk.trace"):
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with capture_logs() as lines:
        start_traces("")
    (line,) = lines
    assert "pip install 'vmtune[otel]'" in line["reason"]
    assert tracing.provider() is None
    with tracing.span("anything") as span:
        assert span is None
