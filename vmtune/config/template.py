"""The template of /etc/vmtune/vmtune.toml: every setting, commented out.

    python -m vmtune.config.template [NAME=TEXT]... > /etc/vmtune/vmtune.toml

A NAME with its TEXT is in force in it. Names, defaults and what they are for come from
:class:`vmtune.config.settings.Settings`.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType

from vmtune.config.cluster import ClusterSettings
from vmtune.config.settings import PREFIX, Settings

_WIDTH = 96
_HEAD = f"""\
Settings of the vmtune service. A line that begins with # is not in force: it shows the default,
or an example where there is none. Variables ({PREFIX}LISTEN_PORT=0) go before this file, and
options of the command before both.
Everybody on this host may read this file: keep passwords out of it. PostgreSQL can ask the
kernel who connects (peer authentication), or read a .pgpass file.

After a change: systemctl restart vmtune"""
_EXAMPLES: Mapping[str, str] = {
    "socket_group": 'socket_group = "vmtune"',
    "tls_cert": 'tls_cert = "/etc/vmtune/tls.crt"',
    "tls_key": 'tls_key = "/etc/vmtune/tls.key"',
    "allowed_hosts": 'allowed_hosts = ["tune.example"]',
    "trusted_proxies": 'trusted_proxies = ["127.0.0.1"]',
    "allow_qmp_commands": 'allow_qmp_commands = ["x-patched-command"]',
    "oidc": """\
[oidc]
issuer = "https://sso.example/realms/staff"
client_id = "vmtune"
client_secret_file = "/etc/vmtune/oidc-secret"
base_url = "https://tune.example"
claim = "groups"
roles = {vm-admins = ["admin"], vm-users = ["migrate"]}""",
    "bench_qemus": """\
[bench_qemus.patched]
binary = "/opt/qemu/bin/qemu-system-x86_64"
data_folder = "/opt/qemu/share/qemu\"""",
}
"""Those that have no default to show, or only an empty list."""


def descriptions() -> dict[str, str]:
    """What each setting is for, as the classes describe it."""
    return _described(Settings) | _described(ClusterSettings)


def _described(kind: type) -> dict[str, str]:
    text = inspect.getdoc(kind) or ""
    found = re.split(r"^:param (\w+):", text, flags=re.MULTILINE)[1:]
    pairs = zip(found[::2], found[1::2], strict=True)
    return {name: re.sub(r"``|\*", "", " ".join(words.split())) for name, words in pairs}


def settings_file(chosen: Mapping[str, str] = MappingProxyType({})) -> str:
    """The file.

    :param chosen: values that are in force in it, by the setting's name.
    """
    described, defaults = descriptions(), Settings()
    inherited = [field.name for field in fields(ClusterSettings)]
    names = [field.name for field in fields(Settings) if field.name not in inherited]
    names += inherited
    unknown = set(chosen) - set(names)
    assert not unknown, unknown
    # In TOML, tables come last.
    names.sort(key=lambda name: _EXAMPLES.get(name, "").startswith("["))
    parts = [_comment(_HEAD)]
    for name in names:
        lines = [_comment(_wrapped(described[name]))]
        default = getattr(defaults, name)
        if name in chosen:
            lines.append(f"{name} = {_toml(chosen[name])}")
        elif name in _EXAMPLES:
            lines.append(_comment(f"For example:\n{_EXAMPLES[name]}"))
        else:
            lines.append(_comment(f"{name} = {_toml(default)}"))
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _wrapped(words: str) -> str:
    first = words.partition(" ")[0]
    begun = words if "/" in first else words[:1].upper() + words[1:]
    return textwrap.fill(begun, _WIDTH, break_on_hyphens=False)


def _comment(text: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in text.splitlines())


def _toml(value: object) -> str:
    """A value as TOML has it, which is JSON's way for texts, numbers, truths."""
    return json.dumps(str(value) if isinstance(value, Path) else value)


if __name__ == "__main__":
    pairs = (argument.partition("=") for argument in sys.argv[1:])
    print(settings_file({name: value for name, _, value in pairs}), end="")
