"""The OpenAPI document: what FastAPI makes of the routes, made good for generators of clients.

Every schema has a short name of its own, every enumeration the names of its words, and
:mod:`vmtune.api.described` adds how callers authenticate. :func:`as_3_0` is the same in OpenAPI
3.0, for generators that do not know 3.1.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from vmtune.api.described import described

Json = Any  # any: JSON

SHORT_NAMES: Mapping[str, str] = {
    "vmtune__model__access__scopes__Kind": "IdentityKind",
    "vmtune__model__tunables__tunable__Kind": "TunableKind",
    "vmtune__model__host__pools__Design": "PoolDesign",
    "vmtune__stats__model__Design": "ComparisonDesign",
    "vmtune__api__schemas__bench__runs__SilenceView": "SilenceView",
    "vmtune__api__schemas__contact__SilenceView": "HostSilenceView",
    "Form": "ReferenceForm",
}
"""Schemas whose class has a name that others have too."""
_REF = "#/components/schemas/"


def openapi_of(app: FastAPI, *models: type[BaseModel]) -> dict[str, Json]:
    """The document.

    :param models: those that no route names as its answer.
    """
    document = get_openapi(
        title=app.title, summary=app.summary, version=app.version, routes=app.routes
    )
    schemas: dict[str, Json] = document["components"]["schemas"]
    for model in models:
        found = model.model_json_schema(ref_template=_REF + "{model}")
        schemas.update(found.pop("$defs", {}))
        schemas[model.__name__] = found
    document = _renamed(document)
    _title_operations(document["paths"])
    _name_words(document["components"]["schemas"])
    return described(document)


def _renamed(document: dict[str, Json]) -> dict[str, Json]:
    """*document* with the short names."""
    schemas: dict[str, Json] = document["components"]["schemas"]
    unknown = [old for old in SHORT_NAMES if old not in schemas]
    taken = [new for old, new in SHORT_NAMES.items() if new in schemas and new not in SHORT_NAMES]
    assert not unknown and not taken, f"names of schemas: unknown {unknown}, taken {taken}"
    text = json.dumps(document)
    for old, new in SHORT_NAMES.items():
        text = text.replace(f'"{_REF}{old}"', f'"{_REF}{new}"')
    renamed: dict[str, Json] = json.loads(text)
    named = {SHORT_NAMES.get(name, name): each for name, each in schemas.items()}
    for name, each in renamed["components"]["schemas"].items():
        short = SHORT_NAMES.get(name, name)
        named[short] = {**each, "title": short}
    renamed["components"]["schemas"] = dict(sorted(named.items()))
    return renamed


_CAPITALS = {"vm": "VM", "vms": "VMs", "cpu": "CPU", "oidc": "OIDC", "qemus": "QEMUs"}


def _title_operations(paths: Mapping[str, dict[str, Json]]) -> None:
    """Write each operation's summary as a sentence: "Apply to VM" for "Apply To Vm"."""
    for path in paths.values():
        for operation in path.values():
            words = [_CAPITALS.get(word, word) for word in operation["summary"].lower().split()]
            operation["summary"] = " ".join([words[0][:1].upper() + words[0][1:], *words[1:]])


def _name_words(schemas: Mapping[str, dict[str, Json]]) -> None:
    """Give each enumeration the names that its words have in Python: ``AT_NEXT_START`` reads better
    than what a generator makes of "at the VM's next start"."""
    known: dict[tuple[str, ...], list[str]] = {}
    for kind in _enumerations(StrEnum):
        known[tuple(word.value for word in kind)] = [word.name for word in kind]
    for schema in schemas.values():
        if "enum" in schema:
            schema["x-enum-varnames"] = known[tuple(schema["enum"])]


def _enumerations(kind: type[StrEnum]) -> Iterator[type[StrEnum]]:
    for each in kind.__subclasses__():
        yield each
        yield from _enumerations(each)


def as_3_0(document: Mapping[str, Json]) -> dict[str, Json]:
    """*document*, of OpenAPI 3.1, in OpenAPI 3.0.3: nothing that a client needs is lost."""
    older: dict[str, Json] = _older(copy.deepcopy(dict(document)))
    older["openapi"] = "3.0.3"
    older["info"].pop("summary", None)
    return older


def _older(node: Json) -> Json:
    if isinstance(node, list):
        return [_older(each) for each in node]
    if not isinstance(node, dict):
        return node
    found = {key: _older(value) for key, value in node.items()}
    variants = found.get("anyOf")
    if isinstance(variants, list) and {"type": "null"} in variants:
        rest = [each for each in variants if each != {"type": "null"}]
        del found["anyOf"]
        found["nullable"] = True
        if len(rest) > 1:
            found["anyOf"] = rest
        elif "$ref" in rest[0]:
            found["allOf"] = rest
        else:
            found = {**rest[0], **found}
    if "const" in found:
        found["enum"] = [found.pop("const")]
    for bound in ("Minimum", "Maximum"):
        limit = found.get(f"exclusive{bound}")
        if isinstance(limit, int | float) and not isinstance(limit, bool):
            found[f"exclusive{bound}"] = True
            found[bound.lower()] = limit
    if isinstance(found.get("examples"), list):
        found["example"] = found.pop("examples")[0]
    if "prefixItems" in found:
        found["items"] = {"anyOf": found.pop("prefixItems")}
    if "$ref" in found and len(found) > 1:  # 3.0 ignores the neighbours of a reference
        found["allOf"] = [{"$ref": found.pop("$ref")}]
    return found
