"""What is wrong on the way to a host: the rows that take longer, next to tests/e2e."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.hosts.broken_ways import (
    KEYS,
    PKI,
    RELOAD,
    SSH,
    TLS,
    Broken,
    refused_as,
    share_known_hosts,
)
from tests.support.hosts.live import Live
from tests.support.hosts.machines import live_machines, why_no_machines

NONE = why_no_machines()
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE or "never")
TCP = "qemu+tcp://{b}/system"

# A small CA on the machine itself, whose certificate the other trusts besides the lab's; `sign NAME
# SECONDS` makes /root/ca/cert.pem and key.pem, which end then; `revoke` lists them.
CA = r"""
mkdir -p /root/ca; cd /root/ca
cat > ca.cnf <<'END'
[ca]
default_ca = lab
[lab]
dir = /root/ca
database = $dir/index
serial = $dir/serial
crlnumber = $dir/crlnumber
new_certs_dir = $dir
certificate = $dir/ca.pem
private_key = $dir/ca.key
default_md = sha256
default_crl_days = 1
policy = policy
unique_subject = no
copy_extensions = copy
[policy]
commonName = supplied
END
: > index; echo 01 > serial; echo 01 > crlnumber
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=own \
    -addext keyUsage=critical,keyCertSign,cRLSign -keyout ca.key -out ca.pem 2> /dev/null
sign() {
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" \
        -addext "subjectAltName=DNS:$1" -addext basicConstraints=critical,CA:FALSE \
        -addext extendedKeyUsage=serverAuth,clientAuth \
        -addext keyUsage=critical,digitalSignature,keyEncipherment \
        -keyout key.pem -out request.pem 2> /dev/null
    openssl ca -batch -notext -config ca.cnf -startdate 200101000000Z \
        -enddate "$(date -u -d "$2 seconds" +%y%m%d%H%M%SZ)" \
        -in request.pem -out cert.pem 2> /dev/null
}
revoke() {
    openssl ca -config ca.cnf -revoke cert.pem 2> /dev/null
    openssl ca -config ca.cnf -gencrl -out crl.pem 2> /dev/null
}
"""
KEEP = "cp -a /etc/pki /root/pki;"
PUT_BACK = "rm -rf /etc/pki/*; cp -a /root/pki/* /etc/pki; rm -rf /root/pki;"
SERVER = f"cp cert.pem {PKI}/servercert.pem; cp key.pem {PKI}/private/serverkey.pem; {RELOAD}"
TRUST_OWN = "cat ca.pem >> /etc/pki/CA/cacert.pem;"
# To the other machine, over the lab's own SSH.
OTHER = r"""
other() {
    ssh "$(awk '{ print $1 }' /root/.ssh/known_hosts | cut -d, -f1 | grep -m1 -- '-a$')" "$@"
}
send() { other "cat > $2" < "$1"; }
"""
TRUSTED_THERE = f"""
{OTHER} other 'cp -a /etc/pki /root/pki' < /dev/null
other 'cat >> /etc/pki/CA/cacert.pem' < ca.pem
"""
BOTH_BACK = f"{PUT_BACK} {RELOAD}; {OTHER} other '{PUT_BACK}' < /dev/null"
CLIENT = f"cp cert.pem {PKI}/clientcert.pem; cp key.pem {PKI}/private/clientkey.pem"

BROKEN = {
    "expired client": Broken(
        TLS, "a", f"{KEEP} {CA} sign a -3600; {CLIENT}", PUT_BACK,
        "the client certificate of the service's machine is not valid today", "CA of {b}",
    ),
    "expired server": Broken(
        TLS, "b",
        f"{KEEP} {CA} sign $(hostname) 2; {TRUST_OWN} {SERVER}; sleep 3; {TRUSTED_THERE}",
        BOTH_BACK,
        "the certificate of {b} has expired", "openssl s_client -connect {b}:16514",
    ),
    "revoked server": Broken(
        TLS, "b",
        f"{KEEP} {CA} sign $(hostname) 3600; revoke; {TRUST_OWN} {SERVER}; {TRUSTED_THERE}"
        " send crl.pem /etc/pki/CA/cacrl.pem",
        BOTH_BACK,
        "the certificate of {b} is revoked", "/etc/pki/libvirt/servercert.pem on {b}",
    ),
    "revoked client": Broken(
        TLS, "b",
        f"{KEEP} {CA} sign client 3600; revoke; {TRUST_OWN}"
        f" cp crl.pem /etc/pki/CA/cacrl.pem; {RELOAD}; {TRUSTED_THERE}"
        f" send cert.pem {PKI}/clientcert.pem; send key.pem {PKI}/private/clientkey.pem",
        BOTH_BACK,
        "{b} does not accept the client certificate", "/etc/pki/CA/cacrl.pem",
    ),
    "no SASL password": Broken(
        TCP, "a",
        "mv /etc/libvirt/auth.conf /root/kept", "mv /root/kept /etc/libvirt/auth.conf",
        "{b} wants a name and a password", "/etc/libvirt/auth.conf",
    ),
    "wrong SASL password": Broken(
        TCP, "a",
        "cp -a /etc/libvirt/auth.conf /root/kept;"
        " sed -i 's/^password=/password=x/' /etc/libvirt/auth.conf",
        "cat /root/kept > /etc/libvirt/auth.conf; rm /root/kept",
        "{b} does not accept the name and password", "saslpasswd2 -a libvirt",
    ),
    "denied by polkit": Broken(
        "qemu+ssh://visitor@{b}/system", "a", "true", "true",
        "the user of visitor@{b} may not use libvirt on {b}",
        "usermod --append --groups libvirt visitor",
    ),
    "libssh, unknown host": Broken(
        "qemu+libssh://root@{b}/system", "a", "true", "true",
        "SSH does not know the host key of {b}", "ssh root@{b} true",
    ),
    "libssh2, unknown host": Broken(
        "qemu+libssh2://root@{b}/system", "a", "true", "true",
        "SSH does not know the host key of {b}", "ssh root@{b} true",
    ),
    "libssh, refused key": Broken(
        f"qemu+libssh://root@{{b}}/system?known_hosts={KEYS}/known_hosts", "b",
        "mv /root/.ssh/authorized_keys /root/kept", "mv /root/kept /root/.ssh/authorized_keys",
        "{b} does not accept the SSH key of vmtune's user", "ssh-copy-id root@{b}",
    ),
    "daemon that hangs": Broken(
        SSH, "b",
        "kill -STOP $(cat /run/libvirtd.pid)", "kill -CONT $(cat /run/libvirtd.pid)",
        "did not answer within 20 s", "ssh root@{b} virsh -c qemu:///system list",
    ),
    "slow DNS": Broken(
        "qemu+ssh://root@elsewhere.example/system", "a",
        "cp /etc/resolv.conf /root/kept; echo nameserver 127.0.0.9 > /etc/resolv.conf;"
        " python3 -c 'import socket, time; s = socket.socket(2, 2);"
        ' s.bind(("127.0.0.9", 53)); time.sleep(60)\' > /dev/null 2>&1 & echo $! > /root/pid',
        "kill $(cat /root/pid); cat /root/kept > /etc/resolv.conf",
        "elsewhere.example", "getent hosts elsewhere.example",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with live_machines() as made:
        share_known_hosts(made)
        yield made


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_wrong_is_named_with_what_mends_it(live: Live, what: str) -> None:
    refused_as(live, BROKEN[what])
