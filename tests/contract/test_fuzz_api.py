"""A short, repeatable part of what ``python -m tests.fuzz.api`` does for twenty minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.api import ASKERS, free_port, fuzz, fuzzed_api, token_of

SHORT = ("--phases", "examples,fuzzing", "--max-examples", "3")


@pytest.mark.parametrize(("who", "scopes"), [asker[:2] for asker in ASKERS])
def test_no_answer_is_one_that_the_document_does_not_tell(
    who: str, scopes: list[str] | None, tmp_path: Path
) -> None:
    port = free_port()
    with fuzzed_api(tmp_path, port) as api:
        ended = fuzz(f"http://127.0.0.1:{port}", token_of(api, scopes), *SHORT)
    assert ended.returncode == 0, f"as {who}: {ended.stdout[-8000:]}{ended.stderr}"
    assert "Selected" in ended.stdout
