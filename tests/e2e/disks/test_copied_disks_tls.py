"""Disks that are copied without libvirt are encrypted where the migration is."""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path

import pytest

from tests.support.hosts.live import Service
from tests.support.hosts.wiretap import Heard
from tests.support.qemus.direct_disks import COPIED, Pair, arrived_whole, ask, pair
from tests.support.qemus.qemu import Build

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root sees what goes by the network")
ADDRESS, NAME, CREDS = "127.0.0.1", "b.example", "tls0"
MAKE = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
SIGN = "openssl x509 -req -CA ca-cert.pem -CAkey ca.key -CAcreateserial -days 2"
CERTIFICATES = f"""set -e
{MAKE} -x509 -subj /CN=ca -keyout ca.key -out ca-cert.pem
echo subjectAltName=DNS:{NAME} > server.ext
echo basicConstraints=CA:FALSE > client.ext
for side in server client; do
    {MAKE} -subj /CN=$side -keyout $side-key.pem -out $side.csr
    {SIGN} -extfile $side.ext -in $side.csr -out $side-cert.pem
done
"""


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[str, ...], ...]:
    """Of the source's command line, and of the other's."""
    folder = tmp_path_factory.mktemp("certificates")
    subprocess.run(["sh", "-c", CERTIFICATES], cwd=folder, check=True, timeout=60,
                   capture_output=True)  # fmt: skip
    made = f"tls-creds-x509,id={CREDS},dir={folder},endpoint="
    return ("-object", made + "client"), ("-object", made + "server")


@pytest.fixture
def pattern(tmp_path: Path) -> Path:
    """A file of something unmistakable."""
    made = tmp_path / "pattern"
    made.write_bytes(secrets.token_bytes(32))
    return made


def written(pattern: Path) -> tuple[str, ...]:
    """What has it written to the source's disk."""
    return (f"write -s {pattern} 46M 1M",)


@pytest.mark.parametrize("way", ["plain", "asked for", "set before"])
def test_disks_are_encrypted_where_the_migration_is(
    way: str,
    service: Service,
    build: Build,
    tmp_path: Path,
    pattern: Path,
    credentials: tuple[tuple[str, ...], ...],
) -> None:
    values: dict[str, object] = dict(COPIED)
    if way == "asked for":
        values |= {"tls": True, "tls_creds": CREDS, "tls_hostname": NAME}
    with pair(
        service, build, tmp_path, more=credentials, address=ADDRESS, writes=written(pattern)
    ) as it:
        if way == "set before":
            set_tls(it)
        heard = Heard(pattern.read_bytes())
        with heard.listening():
            done = it.ended(it.migrate(**values))
        assert (done["state"], done["problems"]) == ("completed", []), done["failure"]
        assert bool(heard.times) == (way == "plain")
        assert it.left() == []
        it.qemus[1].stop()
        assert arrived_whole(it)


def set_tls(it: Pair) -> None:
    """As an operator does, without vmtune."""
    here = {"tls-creds": CREDS, "tls-hostname": NAME}
    ask(it.qemus[0], "migrate-set-parameters", **here)
    ask(it.qemus[1], "migrate-set-parameters", **{"tls-creds": CREDS})


def test_a_destination_of_another_name_gets_no_disk(
    service: Service,
    build: Build,
    tmp_path: Path,
    pattern: Path,
    credentials: tuple[tuple[str, ...], ...],
) -> None:
    with pair(
        service, build, tmp_path, more=credentials, address=ADDRESS, writes=written(pattern)
    ) as it:
        heard = Heard(pattern.read_bytes())
        with heard.listening():
            done = it.ended(it.migrate(**COPIED, tls=True, tls_creds=CREDS))
        assert done["state"] == "failed"
        assert ADDRESS in done["failure"], done["failure"]
        facts = service.client.get(f"/vms/{it.vm}")
        assert (facts["host"], facts["state"]) == (it.names[0], "running")
        assert (heard.times, it.left()) == (0, [])
