"""Writes api/openapi.json, from which clients are generated, and the same in OpenAPI 3.0; or checks
that both are current.

python -m vmtune.api.openapi [--check]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from vmtune.api.document import as_3_0
from vmtune.api.main import create_app
from vmtune.config.settings import Settings

FILE = Path(__file__).with_name("openapi.json")
FILE_3_0 = Path(__file__).with_name("openapi-3.0.json")


def document() -> str:
    """The OpenAPI document of this version, as text."""
    return _text(create_app(Settings()).openapi())


def document_3_0() -> str:
    """The same in OpenAPI 3.0."""
    return _text(as_3_0(json.loads(document())))


def _text(openapi: object) -> str:
    return json.dumps(openapi, indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write, or check; the exit code."""
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    current = {FILE: document(), FILE_3_0: document_3_0()}
    for file, text in current.items():
        if not arguments:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            print(f"{file} is not current: run `make openapi` and commit it", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
