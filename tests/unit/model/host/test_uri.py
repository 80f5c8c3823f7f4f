"""Addresses of hosts: what reaches libvirt, and what does not."""

from __future__ import annotations

import re
from pathlib import PurePath
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.errors import InvalidInput
from vmtune.model.host.uri import check_address, check_uri

KEYS = PurePath("/etc/vmtune/keys")


@pytest.mark.parametrize(
    "uri",
    [
        "qemu:///system",
        "qemu+ssh://root@h.example/system",
        "qemu+tcp://10.0.0.1:16509/system",
        "qemu+tls://[fe80::1]/system",
        "qemu:///system?socket=/run/a/libvirt-sock",
        "qemu+ssh://root@b:22/system?keyfile=/etc/vmtune/keys/b&no_tty=1&sshauth=privkey,agent",
        "qemu+ssh://b/system?known_hosts=/etc/vmtune/keys/b/known&known_hosts_verify=normal",
        "qemu+ssh://b/system?socket=%2Frun%2Flibvirt%2Fsock&proxy=netcat&mode=direct",
        "qemu+tls://b/system?pkipath=/etc/vmtune/keys/b&tls_priority=%40LIBVIRT:SYSTEM",
        "qmp+unix:///run/qmp",
    ],
)
def test_uris_that_vmtune_drives(uri: str) -> None:
    assert check_uri(uri, keys_dir=KEYS) == uri


@pytest.mark.parametrize(
    "uri", ["xen:///", "http://a/b", "qemu+ssh:///system", "qemu:///s;rm -rf", "qmp+unix://", ""]
)
def test_uris_that_it_does_not(uri: str) -> None:
    with pytest.raises(InvalidInput, match="write a libvirt URI"):
        check_uri(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "qemu+ssh://root:hunter2@b/system",
        "qemu+ssh://root:hun/ter2@b/system",
        "qemu+tcp://:hunter2@b/system",
        "qemu+ssh://root:it's@hunter2@b/system",
        "xen://root:hunter2@b",
        "qemu+tcp://b/system?password=hunter2",
        "qemu+tcp://b/system?no_tty=1&authfile=hunter2&no_tty=1",
        "qemu+tcp://b/system?keyfile=/root/hunter2",
        "qemu+tcp://b/system?mode=hunter2",
    ],
)
def test_a_refusal_does_not_say_what_may_be_a_secret(uri: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_uri(uri, keys_dir=KEYS)
    assert not re.search("hunter2|ter2", str(refused.value.problems))
    assert "://" in str(refused.value.problems)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("proxy=netcat&socket=/x%3BCOMMAND%3B%23", "socket"),
        ("proxy=netcat&socket=/x%253Bid", "socket"),
        ("socket=/x%20y", "socket"),
        ("socket=x", "socket"),
        ("socket=/run/../etc/x", "socket"),
        ("socket=", "socket"),
        ("proxy=nc%3Bid", "proxy"),
        ("mode=any", "mode"),
        ("command=/bin/sh", "command"),
        ("netcat=/bin/sh", "netcat"),
        ("no_tty=yes", "no_tty"),
        ("sshauth=password", "sshauth"),
        ("known_hosts_verify=off", "known_hosts_verify"),
        ("tls_priority=%2DX", "tls_priority"),
        ("keyfile=/root/.ssh/id_rsa", "keyfile"),
        ("keyfile=/etc/vmtune/keys", "keyfile"),
        ("keyfile=/etc/vmtune/keys/../../shadow", "keyfile"),
        ("known_hosts=/tmp/mine", "known_hosts"),
        ("pkipath=/tmp", "pkipath"),
        ("socket=/a&socket=/b", "twice"),
        ("%73ocket=/a", "does not pass on"),
    ],
)
@pytest.mark.parametrize("what", ["uri", "peer_uri"])
def test_what_a_shell_or_a_stranger_could_use_is_refused(query: str, says: str, what: str) -> None:
    with pytest.raises(InvalidInput, match=says) as refused:
        check_uri(f"qemu+ssh://root@n2/system?{query}", what, KEYS)
    assert [problem.field for problem in refused.value.problems] == [what]
    assert all(problem.remedy for problem in refused.value.problems)


def test_without_a_folder_no_file_may_be_named() -> None:
    with pytest.raises(InvalidInput, match="keyfile"):
        check_uri("qemu+ssh://b/system?keyfile=/etc/vmtune/keys/b")


@given(st.sampled_from(["socket", "proxy", "mode", "keyfile", "tls_priority"]), st.text())
def test_no_character_of_a_shell_passes(name: str, value: str) -> None:
    """However often it is quoted."""
    for _ in range(3):
        value = quote(value, safe="")
        try:
            check_uri(f"qemu+ssh://b/system?{name}={value}", keys_dir=PurePath("/"))
        except InvalidInput:
            continue
        raw = value
        while (plain := unquote(raw)) != raw:
            raw = plain
        assert not set(raw) & set(" ;|&$`\\\"'<>(){}*?!#~\n\t%")


def test_addresses() -> None:
    assert check_address("10.0.0.1") == "10.0.0.1"
    assert check_address("") == ""
    with pytest.raises(InvalidInput):
        check_address("a;b")
