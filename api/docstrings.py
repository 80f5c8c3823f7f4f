"""Docstrings of classes, as the OpenAPI document tells them: those that are schemas as they are say
what each field means as ``:param name:``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_PARAMETER = re.compile(r"^:(?:param (\w+)|\w+ ?\w*):", re.MULTILINE)
_ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")
_NAME = re.compile(r"(?<![\w*])\*(\w+)\*(?![\w*])")


@dataclass(frozen=True, slots=True)
class Parted:
    """What a docstring says, in Markdown.

    :param summary: of the class.
    :param parameters: of each field that it names, a sentence.
    """

    summary: str
    parameters: Mapping[str, str]


def parted(docstring: str) -> Parted:
    """*docstring* in its parts."""
    found = list(_PARAMETER.finditer(docstring))
    ends = [match.start() for match in found[1:]] + [len(docstring)]
    parameters = {
        match[1]: _sentence(docstring[match.end() : end])
        for match, end in zip(found, ends, strict=False)
        if match[1]
    }
    summary = docstring[: found[0].start()] if found else docstring
    return Parted(_markdown(summary).strip(), parameters)


def _sentence(text: str) -> str:
    told = " ".join(_markdown(text).split())
    return told[:1].upper() + told[1:]


def _markdown(text: str) -> str:
    text = _ROLE.sub(r"`\1`", text.replace("``", "`"))
    return re.sub(r"\bNone\b", "null", _NAME.sub(r"`\1`", text))
