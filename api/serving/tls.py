"""TLS on the TCP port, by certificate files."""

from __future__ import annotations

import ssl

import structlog

from vmtune.config.settings import Settings
from vmtune.errors import SetupError

log = structlog.get_logger(__name__)


class Tls:
    """The certificate, and the context that connections are accepted with.

    :raise SetupError: it cannot be read, or is none.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        self._load()

    def reload(self) -> None:
        """Use what the files hold now for connections to come; what cannot be read is logged
        and the certificate before stays."""
        try:
            self._load()
        except SetupError as error:
            log.error("reload of the certificate failed", reason=str(error))
        else:
            log.info("reloaded the certificate")

    def _load(self) -> None:
        cert, key = self._settings.tls_cert, self._settings.tls_key
        try:
            self.context.load_cert_chain(cert, key, password=_nobody_to_ask)
        except OSError as error:  # which ssl.SSLError is too
            raise SetupError(
                f"the certificate {cert} with the key {key} cannot be used: "
                f"{error.strerror or error}",
                field="tls_cert",
                remedy="use PEM files that the service's user can read and that belong "
                "together; the key without a passphrase",
            ) from error


def _nobody_to_ask() -> str:
    return ""
