"""What a server presents by TLS, looked at without libvirt, which says only that it failed.

libvirt reports every refusal of a server's certificate in the same words and logs the reason
nowhere (virNetTLSContextValidCertificate in src/rpc/virnettlscontext.c). The same files give the
reason to OpenSSL.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from vmtune.hypervisor.libvirt.reach import Remote

_WITHIN_S = 5.0
_CA, _REVOKED = "CA/cacert.pem", "CA/cacrl.pem"
_CERTIFICATE, _KEY = "libvirt/clientcert.pem", "libvirt/private/clientkey.pem"
_PKI = Path("/etc/pki")

# OpenSSL's X509_V_ERR_* (x509_vfy.h).
_EXPIRED, _NOT_YET, _REVOKED_CODE = 10, 9, 23
_OTHER_NAME = (62, 64)
_OTHER_CA = (18, 19, 20, 21, 7)


@dataclass(frozen=True, slots=True)
class Presented:
    """A server's certificate.

    :param reason: why it is not accepted; empty where it is.
    :param until: when it expires; None where it is not accepted.
    """

    reason: str
    until: datetime | None = None


def look_at(remote: Remote) -> Presented | None:
    """The certificate that a server presents, held against the CA of this machine. Blocks for
    at most some seconds.

    :return: None where it cannot be seen: nothing listens, or our own files cannot be read.
    """
    folder = Path(remote.pkipath) if remote.pkipath else None
    try:
        context = _context(folder)
        with (
            socket.create_connection((remote.server, remote.port), _WITHIN_S) as plain,
            context.wrap_socket(plain, server_hostname=remote.server) as secured,
        ):
            shown = secured.getpeercert() or {}
    except ssl.SSLCertVerificationError as error:
        return Presented(_reason(error, remote.server))
    except (OSError, ValueError):
        return None
    until = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(shown["notAfter"])), UTC)
    return Presented("", until)


def _context(folder: Path | None) -> ssl.SSLContext:
    """As libvirt has it: only the CA of the file, and its list of revoked ones if there is one.

    :param folder: that of the URI's pkipath, with all files in it; None for /etc/pki.
    """

    def file(name: str) -> Path:
        return _PKI / name if folder is None else folder / Path(name).name

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(file(_CA))
    if file(_REVOKED).exists():
        context.load_verify_locations(file(_REVOKED))
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
    if file(_CERTIFICATE).exists():
        context.load_cert_chain(file(_CERTIFICATE), file(_KEY))
    return context


def _reason(error: ssl.SSLCertVerificationError, server: str) -> str:
    code = error.verify_code
    if code == _EXPIRED:
        return "has expired"
    if code == _NOT_YET:
        return "is not valid yet: compare the clocks"
    if code == _REVOKED_CODE:
        return "is revoked"
    if code in _OTHER_NAME:
        return f"is not for the name {server}"
    if code in _OTHER_CA:
        return "is not signed by our CA"
    return f"is not accepted: {error.verify_message}"


def certificate_until(uri: str) -> datetime | None:
    """When the certificate of a ``qemu+tls`` URI's server expires; None for other transports, or
    where none can be seen. Blocks for at most some seconds."""
    remote = Remote.of(uri)
    if remote is None or remote.transport != "tls":
        return None
    shown = look_at(remote)
    return shown.until if shown is not None else None
