"""vmtune and hosts that it reaches over SSH and TLS: migrations, and what goes wrong on the way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.hosts.broken_ways import PKI, RELOAD, SSH, TLS, Broken, hosts, refused_as
from tests.support.hosts.live import Live
from tests.support.hosts.machines import live_machines, why_no_machines
from tests.support.hosts.ways import observed_where_virsh_migrates, tuned_there_and_back

NONE = why_no_machines()
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE or "never")


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with live_machines() as made:
        yield made


@pytest.mark.parametrize("transport", ["ssh", "tls"])
def test_a_vm_is_tuned_and_migrates_there_and_back(live: Live, transport: str) -> None:
    with hosts(live, transport):
        tuned_there_and_back(live, f"by-{transport}")


@pytest.mark.parametrize("transport", ["ssh", "tls"])
def test_a_migration_by_virsh_is_observed(live: Live, transport: str) -> None:
    with hosts(live, transport):
        observed_where_virsh_migrates(live)


MAKE = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -batch"
BROKEN = {
    "unknown host key": Broken(
        SSH, "a",
        "mv /root/.ssh/known_hosts /root/kept", "mv /root/kept /root/.ssh/known_hosts",
        "SSH does not know the host key of {b}", "ssh root@{b} true",
    ),
    "changed host key": Broken(
        SSH, "a",
        "cd /root/.ssh; cp known_hosts /root/kept;"
        " ssh-keygen -q -t ed25519 -N '' -f /root/forged;"
        " echo {b} $(cut -d' ' -f1,2 /root/forged.pub) > known_hosts",
        "mv /root/kept /root/.ssh/known_hosts; rm /root/forged*",
        "the SSH host key of {b} is not the one that is known", "ssh-keygen -R {b}",
    ),
    "refused key": Broken(
        SSH, "b",
        "mv /root/.ssh/authorized_keys /root/kept", "mv /root/kept /root/.ssh/authorized_keys",
        "{b} does not accept the SSH key of vmtune's user", "ssh-copy-id root@{b}",
    ),
    "no sshd": Broken(
        SSH, "b",
        "kill $(cat /run/sshd.pid); while [ -e /run/sshd.pid ]; do sleep 0.1; done",
        "/usr/sbin/sshd",
        "nothing takes connections at port 22 of {b}", "systemctl start ssh",
    ),
    "no helper": Broken(
        SSH, "b",
        "mv /usr/bin/virt-ssh-helper /usr/bin/kept; ln -s /nonexistent /usr/local/bin/nc",
        "mv /usr/bin/kept /usr/bin/virt-ssh-helper; rm /usr/local/bin/nc",
        "{b} has neither virt-ssh-helper nor nc", "libvirt-daemon-common",
    ),
    "no daemon": Broken(
        SSH, "b",
        "mv /run/libvirt/libvirt-sock /run/libvirt/kept",
        "mv /run/libvirt/kept /run/libvirt/libvirt-sock",
        "libvirt's daemon does not run on {b}", "systemctl start libvirtd.socket",
    ),
    "unknown name": Broken(
        "qemu+ssh://root@unknown.invalid/system", "a", "true", "true",
        "the name unknown.invalid is not known here", "getent hosts unknown.invalid",
    ),
    "unknown name by TLS": Broken(
        "qemu+tls://unknown.invalid/system", "a", "true", "true",
        "the name unknown.invalid is not known here", "/etc/hosts",
    ),
    "no route": Broken(
        "qemu+tls://192.0.2.1/system", "a", "true", "true",
        "192.0.2.1 does not answer on the network", "ping 192.0.2.1",
    ),
    "no TLS port": Broken(
        "qemu+tls://{b}:16515/system", "a", "true", "true",
        "nothing takes connections at port 16515 of {b}", "virtproxyd-tls.socket",
    ),
    "no TCP port": Broken(
        "qemu+tcp://{b}:16510/system", "a", "true", "true",
        "nothing takes connections at port 16510 of {b}", "use SSH or TLS",
    ),
    "other name": Broken(
        "qemu+tls://alias/system", "a",
        "cp /etc/hosts /root/kept; echo $(getent hosts {b} | cut -d' ' -f1) alias >> /etc/hosts",
        "cat /root/kept > /etc/hosts",
        "the certificate of alias is not for the name alias", "-verify_hostname alias",
    ),
    "other CA": Broken(
        TLS, "b",
        "cd /root; mkdir own; cp /etc/pki/CA/cacert.pem"
        f" {PKI}/servercert.pem {PKI}/private/serverkey.pem own;"
        f" {MAKE} -subj /CN=other -keyout ca.key -out /etc/pki/CA/cacert.pem;"
        f" {MAKE} -subj /CN=$(hostname) -CA /etc/pki/CA/cacert.pem -CAkey ca.key"
        " -addext subjectAltName=DNS:$(hostname) -addext basicConstraints=critical,CA:FALSE"
        f" -keyout {PKI}/private/serverkey.pem -out {PKI}/servercert.pem; {RELOAD}",
        f"cd /root/own; cp cacert.pem /etc/pki/CA; cp servercert.pem {PKI};"
        f" cp serverkey.pem {PKI}/private; {RELOAD}",
        "the certificate of {b} is not signed by our CA", "openssl s_client -connect {b}:16514",
    ),
    "client of another CA": Broken(
        TLS, "a",
        f"cd {PKI}; cp clientcert.pem private/clientkey.pem /root;"
        f" {MAKE} -subj /CN=other -addext basicConstraints=critical,CA:FALSE"
        " -keyout private/clientkey.pem -out clientcert.pem",
        f"cp /root/clientcert.pem {PKI}; cp /root/clientkey.pem {PKI}/private",
        "the client certificate of the service's machine is not valid", "CA of {b}",
    ),
    "no client certificate": Broken(
        TLS, "a",
        f"mv {PKI}/clientcert.pem /root", f"mv /root/clientcert.pem {PKI}",
        "{b} does not accept the client certificate", "CA of {b}",
    ),
    "no CA": Broken(
        TLS, "a",
        "mv /etc/pki/CA/cacert.pem /root", "mv /root/cacert.pem /etc/pki/CA",
        "no client certificate for libvirt", "/etc/pki/CA/cacert.pem",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_wrong_is_named_with_what_mends_it(live: Live, what: str) -> None:
    refused_as(live, BROKEN[what])
