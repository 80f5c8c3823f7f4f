"""Names that are near to one that is not there: what the user may have meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

from vmtune.client.connection.http import Client
from vmtune.errors import Problem, VmtuneError

_UNKNOWN = re.compile(r"there is no (host|profile) named (.+)")
_PATHS = {"host": "/hosts", "profile": "/profiles"}
_LOOKED_AT = 2000
_MOST = 3


def near(name: str, names: Iterable[str]) -> str:
    """``did you mean web1 or web2?``; empty where no name is near."""
    known = list(dict.fromkeys(names))
    folded = {each.casefold(): each for each in known}
    found = [folded[each] for each in get_close_matches(name.casefold(), folded, _MOST, 0.6)]
    found += [each for each in known if name.casefold() in each.casefold() and each not in found]
    found = found[:_MOST]
    if not found:
        return ""
    *others, last = found
    return f"did you mean {' or '.join(filter(None, (', '.join(others), last)))}?"


def with_near_names(error: VmtuneError, client: Client) -> VmtuneError:
    """*error*; where the service knows no host or profile of a name, its remedy has near ones."""
    problems = [_suggested(problem, client) for problem in error.problems]
    if problems != list(error.problems):
        error.problems = tuple(problems)
    return error


def _suggested(problem: Problem, client: Client) -> Problem:
    match = _UNKNOWN.fullmatch(problem.message)
    if match is None:
        return problem
    try:
        rows = islice(client.items(_PATHS[match[1]]), _LOOKED_AT)
        hint = near(match[2], (str(row["name"]) for row in rows))
    except VmtuneError:
        return problem
    remedy = "; ".join(filter(None, (hint, problem.remedy)))
    return Problem(problem.field, problem.code, problem.message, remedy)
