"""Fuzz the HTTP API: schemathesis with all its checks against a served instance over fake QEMUs.

Asked over TCP with a token that allows everything, with one that may only read, and with none.
The checks: no answer of 500 or more, none with a status, type, header or body that the OpenAPI
document does not tell, bad data refused, good data accepted, authentication never ignored.

    python -m tests.fuzz.api [MINUTES]

Ends with 1 if a check failed; the report says how to repeat each failure.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from tests.support.served.api import Api, admin_token
from tests.support.served.served_api import served_api
from vmtune.api.openapi import document

MINUTES = 20
ASKERS = (("admin", ["admin"], 0.6), ("reader", ["read"], 0.2), ("nobody", None, 0.2))
"""Who asks, with which scopes, for which share of the time."""
REPORT_CHARACTERS = 40_000
SEED = 20261121
CONFIG = Path(__file__).with_name("schemathesis.toml")
STREAMS = "/events"
"""Never ends, so nobody can check its answer."""
UNTHROTTLED = "vmtune.services.access.tokens._FREE_ADDRESS"
"""The fuzzer asks each operation without a token and with a wrong one; after ten such failures its
address would have to wait, and no answer would tell anything but that."""


@contextmanager
def fuzzed_api(folder: Path, port: int) -> Iterator[Api]:
    """The API over TCP at *port*; any number of failed authentications is free."""
    with (
        patch(UNTHROTTLED, sys.maxsize),
        served_api(folder, folder / "s.sock", {"listen_port": port}) as api,
    ):
        yield api


def free_port() -> int:
    """A TCP port of the loopback that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def fuzz(url: str, token: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Run schemathesis; its exit status is 0 where every check held.

    :param token: empty for none. Then a method that a path does not take is answered as any
        other is, 401, for nobody is told what there is.
    :param more: further options.
    """
    program = Path(sys.executable).with_name("schemathesis")
    with tempfile.TemporaryDirectory(prefix="vmtune-fuzz-") as folder:
        schema = Path(folder, "openapi.json")
        schema.write_text(document())
        command = [
            *(str(program), "--config-file", str(CONFIG), "run", str(schema), "--url", url),
            *("--checks", "all", "--seed", str(SEED), "--continue-on-failure", "--no-color"),
            *("--exclude-path-regex", f"{STREAMS}$", "--request-timeout", "20", *more),
        ]
        if token:
            command += ["--header", f"Authorization: Bearer {token}"]
        else:
            command += ["--exclude-checks", "unsupported_method"]
        return subprocess.run(command, cwd=folder, text=True, check=False, capture_output=True)


def token_of(api: Api, scopes: list[str] | None) -> str:
    """A token of these scopes; empty for None."""
    return asyncio.run(admin_token(api.container, scopes=scopes)) if scopes else ""


def main() -> int:
    """All three, one after the other; the time is divided among them."""
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES
    failed = []
    for who, scopes, share in ASKERS:
        with tempfile.TemporaryDirectory(prefix="vmtune-fuzz-") as folder:
            at = Path(folder)
            port = free_port()
            with fuzzed_api(at, port) as api:
                token = token_of(api, scopes)
                seconds = round(minutes * share * 60)
                print(f"as {who}, {seconds} s", flush=True)
                ended = fuzz(f"http://127.0.0.1:{port}", token, "--max-time", str(seconds))
                print(ended.stdout[-REPORT_CHARACTERS:], ended.stderr, flush=True)
                if ended.returncode:
                    failed.append(who)
    print(f"failed: {', '.join(failed)}" if failed else "every check held")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
