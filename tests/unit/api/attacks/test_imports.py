"""Imports are read elsewhere, one at a time."""

from __future__ import annotations

import json
import time

import pytest

from tests.unit.api.attacks.conftest import Victim
from vmtune.bench.services.runs import import_process, importing

pytestmark = pytest.mark.integration


def _head(length: int, token: str) -> bytes:
    return (
        f"POST /api/v1/runs/import HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def test_one_file_is_read_at_a_time(victim: Victim) -> None:
    token = victim.tokens["bench"]
    with victim.tcp.connect() as first:
        first.sendall(_head(1000, token) + b"{")
        until = time.monotonic() + 10
        lock = victim.api.container.runs._importer._reading
        while not lock.locked() and time.monotonic() < until:
            time.sleep(0.01)
        second = victim.tcp.ask("POST", "/runs/import", {}, token)
        assert (second.status, second.codes) == (409, ["import_running"])
    while lock.locked() and time.monotonic() < until:  # who hangs up holds nobody up
        time.sleep(0.01)
    assert victim.tcp.ask("POST", "/runs/import", {}, token).status == 422


def test_the_service_answers_while_a_file_is_read(victim: Victim) -> None:
    """No parser holds the service's loop: the body of 20 MB is never JSON in this process."""
    token = victim.tokens["bench"]
    body = b'{"x": [' + b"[]," * 7_000_000 + b"[]]}"
    with victim.tcp.connect() as one:
        one.sendall(_head(len(body), token) + body)
        answered = 0
        one.settimeout(0.001)
        while True:
            assert victim.tcp.ask("GET", "/live").status == 204
            answered += 1
            try:
                reply = one.recv(10_000)
            except TimeoutError:
                continue
            break
    assert reply.startswith(b"HTTP/1.1 422"), reply
    assert answered > 3


@pytest.mark.parametrize(
    ("body", "code"),
    [(b"{", "not_json"), (b"[]", "invalid_input"), (b"[" * 100_000, "not_json"),
     (b'"\xff"', "not_json"), (b'{"a": 1}', "missing")],
)  # fmt: skip
def test_what_is_no_run_is_refused(victim: Victim, body: bytes, code: str) -> None:
    reply = victim.tcp.ask("POST", "/runs/import?name=a%00b", body, victim.tokens["bench"])
    assert reply.status == 422
    assert code in reply.codes


def test_what_takes_too_much_memory_is_refused(
    victim: Victim, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "from vmtune.bench.services.runs import import_process as it;"
        "from vmtune.services.heavy import process;"
        "process.MAX_MEMORY_BYTES = 700 << 20; it.main()"
    )
    command = (importing._COMMAND[0], "-c", program)
    monkeypatch.setattr(importing, "_COMMAND", command)
    body = b'{"x": [' + b"[]," * 9_000_000 + b"[]]}"
    reply = victim.tcp.ask("POST", "/runs/import", body, victim.tokens["bench"])
    assert (reply.status, reply.codes) == (422, ["too_large_to_read"])


def test_a_run_may_be_large_in_its_series_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.dumps({"format": "vmtune run", "version": 1, "run": {"x": "y"}}).encode()
    with pytest.raises(import_process.InvalidInput):
        import_process.read(document, "")
