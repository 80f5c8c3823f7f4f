"""What a tunable that is a text may say: a name, an address or the URI of one, a set of CPUs."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from vmtune.model.tunables.cpu_lists import canonical_set, canonical_sets

PLACEHOLDERS = ("{host}", "{hostname}")
"""What an address may name of the destination: its name in vmtune, and what it calls itself."""
_LONGEST = 253
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_WITH_PLACEHOLDERS = re.compile(
    r"(?:[A-Za-z0-9]|\{host\}|\{hostname\})(?:[A-Za-z0-9.-]|\{host\}|\{hostname\})*"
)
_TARGET = re.compile(r"[a-z][a-z0-9]{1,15}")
_URI = re.compile(r"tcp://(?P<address>\[[0-9A-Fa-f:.]+\]|[^:/\[\]]+)(?::(?P<port>[0-9]{1,5}))?/?")


class TextForm(StrEnum):
    """What a text is."""

    NAME = "name"
    ADDRESS = "address"
    URI = "uri"
    TARGETS = "targets"
    SET = "set"
    SETS = "sets"


@dataclass(frozen=True, slots=True)
class _Row:
    is_one: Callable[[str], bool]
    expects: str
    allowed: str
    canonical: Callable[[str], str] = str


def is_address(text: str) -> bool:
    """Whether *text* is an IP address without brackets, or a host name; with placeholders or not.

    >>> is_address("10.0.0.2"), is_address("{host}.migration.example"), is_address("10.0.0.300")
    (True, True, False)
    """
    if not text or len(text) > _LONGEST:
        return False
    if ":" in text or not re.search(r"[A-Za-z{]", text):
        try:
            ipaddress.ip_address(text)
        except ValueError:
            return False
        return "%" not in text
    return bool(_WITH_PLACEHOLDERS.fullmatch(text))


def split_uri(text: str) -> tuple[str, int | None] | None:
    """The address and the port of ``tcp://ADDRESS[:PORT]``; None where *text* is none.

    >>> split_uri("tcp://[fd00::2]:49300"), split_uri("tcp://b.example"), split_uri("b.example")
    (('fd00::2', 49300), ('b.example', None), None)
    """
    match = _URI.fullmatch(text)
    if match is None:
        return None
    bracketed = match["address"].startswith("[")
    address = match["address"].strip("[]")
    port = int(match["port"]) if match["port"] else None
    if not is_address(address) or bracketed != (":" in address):
        return None
    if port is not None and not 0 < port < 1 << 16:
        return None
    return address, port


def expand(text: str, host: str, hostname: str) -> str:
    """*text* with its placeholders filled in.

    >>> expand("tcp://{host}.migration.example", "rack7", "node7")
    'tcp://rack7.migration.example'
    """
    for placeholder, value in zip(PLACEHOLDERS, (host, hostname), strict=True):
        text = text.replace(placeholder, value)
    return text


def _is_name(text: str) -> bool:
    return len(text) <= _LONGEST and bool(_NAME.fullmatch(text))


def targets(text: str) -> list[str]:
    """The disks that *text* names.

    >>> targets("vda,vdb")
    ['vda', 'vdb']
    """
    return text.split(",")


def _are_targets(text: str) -> bool:
    named = targets(text)
    return len(set(named)) == len(named) and all(_TARGET.fullmatch(name) for name in named)


def _is(canonical: Callable[[str], str]) -> Callable[[str], bool]:
    """Whether *canonical* takes a text."""

    def is_one(text: str) -> bool:
        try:
            canonical(text)
        except ValueError:
            return False
        return len(text) <= _LONGEST_SETS

    return is_one


_LONGEST_SETS = 4096
_SET = "all, or numbers and ranges such as 0-3,8"
_WITH = "{host} and {hostname} are the destination's names"
_ROWS: Mapping[TextForm, _Row] = MappingProxyType(
    {
        TextForm.NAME: _Row(
            _is_name, "1 to 253 letters, digits, dots, dashes or underscores", "a name"
        ),
        TextForm.ADDRESS: _Row(
            is_address,
            "an IP address without brackets, or a host name",
            f"an IP address or a host name, without port; {_WITH}",
        ),
        TextForm.URI: _Row(
            lambda text: split_uri(text) is not None,
            "tcp://ADDRESS or tcp://ADDRESS:PORT, with an IPv6 address in brackets",
            f"tcp://ADDRESS or tcp://ADDRESS:PORT; {_WITH}",
        ),
        TextForm.TARGETS: _Row(
            _are_targets,
            "targets of disks with commas between, such as vda,vdb, each once",
            "targets of disks with commas between, such as vda,vdb",
        ),
        TextForm.SET: _Row(_is(canonical_set), _SET, _SET, canonical_set),
        TextForm.SETS: _Row(
            _is(canonical_sets),
            f"{_SET}, or one of these for each with / between",
            f"{_SET}, or one of these for each with / between, such as 2/3/4-5",
            canonical_sets,
        ),
    }
)
assert set(_ROWS) == set(TextForm), "a form without its row"


def is_form(form: TextForm, text: str) -> bool:
    """Whether *text* has the form."""
    return _ROWS[form].is_one(text)


def canonical(form: TextForm, text: str) -> str:
    """*text*, which has the form, as it reads back."""
    return _ROWS[form].canonical(text)


def expects(form: TextForm) -> str:
    """What a text of the form has to be, for an error."""
    return _ROWS[form].expects


def allowed(form: TextForm) -> str:
    """What a text of the form may be, for help."""
    return _ROWS[form].allowed
