"""What libvirt's errors mean, and how a host's URI is used."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import pytest

from vmtune.errors import (
    CommandRefused,
    NotFound,
    OutcomeUnknown,
    SetupError,
    VmtuneError,
)
from vmtune.hypervisor.libvirt import errors as libvirt_errors
from vmtune.hypervisor.libvirt import library as libvirt_library
from vmtune.hypervisor.libvirt.calls.opening import without_questions
from vmtune.hypervisor.libvirt.driver import LibvirtDriver
from vmtune.hypervisor.libvirt.errors import translate, unreachable
from vmtune.hypervisor.libvirt.host import derive_peer_uri


@pytest.mark.parametrize(
    ("number", "alive", "kind", "code"),
    [
        (libvirt_errors.NO_DOMAIN, True, NotFound, "not_found"),
        (libvirt_errors.OPERATION_TIMEOUT, True, CommandRefused, "busy"),
        (libvirt_errors.OPERATION_INVALID, True, CommandRefused, "command_refused"),
        (88, True, CommandRefused, "access_denied"),
        (38, True, CommandRefused, "command_refused"),
        (38, False, OutcomeUnknown, "outcome_unknown"),
        (libvirt_errors.NO_DOMAIN, False, OutcomeUnknown, "outcome_unknown"),
    ],
)
def test_libvirts_errors_by_what_they_mean(
    number: int, alive: bool, kind: type[VmtuneError], code: str
) -> None:
    error = translate(number, "libvirt's words", alive, "qemu:///system")
    assert isinstance(error, kind)
    assert error.problems[0].code == code
    assert "libvirt's words" in error.message


@pytest.mark.parametrize(
    ("uri", "number", "hint"),
    [
        ("qemu:///system", 38, "start libvirtd"),
        ("qemu+unix:///system?socket=/x", 38, "start libvirtd"),
        ("qemu+ssh://root@a/system", 38, "virsh -c 'qemu+ssh://root@a/system'"),
        ("qemu+tls://a/system", 7, "listens there"),
        ("qemu+tcp://a/system", 45, "credentials"),
    ],
)
def test_no_connection_says_what_to_do(uri: str, number: int, hint: str) -> None:
    (problem,) = unreachable(uri, number, "why").problems
    assert uri in problem.message
    assert problem.field == "uri"
    assert hint in problem.remedy


@pytest.mark.parametrize(
    "why",
    [
        "authentication unavailable: no polkit agent available to authenticate action "
        "'org.libvirt.unix.manage'",
        "Failed to connect socket to '/run/libvirt/libvirt-sock': Permission denied",
    ],
)
def test_a_user_who_is_not_let_in_is_told_the_group(why: str) -> None:
    (problem,) = unreachable("qemu:///system", 79, why).problems
    assert "may not use libvirt on this machine" in problem.message
    assert "usermod --append --groups libvirt" in problem.remedy


@pytest.mark.parametrize(
    ("uri", "peer"),
    [
        ("qemu:///system", ""),
        ("qemu+unix:///system?socket=/run/x", ""),
        ("qemu+tcp://localhost/system", ""),
        ("qemu+tcp://127.0.0.1:16509/system", ""),
        ("qemu+tcp://[::1]/system", ""),
        ("qemu+tls://b.example/system", "qemu+tls://b.example/system"),
        ("qemu+ssh://root@b:22/system?keyfile=/k&no_tty=1", "qemu+ssh://root@b:22/system"),
    ],
)
def test_a_peer_uri_is_derived_only_from_a_name_that_others_know(uri: str, peer: str) -> None:
    assert derive_peer_uri(uri) == peer
    assert LibvirtDriver(uri, peer_uri="qemu+tls://x/system").peer_uri == "qemu+tls://x/system"


@pytest.mark.parametrize(
    ("uri", "opened"),
    [
        ("qemu:///system", "qemu:///system"),
        ("qemu+ssh://a/system", "qemu+ssh://a/system?no_tty=1"),
        ("qemu+ssh://a/system?keyfile=/k", "qemu+ssh://a/system?keyfile=/k&no_tty=1"),
        ("qemu+ssh://a/system?no_tty=0", "qemu+ssh://a/system?no_tty=0"),
    ],
)
def test_ssh_is_not_let_ask(uri: str, opened: str) -> None:
    assert without_questions(uri) == opened


def test_without_libvirt_python_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import: Callable[..., Any] = builtins.__import__

    def no_libvirt(name: str, *rest: Any, **more: Any) -> Any:
        if name == "libvirt":
            raise ImportError("No module named 'libvirt'")
        return real_import(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", no_libvirt)
    with pytest.raises(SetupError) as missing:
        libvirt_library.load_library.__wrapped__()
    assert "libvirt-dev" in missing.value.problems[0].remedy
