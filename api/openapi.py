"""Writes api/openapi.json, from which clients are generated, or checks that it is current.

python -m vmtune.api.openapi [--check]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from vmtune.api.main import create_app
from vmtune.config.settings import Settings

FILE = Path(__file__).with_name("openapi.json")


def document() -> str:
    """The OpenAPI document of this version, as text."""
    return json.dumps(create_app(Settings()).openapi(), indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write, or check; the exit code."""
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    current = document()
    if not arguments:
        FILE.write_text(current)
        return 0
    if not FILE.exists() or FILE.read_text() != current:
        print(f"{FILE} is not current: run `make openapi` and commit it", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
