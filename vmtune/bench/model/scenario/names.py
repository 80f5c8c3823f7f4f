"""Names of scenarios: ``family/variant``. A name stands for one setup, so that runs of one name can
be compared."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}/[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
NAME_FORM = "write family/variant in letters, digits, dots, dashes and underscores"
_DIGITS = 6


def digest(setup: Mapping[str, object]) -> str:
    """The same for the same setup; JSON."""
    return hashlib.sha256(json.dumps(setup, sort_keys=True).encode()).hexdigest()[:_DIGITS]


def usual_name(
    kind: str, cell: str, parts: Mapping[str, object], usual: Mapping[str, object]
) -> str:
    """``block/null-co-randread-4k-64-1``: what a combination is called.

    :param parts: what else it consists of; where that is not *usual*, a digest of it is added.
    """
    name = f"{kind}/{cell}"
    other = {each: value for each, value in parts.items() if value != usual[each]}
    return f"{name}.{digest(other)}" if other else name
