"""XML from elsewhere, checked before it is parsed into a tree.

A document type can define entities that grow to gigabytes or that read files; deep nesting ends
in a recursion somewhere. libvirt writes neither, so what has them is not libvirt's.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.parsers import expat

from vmtune.errors import InvalidInput

MAX_BYTES = 4 << 20
MAX_DEPTH = 100
_MARKS = " }"


class _Refused(Exception):
    """Raised within expat's callbacks."""


def check_xml(text: str, what: str = "xml") -> str:
    """*text*, if it is XML that may be read.

    :param what: what the error names.
    :raise InvalidInput: it is no XML, has a document type, or is too large or too deep.
    """
    content = text.encode("utf-8", "surrogatepass")
    why = f"it has more than {MAX_BYTES >> 20} MiB" if len(content) > MAX_BYTES else ""
    why = why or _why_not(content)
    if why:
        raise InvalidInput(
            f"the XML cannot be read: {why}",
            field=what,
            code="xml_refused",
            remedy="give the XML of a domain as libvirt writes it",
        )
    return text


def _why_not(content: bytes) -> str:
    depth = 0

    def enter(_name: str, _attributes: Mapping[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise _Refused(f"it is nested more than {MAX_DEPTH} deep")

    def leave(_name: str) -> None:
        nonlocal depth
        depth -= 1

    def has_type(*_: object) -> None:
        raise _Refused("it has a document type")

    def declare(_prefix: str | None, uri: str | None) -> None:
        # Python's own readers put these between a name and its namespace, and lose their way.
        if uri and any(mark in uri for mark in _MARKS):
            raise _Refused("a namespace's name has a space or a brace in it")

    parser = expat.ParserCreate("utf-8", _MARKS[0])
    parser.StartNamespaceDeclHandler = declare
    parser.StartElementHandler = enter
    parser.EndElementHandler = leave
    parser.StartDoctypeDeclHandler = has_type
    try:
        parser.Parse(content, True)
    except _Refused as error:
        return str(error)
    except expat.ExpatError as error:
        return f"{expat.ErrorString(error.code)} in line {error.lineno}"
    return ""
