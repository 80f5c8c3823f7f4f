"""Addresses of hosts that vmtune passes on to libvirt, checked before they are.

libvirt hands parts of a URI to other programs: the remote side of ``qemu+ssh`` runs a shell, and
``socket`` is pasted into its command line unquoted where ``proxy=netcat``
(src/rpc/virnetsocket.c). So each parameter is unquoted first, as libvirt does it, and has to
consist of the few characters that its meaning needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from urllib.parse import unquote

from vmtune.errors import InvalidInput
from vmtune.model.shown import shown

_URI = re.compile(
    r"(?P<scheme>qemu(?:\+(?:unix|tcp|ssh|tls|libssh|libssh2))?|qmp\+unix)://"
    r"(?:(?P<user>[A-Za-z0-9._][A-Za-z0-9._-]*)@)?"
    r"(?P<server>(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?)?"
    r"(?P<path>/[A-Za-z0-9._/-]*)(?:\?(?P<query>[A-Za-z0-9=&_./,:%+-]*))?"
)
_ADDRESS = re.compile(r"[A-Za-z0-9\[][A-Za-z0-9._:\[\]-]{0,252}")
_PATH = re.compile(r"(?:/[A-Za-z0-9._-]+)+")
_PRIORITY = re.compile(r"[A-Za-z0-9@][A-Za-z0-9@:+.-]{0,200}")


def _is_path(value: str) -> bool:
    return bool(_PATH.fullmatch(value)) and ".." not in value.split("/")


def _one_of(*choices: str) -> Callable[[str], bool]:
    return lambda value: value in choices


def _some_of(*choices: str) -> Callable[[str], bool]:
    return lambda value: set(value.split(",")) <= set(choices)


_SWITCH = _one_of("0", "1")
_PARAMETERS: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "socket": (_is_path, "an absolute path of letters, digits, '.', '_' and '-'"),
    "mode": (_one_of("auto", "direct", "legacy"), "auto, direct or legacy"),
    "proxy": (_one_of("auto", "native", "netcat"), "auto, native or netcat"),
    "keyfile": (_is_path, "an absolute path of letters, digits, '.', '_' and '-'"),
    "known_hosts": (_is_path, "an absolute path of letters, digits, '.', '_' and '-'"),
    "known_hosts_verify": (_one_of("normal", "auto", "ignore"), "normal, auto or ignore"),
    "sshauth": (_some_of("agent", "privkey"), "agent, privkey or both with a comma"),
    "no_tty": (_SWITCH, "0 or 1"),
    "no_verify": (_SWITCH, "0 or 1"),
    "no_sanity": (_SWITCH, "0 or 1"),
    "pkipath": (_is_path, "an absolute path of letters, digits, '.', '_' and '-'"),
    "tls_priority": (
        lambda value: bool(_PRIORITY.fullmatch(value)),
        "a GnuTLS priority string of letters, digits, '@', ':', '+', '.' and '-'",
    ),
}
"""libvirt takes more parameters: of those, ``command`` and ``netcat`` run what they name."""
_SECRETS = frozenset(("keyfile", "known_hosts", "pkipath"))
"""Files of certificates and keys: a user of the API may not name just any file."""


def check_uri(uri: str, what: str = "uri", keys_dir: PurePath | None = None) -> str:
    """*uri* if vmtune can manage what it names.

    :param keys_dir: the folder below which files of keys and certificates may be named; None
        where none may be.
    :raise InvalidInput: otherwise, with the parameter and what it may be.
    """
    match = _URI.fullmatch(uri)
    remote = match is not None and "+" in match["scheme"] and match["scheme"][-4:] != "unix"
    parts = match["path"].split("/") if match else []
    if match is None or (remote and not match["server"]) or ".." in parts:
        raise InvalidInput(
            f"{shown(uri)} is not a host that vmtune can drive",
            field=what,
            remedy="write a libvirt URI such as qemu:///system or qemu+ssh://root@NAME/system, "
            "or qmp+unix:///FOLDER for a folder of QMP sockets; a password cannot be part of it",
        )
    given: set[str] = set()
    for part in filter(None, (match["query"] or "").split("&")):
        name, _, raw = part.partition("=")
        _check_parameter(uri, what, name, unquote(raw), keys_dir)
        if name in given:
            raise InvalidInput(
                f"{shown(uri)} has the parameter {name} twice",
                field=what,
                remedy="write it once",
            )
        given.add(name)
    return uri


def _check_parameter(uri: str, what: str, name: str, value: str, keys_dir: PurePath | None) -> None:
    if name not in _PARAMETERS:
        raise InvalidInput(
            f"{shown(uri)} has the parameter {name[:40]}, which vmtune does not pass on",
            field=what,
            remedy=f"leave it out; vmtune passes on {', '.join(sorted(_PARAMETERS))}",
        )
    accepts, meaning = _PARAMETERS[name]
    if not accepts(value):
        raise InvalidInput(
            f"the parameter {name} of {shown(uri)} is not {meaning}",
            field=what,
            remedy=f"write {meaning}",
        )
    if name in _SECRETS and (keys_dir is None or keys_dir not in PurePath(value).parents):
        raise InvalidInput(
            f"the parameter {name} of {shown(uri)} names a file outside of {keys_dir}",
            field=what,
            remedy=f"put the file below {keys_dir}, or change the setting connection_keys_dir",
        )


def check_address(address: str, what: str = "migration_address") -> str:
    """*address* if it can be a host name or an IP address; empty is allowed.

    :raise InvalidInput: otherwise.
    """
    if address and not _ADDRESS.fullmatch(address):
        raise InvalidInput(
            f"{address[:100]!r} is not a host name or IP address",
            field=what,
            remedy="write a name or an address, without port",
        )
    return address


def in_brackets(address: str) -> str:
    """*address* as a URI has it: IPv6 in brackets."""
    return f"[{address}]" if ":" in address and not address.startswith("[") else address
