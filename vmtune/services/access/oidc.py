"""Signing in by an identity provider (OpenID Connect, authorization code with PKCE).

Needs the extra ``oidc`` (Authlib). The provider's word is believed only where it is signed by a
key that it publishes, is meant for this service and answers this very sign-in.
"""

# ruff: noqa: PLC0415 - Authlib is loaded only if a provider is used

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from vmtune.config.oidc import OidcSettings
from vmtune.errors import Forbidden, SetupError, Unauthenticated
from vmtune.model.access.scopes import EVERYTHING, Identity, Kind, Rights, Scope

CALLBACK = "/api/v1/session/oidc/callback"
LASTS_S = 600
_MAX_USED = 10_000
_MAX_ASKED_AT_ONCE = 8
_DESCRIBED_FOR_S = 300.0
_SCOPE = "openid profile email"
_WITHIN_S = 10.0
_LEEWAY_S = 60
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
"""Asymmetric algorithms only: a shared secret signs nothing here."""

Json = Mapping[str, Any]  # any JSON


@dataclass(frozen=True, slots=True)
class SignInStart:
    """A sign-in that has begun.

    :param url: where the browser goes, to the provider.
    :param binding: what the browser stores, so that only it can complete the sign-in.
    """

    url: str
    binding: str


class OidcService:
    """Sends people to the provider, and accepts its ID token when they come back.

    A sign-in that has begun is kept nowhere but in the browser's cookie: its state, nonce and code
    verifier follow from it by a key of this process. So however many strangers begin one, nobody
    else's is forgotten.
    """

    def __init__(self, settings: OidcSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._used: dict[str, float] = {}
        self._asking = asyncio.Semaphore(_MAX_ASKED_AT_ONCE)
        self._described: tuple[float, Json] | None = None

    async def begin(self) -> SignInStart:
        """Begin a sign-in.

        :raise SetupError: the provider does not answer, or Authlib is not installed.
        """
        binding = f"{int(self._clock()):x}-{secrets.token_urlsafe(32)}"
        asked = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": self._settings.base_url + CALLBACK,
            "scope": _SCOPE,
            "state": self._derived("state", binding),
            "nonce": self._derived("nonce", binding),
            "code_challenge": _challenge(self._derived("verifier", binding)),
            "code_challenge_method": "S256",
        }
        where = (await self._described_provider())["authorization_endpoint"]
        url = f"{where}{'&' if '?' in where else '?'}{urlencode(asked)}"
        return SignInStart(url, binding)

    async def _described_provider(self) -> Json:
        """What the provider says of itself, as of the last minutes. To make a client for each start
        of a stranger would take 50 ms."""
        if self._described is None or self._clock() >= self._described[0]:
            async with self._asking, self._client() as client:
                self._described = (
                    self._clock() + _DESCRIBED_FOR_S,
                    await self._provider(client),
                )
        return self._described[1]

    def _derived(self, what: str, binding: str) -> str:
        made = hmac.digest(self._key, f"{what} {binding}".encode("utf-8", "replace"), "sha256")
        return _text(made)

    def _began(self, binding: str, state: str) -> bool:
        """Whether the browser with that cookie began the sign-in, lately, and has not ended it."""
        wanted = self._derived("state", binding)
        if not hmac.compare_digest(wanted.encode(), state.encode("utf-8", "replace")):
            return False
        age_s = self._clock() - int(binding.partition("-")[0], 16)  # ours, as the state is right
        if age_s > LASTS_S or wanted in self._used:
            return False
        self._used[wanted] = self._clock()
        while len(self._used) > _MAX_USED:
            self._used.pop(next(iter(self._used)))
        return True

    async def finish(self, binding: str, state: str, code: str) -> Identity:
        """The person who has come back from the provider, with the rights of their roles: none of
        them may allow anything here.

        :raise Unauthenticated: this browser began no such sign-in, or the provider's answer is not
            valid.
        """
        if not self._began(binding, state):
            raise _refused("this browser began no such sign-in, or too long ago", "oidc_state")
        provider = await self._described_provider()
        async with self._asking, self._client() as client:
            try:
                token = await client.fetch_token(
                    provider["token_endpoint"],
                    code=code,
                    code_verifier=self._derived("verifier", binding),
                )
            except Exception as error:
                # What Authlib, its transport or the provider's JSON may raise is of many kinds.
                raise _refused("the provider did not redeem the code", "oidc_code") from error
            keys = await self._get(client, provider["jwks_uri"])
        nonce = self._derived("nonce", binding)
        return self._identity(self._claims(token.get("id_token"), keys, nonce))

    def _claims(self, id_token: object, keys: Json, nonce: str) -> Json:
        from joserfc import jwk, jwt
        from joserfc.errors import JoseError

        registry = jwt.JWTClaimsRegistry(
            leeway=_LEEWAY_S,
            iss={"essential": True, "value": self._settings.issuer},
            aud={"essential": True, "value": self._settings.client_id},
            sub={"essential": True},
            exp={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            published: Any = dict(keys)  # any: joserfc validates it
            key_set = jwk.KeySet.import_key_set(published)
            decoded = jwt.decode(str(id_token), key_set, algorithms=_ALGORITHMS)
            registry.validate(decoded.claims)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise _refused("the provider's word does not hold", "oidc_token") from error
        claims: Json = decoded.claims
        return claims

    def _identity(self, claims: Json) -> Identity:
        named = claims.get(self._settings.claim)
        roles = named.split() if isinstance(named, str) else named
        held = [str(role) for role in roles] if isinstance(roles, list) else []
        scopes = {Scope(s) for role in held for s in self._settings.roles.get(role, ())}
        name = str(claims.get("preferred_username") or claims.get("email") or claims["sub"])
        rights = Rights(frozenset(scopes), EVERYTHING)
        return Identity(Kind.OIDC, str(claims["sub"])[:200], name[:200], rights)

    def check_role(self, who: Identity) -> None:
        """:raise Forbidden: none of the person's roles allows anything here."""
        if not who.rights.scopes:
            raise Forbidden(
                f"{who.name[:100]} has no role that allows anything here",
                code="no_role",
                remedy=f"have the provider name one of {', '.join(self._settings.roles)} in "
                f"{self._settings.claim}",
            )

    async def _provider(self, client: Any) -> Json:  # any: Authlib has no types
        found = await self._get(client, f"{self._settings.issuer}/.well-known/openid-configuration")
        needed = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        if found.get("issuer") != self._settings.issuer or not all(
            isinstance(found.get(name), str) for name in needed
        ):
            raise _unreachable("it describes itself as another, or not at all")
        return found

    async def _get(self, client: Any, url: str) -> Json:  # any: as above
        try:
            answer = await client.request("GET", url, withhold_token=True)
            answer.raise_for_status()
            found = answer.json()
        except Exception as error:
            # Likewise: of many kinds, and none is this service's fault.
            raise _unreachable(type(error).__name__) from error
        if not isinstance(found, dict):
            raise _unreachable("its answer is not a JSON object")
        return found

    def _client(self) -> Any:  # any: as above
        try:
            from authlib.integrations.httpx_client import AsyncOAuth2Client
        except ImportError as error:
            raise SetupError(
                "Authlib is not installed",
                field="oidc",
                code="oidc_missing",
                remedy="install vmtune with its extra: `pip install vmtune[oidc]`",
            ) from error
        file = self._settings.client_secret_file
        try:
            secret = file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SetupError(
                f"{file} cannot be read",
                field="oidc.client_secret_file",
                remedy="let the service's user read it",
            ) from error
        return AsyncOAuth2Client(
            self._settings.client_id,
            secret,
            scope=_SCOPE,
            redirect_uri=self._settings.base_url + CALLBACK,
            code_challenge_method="S256",
            timeout=_WITHIN_S,
        )


def _challenge(verifier: str) -> str:
    """The S256 challenge of a verifier (RFC 7636, 4.2)."""
    return _text(hashlib.sha256(verifier.encode()).digest())


def _text(of: bytes) -> str:
    return base64.urlsafe_b64encode(of).decode().rstrip("=")


def _refused(why: str, code: str) -> Unauthenticated:
    return Unauthenticated(why, field="oidc", code=code, remedy="sign in again")


def _unreachable(why: str) -> SetupError:
    return SetupError(
        f"the identity provider cannot be used: {why}",
        field="oidc",
        code="oidc_unreachable",
        remedy="sign in with a token, and see whether the provider answers",
    )
