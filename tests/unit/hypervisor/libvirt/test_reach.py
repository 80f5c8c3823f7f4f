"""Why a host is not reached, told from libvirt's words. The lab provokes most of them again."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.hypervisor.libvirt.errors import unreachable
from vmtune.hypervisor.libvirt.reach import CAUSES, Remote, explain, said

SSH, TLS = "qemu+ssh://op@rack2/system", "qemu+tls://rack2/system"


@pytest.mark.parametrize(
    ("uri", "text", "cause", "remedy"),
    [
        (
            SSH,
            "End of file while reading data: virt-ssh-helper: cannot connect to "
            "'/var/run/libvirt/libvirt-sock': Failed to connect socket to "
            "'/var/run/libvirt/libvirt-sock': Connection refused: Input/output error",
            "libvirt's daemon does not run on rack2",
            "virtqemud.socket",
        ),
        (
            "qemu+tls://rack2/system",  # virtproxyd runs, virtqemud does not
            "Failed to connect socket to '/var/run/libvirt/virtqemud-sock': No such file or "
            "directory",
            "libvirt's daemon does not run on rack2",
            "virtqemud.socket",
        ),
        (
            SSH,  # virtqemud was killed, and its socket is still there
            "Failed to connect socket to '/var/run/libvirt/virtqemud-sock': Connection refused",
            "libvirt's daemon does not run on rack2",
            "virtqemud.socket",
        ),
        (
            SSH,
            "End of file while reading data: virt-ssh-helper: cannot connect to "
            "'/var/run/libvirt/libvirt-sock': Failed to connect socket to "
            "'/var/run/libvirt/libvirt-sock': Permission denied: Input/output error",
            "the user of op@rack2 may not use libvirt on rack2",
            "usermod",
        ),
        (
            "qemu+libssh://rack2/system",
            "libssh transport error: No user interaction callback provided: "
            "Can't verify the session host key",
            "SSH does not know the host key of rack2",
            "ssh rack2 true",
        ),
        (
            f"{SSH}?keyfile=/etc/vmtune/keys/rack2",
            "Cannot recv data: op@rack2: Permission denied (publickey).: Connection reset by peer",
            "rack2 does not accept the SSH key",
            "ssh-copy-id -i /etc/vmtune/keys/rack2 op@rack2",
        ),
        (
            SSH,
            "Cannot recv data: ssh: connect to host rack2 port 22: Connection timed out: "
            "Connection reset by peer",
            "rack2 does not answer on the network",
            "ping rack2",
        ),
        (
            TLS,
            "The client certificate /etc/pki/libvirt/clientcert.pem has expired",
            "the client certificate of the service's machine is not valid today",
            "openssl x509 -noout -dates",
        ),
        (
            "qemu+libssh2://op@rack2/system",
            "authentication failed: All provided authentication methods with credentials were "
            "rejected by the server",
            "rack2 does not accept the SSH key",
            "ssh-copy-id op@rack2",
        ),
        (
            SSH,
            "authentication unavailable: no polkit agent available to authenticate action "
            "'org.libvirt.unix.manage'",
            "the user of op@rack2 may not use libvirt on rack2",
            "usermod --append --groups libvirt op",
        ),
        (
            "qemu+tcp://rack2/system",
            "authentication failed: authentication failed",
            "rack2 does not accept the name and password",
            "saslpasswd2",
        ),
        (
            TLS,
            "The server certificate /x/servercert.pem has expired",
            "the certificate of rack2 is not one for rack2",
            "openssl s_client -connect rack2:16514",
        ),
        (
            "qemu+tcp://rack2/system",
            "authentication failed: Failed to start SASL negotiation: -4 "
            "(SASL(-4): no mechanism available: No worthy mechs found)",
            "rack2 wants a name and a password",
            "auth.conf",
        ),
    ],
)
def test_a_cause_is_told_with_what_mends_it(uri: str, text: str, cause: str, remedy: str) -> None:
    (problem,) = unreachable(uri, 38, text).problems
    assert cause in problem.message
    assert remedy in problem.remedy


def test_what_no_row_knows_is_passed_on_with_libvirts_words() -> None:
    (problem,) = unreachable(SSH, 38, "internal error: something new").problems
    assert problem.message == f"no connection to {SSH}: something new"
    assert explain("qemu:///system", "Connection refused") is None


def test_the_ports_are_those_of_the_transport_or_the_uri() -> None:
    assert Remote.of(TLS) == Remote("tls", "rack2", 16514, "rack2")
    assert Remote.of("qemu+ssh://op@[fd00::2]:2222/system") == Remote(
        "ssh", "fd00::2", 2222, "op@fd00::2"
    )
    assert Remote.of("qemu:///system") is None


def test_a_banner_becomes_one_line() -> None:
    text = "Cannot recv data: @@@@@@@\n@  WARNING: CHANGED!  @\n@@@@@@@\nSHA256:x.\n"
    assert said(text) == "WARNING: CHANGED! SHA256:x."


@given(st.text(max_size=400), st.sampled_from([SSH, TLS, "qemu+tcp://rack2/system"]))
def test_any_text_gives_one_line_and_a_remedy(text: str, uri: str) -> None:
    (problem,) = unreachable(uri, 38, text).problems
    assert "\n" not in problem.message
    assert problem.remedy


@pytest.mark.parametrize("row", CAUSES, ids=lambda row: row.cause[:40])
def test_no_row_leaves_a_place_unfilled(row: object) -> None:
    for uri in (SSH, TLS, "qemu+tcp://rack2/system"):
        for each in CAUSES:
            # The pattern's first alternative, as a text in which it is found.
            text = re.sub(r"\\(.)", r"\1", each.says.split("|")[0])
            found = explain(uri, text)
            if found is not None:
                assert "{" not in "".join(found)
