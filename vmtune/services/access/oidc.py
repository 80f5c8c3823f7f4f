"""Signing in by an identity provider (OpenID Connect, authorization code with PKCE).

Needs the extra ``oidc`` (Authlib). The provider's word is believed only where it is signed by a
key that it publishes, is meant for this service and answers this very sign-in.
"""

# ruff: noqa: PLC0415 - Authlib is loaded only if a provider is used

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from vmtune.config.oidc import OidcSettings
from vmtune.errors import Forbidden, SetupError, Unauthenticated
from vmtune.model.access.scopes import EVERYTHING, Identity, Kind, Rights, Scope

CALLBACK = "/api/v1/session/oidc/callback"
LASTS_S = 600
_MOST_BEGUN = 1000
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


@dataclass(frozen=True, slots=True)
class _PendingSignIn:
    binding: str
    nonce: str
    verifier: str
    until: float


class OidcService:
    """Sends people to the provider, and accepts its ID token when they come back."""

    def __init__(self, settings: OidcSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._waiting: dict[str, _PendingSignIn] = {}

    async def begin(self) -> SignInStart:
        """Begin a sign-in.

        :raise SetupError: the provider does not answer, or Authlib is not installed.
        """
        async with self._client() as client:
            provider = await self._provider(client)
            state, nonce = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
            verifier, binding = secrets.token_urlsafe(48), secrets.token_urlsafe(32)
            url, _ = client.create_authorization_url(
                provider["authorization_endpoint"],
                state=state,
                nonce=nonce,
                code_verifier=verifier,
            )
        while len(self._waiting) >= _MOST_BEGUN:
            self._waiting.pop(next(iter(self._waiting)))
        self._waiting[state] = _PendingSignIn(binding, nonce, verifier, self._clock() + LASTS_S)
        return SignInStart(url, binding)

    async def finish(self, binding: str, state: str, code: str) -> Identity:
        """The person who has come back from the provider.

        :raise Unauthenticated: this browser began no such sign-in, or the provider's answer is not
            valid.
        :raise Forbidden: none of their roles allows anything here.
        """
        waiting = self._waiting.pop(state, None)
        if (
            waiting is None
            or waiting.until < self._clock()
            or not hmac.compare_digest(waiting.binding.encode(), binding.encode())
        ):
            raise _refused("this browser began no such sign-in, or too long ago", "oidc_state")
        async with self._client() as client:
            provider = await self._provider(client)
            try:
                token = await client.fetch_token(
                    provider["token_endpoint"], code=code, code_verifier=waiting.verifier
                )
            except Exception as error:
                # What Authlib, its transport or the provider's JSON may raise is of many kinds.
                raise _refused("the provider did not redeem the code", "oidc_code") from error
            keys = await self._get(client, provider["jwks_uri"])
        return self._identity(self._claims(token.get("id_token"), keys, waiting.nonce))

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
        if not scopes:
            raise Forbidden(
                f"{name[:100]} has no role that allows anything here",
                code="no_role",
                remedy=f"have the provider name one of {', '.join(self._settings.roles)} in "
                f"{self._settings.claim}",
            )
        rights = Rights(frozenset(scopes), EVERYTHING)
        return Identity(Kind.OIDC, str(claims["sub"])[:200], name[:200], rights)

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
            raise _unreachable("its answer is no JSON object")
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
            scope="openid profile email",
            redirect_uri=self._settings.base_url + CALLBACK,
            code_challenge_method="S256",
            timeout=_WITHIN_S,
        )


def _refused(why: str, code: str) -> Unauthenticated:
    return Unauthenticated(why, field="oidc", code=code, remedy="sign in again")


def _unreachable(why: str) -> SetupError:
    return SetupError(
        f"the identity provider cannot be used: {why}",
        field="oidc",
        code="oidc_unreachable",
        remedy="sign in with a token, and see whether the provider answers",
    )
