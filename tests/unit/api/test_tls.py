"""TLS on the TCP port, and none on the unix socket: a real served instance."""

from __future__ import annotations

import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from tests.support.served.asking import Door
from tests.support.served.served_api import served_api
from vmtune.api.serving.tls import Tls
from vmtune.config.settings import Settings
from vmtune.errors import SetupError

pytestmark = pytest.mark.integration


def certificate(folder: Path, name: str = "localhost") -> tuple[Path, Path]:
    """A self-signed certificate and its key."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    made += ["-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext"]
    made += [f"subjectAltName=DNS:localhost,DNS:{name}"]
    subprocess.run(
        [*made, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True, timeout=60
    )
    return cert, key


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port


def test_tcp_is_encrypted_and_its_cookies_are_for_tls_alone(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    port = free_port()
    options = {"listen_port": port, "tls_cert": cert, "tls_key": key}
    with served_api(tmp_path, tmp_path / "s", options):
        unix = Door(tmp_path / "s")
        token = unix.ask("POST", "/tokens", {"name": "ci", "scopes": ["read"]}).document["token"]
        door = Door(port, ssl.create_default_context(cafile=str(cert)))
        assert door.ask("GET", "/vms").status == 401
        assert door.ask("GET", "/vms", token=token).status == 200
        signed_in = door.ask("POST", "/session", {"token": token})
        assert "__Host-vmtune_session" in signed_in.cookies
        cookies = [value for name, value in signed_in.headers if name.lower() == "set-cookie"]
        assert all("Secure" in cookie for cookie in cookies)
        word = ("X-Vmtune-Csrf", signed_in.document["csrf"])
        mine = f"__Host-vmtune_session={signed_in.cookies['__Host-vmtune_session']}"
        assert door.ask("GET", "/session", headers=[("Cookie", mine), word]).status == 200
        weaker = mine.replace("__Host-", "")
        assert door.ask("GET", "/session", headers=[("Cookie", weaker), word]).status == 401
        assert Door(port).ask("GET", "/live").status in (0, 400)  # in the clear
        with pytest.raises(ssl.SSLError):
            Door(port, ssl.create_default_context()).ask("GET", "/live")  # nobody vouches for it


def test_old_versions_are_not_spoken(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    tls = Tls(Settings(tls_cert=cert, tls_key=key))
    assert tls.context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_a_renewed_certificate_is_read_again(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    new_cert, new_key = certificate(tmp_path, "renewed")
    port = free_port()
    options = {"listen_port": port, "tls_cert": cert, "tls_key": key}
    with served_api(tmp_path, tmp_path / "s", options) as api:
        before = ssl.get_server_certificate(("127.0.0.1", port), timeout=20)
        cert.write_bytes(new_cert.read_bytes())
        key.write_bytes(new_key.read_bytes())
        api.reload()
        after = ssl.get_server_certificate(("127.0.0.1", port), timeout=20)
        assert after == new_cert.read_text().strip() + "\n" != before
        cert.write_text("nonsense")
        api.reload()  # logged, and what was there stays
        assert ssl.get_server_certificate(("127.0.0.1", port), timeout=20) == after


@pytest.mark.parametrize("broken", ["missing", "no certificate", "another key"])
def test_a_certificate_that_cannot_be_used_is_told(tmp_path: Path, broken: str) -> None:
    cert, key = certificate(tmp_path)
    if broken == "missing":
        cert.unlink()
    elif broken == "no certificate":
        cert.write_text("x")
    else:
        key = certificate(tmp_path, "other")[1]
    with pytest.raises(SetupError) as caught:
        Tls(Settings(tls_cert=cert, tls_key=key))
    assert str(cert) in caught.value.message
    assert "PEM" in caught.value.problems[0].remedy
