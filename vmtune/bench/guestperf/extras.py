"""The fields of a guestperf report that a run has none for: preserved, and restored when exported.

It is found by comparing the report with the one that would be made of the run. A patch is JSON:
``{"be": value}``, or for objects ``{"in": {name: patch}, "drop": [names]}``, or for lists of the
same length ``{"at": {index: patch}}``.
"""

from __future__ import annotations

from typing import Any

Json = Any  # any JSON
Patch = dict[str, Json]


def patch_between(made: Json, original: Json) -> Patch | None:
    """What makes *original* of *made*; None where they are the same, 1, 1.0 and true being
    three things."""
    if type(made) is not type(original):
        return {"be": original}
    if isinstance(made, dict):
        inner = {
            name: patch
            for name, value in original.items()
            if (patch := patch_between(made[name], value) if name in made else {"be": value})
        }
        dropped = [name for name in made if name not in original]
        parts = {"in": inner, "drop": dropped}
        return {name: part for name, part in parts.items() if part} or None
    if isinstance(made, list) and len(made) == len(original):
        pairs = enumerate(zip(made, original, strict=True))
        inner = {str(i): patch for i, pair in pairs if (patch := patch_between(*pair))}
        return {"at": inner} if inner else None
    return None if made == original else {"be": original}


def patched(made: Json, patch: Patch | None) -> Json:
    """The original that :func:`patch_between` compared *made* with."""
    if not patch:
        return made
    if "be" in patch:
        return patch["be"]
    if "at" in patch:
        return [patched(each, patch["at"].get(str(i))) for i, each in enumerate(made)]
    dropped = set(patch.get("drop", ()))
    inner: dict[str, Patch] = patch.get("in", {})
    copied = {n: patched(value, inner.get(n)) for n, value in made.items() if n not in dropped}
    return copied | {name: part["be"] for name, part in inner.items() if name not in made}
