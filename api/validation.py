"""What the schema refuses, as problems that name the field, the reason and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from fastapi import Depends, Request
from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel

from vmtune.documents.strict import short
from vmtune.errors import InvalidInput, Problem, first_problems

_CHOICE = ("enum", "literal_error")
_LONGEST = 60


def malformed_json(error: RequestValidationError) -> str:
    """Why the body is no JSON; empty where it is."""
    for found in error.errors():
        if found["type"] == "json_invalid":
            return f"{found['ctx']['error']} at character {found['loc'][-1]}"
    return ""


def problems_of_validation(request: Request, error: RequestValidationError) -> list[Problem]:
    """One problem for each thing that the schema refuses, of the first that there are."""
    known = _body_fields(request.scope.get("route"))
    return list(dict.fromkeys(first_problems(error.errors(), lambda one: _problem(one, known))))


def _problem(found: Mapping[str, Any], known: Sequence[str]) -> Problem:  # any: pydantic's
    path = [str(part)[:_LONGEST] for part in found["loc"][1:]]
    field = ".".join(path) or "body"
    kind = str(found["type"])
    if kind == "extra_forbidden":
        return unknown_name(path[-1], field, known if len(path) == 1 else (), "field")
    if kind == "missing":
        what = "a JSON object" if field == "body" else field
        return Problem(field, "missing", f"{what} is missing", "add it")
    given = short(found.get("input"), _LONGEST)
    if kind in _CHOICE:
        expected = str(found["ctx"]["expected"])
        return Problem(field, "not_a_choice", f"{given} is unknown", f"use {expected}")
    reason = str(found["msg"]).replace("Input should", "it should").replace("String", "it")
    return Problem(field, "invalid_value", f"{reason}, not {given}")


def unknown_name(name: str, field: str, known: Sequence[str], what: str) -> Problem:
    """The problem of a field or parameter that there is not, with the nearest that are."""
    near = difflib.get_close_matches(name[:_LONGEST], known, n=3, cutoff=0.5)
    if near:
        hint = f"did you mean {', '.join(near)}?"
    else:
        hint = f"use one of {', '.join(known)}" if known else "remove it"
    return Problem(field, f"unknown_{what}", f"unknown {what} {name[:_LONGEST]!r}", hint)


def _body_fields(route: object) -> list[str]:
    """The fields of the body that a route takes."""
    if not isinstance(route, APIRoute) or route.body_field is None:
        return []
    annotation = route.body_field.field_info.annotation
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return list(kind.model_fields)
    return []


def _query_params(dependant: Dependant) -> Iterator[ModelField]:
    """The query parameters of a route and of its dependencies."""
    yield from dependant.query_params
    for other in dependant.dependencies:
        yield from _query_params(other)


async def _ignore_unknown() -> None:
    """Says that a route ignores parameters that it does not know: another party sends them."""


UNKNOWN_PARAMETERS_IGNORED = Depends(_ignore_unknown)


async def check_query(request: Request) -> None:
    """Refuse query parameters that the route does not have: a misspelt filter would let
    everything through. (Asynchronous, so that it costs no thread.)

    :raise InvalidInput: naming each.
    """
    route = request.scope.get("route")
    if not request.query_params or not isinstance(route, APIRoute):
        return
    if any(each.call is _ignore_unknown for each in route.dependant.dependencies):
        return
    known = [parameter.alias for parameter in _query_params(route.dependant)]
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        problems = first_problems(
            unknown, lambda name: unknown_name(name, name[:_LONGEST], known, "parameter")
        )
        raise InvalidInput("a query parameter is unknown", problems=problems)
