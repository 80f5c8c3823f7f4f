"""What the service's log says of a library's errors."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from vmtune.api.serving.logs import configure_logs


@pytest.fixture(autouse=True)
def _put_back() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def _fail(logger: str) -> None:
    try:
        raise RuntimeError("it was cancelled")
    except RuntimeError as error:
        logging.getLogger(logger).error("Exception in a workflow:", exc_info=error)


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_librarys_error_is_one_line_with_its_reason(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs(form, "info")
    _fail("dbos.core")
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "Exception in a workflow:" in said
    assert "RuntimeError: it was cancelled" in said
    assert "Traceback" not in said


def test_one_of_our_own_and_all_when_debugging_have_their_trace(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs("json", "info")
    _fail("vmtune.jobs")
    configure_logs("console", "debug")
    _fail("dbos")
    ours, theirs = capsys.readouterr().err.split("\n", 1)
    assert json.loads(ours)["exception"][0]["exc_value"] == "it was cancelled"
    assert "Traceback" in theirs
