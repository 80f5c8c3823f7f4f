"""Signing in by an identity provider (OpenID Connect): the settings' table ``oidc``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_URL = re.compile(r"https://[^\s?#]+|http://(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]+)?[^\s?#]*")
_NAMED = ("issuer", "client_id", "client_secret_file", "base_url")
_ALL = (*_NAMED, "claim", "roles", "max_token_days")
_MOST_DAYS = 365


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """An identity provider that authenticates people.

    :param issuer: its URL, with its metadata below it.
    :param client_id: this service's id at the provider.
    :param client_secret_file: holds the client secret.
    :param base_url: where browsers reach this service: they are sent back there.
    :param claim: the claim of the ID token that names roles.
    :param roles: the scopes of each.
    :param max_token_days: how long tokens of people are valid at most, 1 to 365: the provider does
        not tell when somebody leaves.
    """

    issuer: str
    client_id: str
    client_secret_file: Path
    base_url: str
    claim: str
    roles: Mapping[str, tuple[str, ...]]
    max_token_days: int = 7


def read_oidc(raw: object) -> OidcSettings:
    """The table as written in the file.

    :raise ValueError: it lacks something, or has something that it cannot have.
    """
    if not isinstance(raw, dict):
        raise ValueError(f"expects a table with {', '.join(_ALL)}")
    missing = [name for name in _NAMED if not isinstance(raw.get(name), str) or not raw[name]]
    unknown = [str(name) for name in raw if name not in _ALL]
    if missing or unknown:
        raise ValueError(
            f"it lacks {missing[0]}" if missing else f"it has nothing called {unknown[0][:60]}"
        )
    for name in ("issuer", "base_url"):
        if not _URL.fullmatch(raw[name]):
            raise ValueError(f"{name} has to be an https:// URL, not {raw[name]!r}")
    if not raw["client_secret_file"].startswith("/"):
        raise ValueError("client_secret_file has to be a path that begins with /")
    claim = raw.get("claim", "groups")
    if not isinstance(claim, str) or not claim:
        raise ValueError("claim has to be a word")
    return OidcSettings(
        raw["issuer"].rstrip("/"),
        raw["client_id"],
        Path(raw["client_secret_file"]),
        raw["base_url"].rstrip("/"),
        claim,
        _roles(raw.get("roles")),
        _days(raw.get("max_token_days", 7)),
    )


def _days(raw: object) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or not 1 <= raw <= _MOST_DAYS:
        raise ValueError(f"max_token_days has to be a whole number from 1 to {_MOST_DAYS}")
    return raw


def _roles(raw: object) -> Mapping[str, tuple[str, ...]]:
    from vmtune.model.access.scopes import Scope  # noqa: PLC0415 - few have this table

    if not isinstance(raw, dict) or not raw:
        raise ValueError('roles has to be a table such as {admins = ["admin"]}')
    known = [scope.value for scope in Scope]
    for role, scopes in raw.items():
        if not isinstance(scopes, list) or not scopes or not set(scopes) <= set(known):
            raise ValueError(f"roles.{role} has to be a list of scopes: {', '.join(known)}")
    return {str(role): tuple(scopes) for role, scopes in raw.items()}
