"""Why a migration did not get from its source to its destination, told from libvirt's and QEMU's
words. The lab provokes most of them again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.hypervisor.libvirt.errors import OPERATION_ABORTED, LibvirtRefused
from vmtune.hypervisor.libvirt.migrating.between_hosts import why, with_cause

SSH, TLS = "qemu+ssh://root@rack8/system", "qemu+tls://rack8/system"
PEER = "operation failed: Failed to connect to remote libvirt URI"


@pytest.mark.parametrize("begins", [f"{PEER} {{uri}}: ", ""])
@pytest.mark.parametrize(
    ("uri", "text", "cause", "remedy"),
    [
        (
            SSH,
            "Cannot recv data: Host key verification failed.: Connection reset by peer",
            "SSH does not know the host key of rack8 (Host key verification failed.)",
            "run `ssh root@rack8 true` as root on the source host once",
        ),
        (
            SSH,
            "Cannot recv data: root@rack8: Permission denied (publickey).: Connection reset by "
            "peer",
            "rack8 does not accept the SSH key of root on the source host",
            "run `ssh-copy-id root@rack8` as root on the source host",
        ),
        (
            TLS,
            "Unable to read TLS confirmation: Input/output error",
            "rack8 does not accept the client certificate of the source host",
            "/etc/pki/libvirt/clientcert.pem",
        ),
        (
            TLS,
            "authentication failed: Failed to verify peer's certificate",
            "the certificate of rack8 is not one for rack8",
            "openssl s_client -connect rack8:16514",
        ),
        (
            TLS,
            "Unable to resolve address 'rack8' service '16514': Name or service not known",
            "the name rack8 is not known on the source host",
            "/etc/hosts of the source host",
        ),
        (
            TLS,
            "unable to connect to server at 'rack8:16514': Connection refused",
            "nothing takes connections at port 16514 of rack8",
            "libvirtd-tls.socket",
        ),
        (
            "qemu+tcp://rack8/system",
            "authentication failed: authentication failed",
            "rack8 does not accept the name and password of the source host",
            "/etc/libvirt/auth.conf",
        ),
    ],
)
def test_that_libvirt_is_not_reached_is_told(
    uri: str, text: str, cause: str, remedy: str, begins: str
) -> None:
    """As libvirt passes it on, and with the words that it has for it, too."""
    (problem,) = with_cause(uri, LibvirtRefused(begins.format(uri=uri) + text, 38)).problems
    assert problem.message.startswith(f"the source's libvirt does not reach {uri}: ")
    assert cause in problem.message
    assert remedy in problem.remedy


@pytest.mark.parametrize(
    ("text", "cause", "remedy"),
    [
        (
            f"{PEER} {TLS}: something new",
            f"the source's libvirt does not reach {TLS}: something new",
            f"run `virsh -c {TLS} hostname` as root on the source host",
        ),
        (
            "unable to connect to server at 'rack8:49152': Connection refused",
            "the source host does not reach port 49152 of rack8, where the VM was to arrive",
            "open ports 49152 to 49215 of rack8",
        ),
        (
            "operation failed: job 'migration out' failed: Failed to connect to 'fd00::8:49153': "
            "No route to host",
            "the source host does not reach port 49153 of fd00::8",
            "`getent hosts fd00::8` on the source host",
        ),
        (
            "Unable to resolve address 'rack8.mig' service '49152': Name or service not known",
            "the source host does not know the name rack8.mig",
            "set migrate_uri of the host",
        ),
        (
            "internal error: unable to execute QEMU command 'migrate': address resolution failed "
            "for rack8.mig:49152: Name or service not known",
            "the source host does not know the name rack8.mig",
            "/etc/hosts of the source host",
        ),
        (
            "operation failed: job 'migration out' failed: Certificate does not match the hostname "
            "10.0.0.8",
            "the certificate of the destination's QEMU is not for 10.0.0.8",
            "/etc/pki/qemu/server-cert.pem for 10.0.0.8, too",
        ),
    ],
)
def test_a_cause_is_told_with_what_mends_it(text: str, cause: str, remedy: str) -> None:
    (problem,) = with_cause(TLS, LibvirtRefused(text, 9)).problems
    assert cause in problem.message
    assert remedy in problem.remedy


@pytest.mark.parametrize(
    "text",
    [
        "operation failed: migration out job: unexpectedly failed",
        "Requested operation is not valid: domain is not running",
        "internal error: unable to execute QEMU command 'cont': Failed to get \"write\" lock",
        "Cannot recv data: Connection reset by peer",
        "End of file while reading data: Input/output error",
        "operation failed: job 'migration out' failed: Unable to write to socket: Connection timed "
        "out",
    ],
)
def test_other_refusals_are_passed_on_as_they_are(text: str) -> None:
    refusal = LibvirtRefused(text, 55, "a_code", "a remedy")
    assert with_cause(TLS, refusal) is refusal


def test_a_cancelled_one_stays_cancelled() -> None:
    refusal = LibvirtRefused(f"{PEER} {TLS}: cancelled by client", OPERATION_ABORTED, "cancelled")
    assert with_cause(TLS, refusal) is refusal


@given(st.text(max_size=300), st.sampled_from(["", f"{PEER} {TLS}: ", f"{PEER} {SSH}: "]))
def test_any_text_gives_one_line_and_a_remedy_or_nothing(text: str, begins: str) -> None:
    known = why(TLS, begins + text)
    assert known is not None or not begins
    if known is not None:
        message, remedy = known
        assert "\n" not in message
        assert remedy
