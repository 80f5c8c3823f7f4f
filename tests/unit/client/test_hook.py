"""``vmtune install-hook`` and ``uninstall-hook``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.client.conftest import Vmtune


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "libvirt").mkdir()
    return tmp_path / "libvirt/hooks"


def test_it_says_what_was_done_and_what_is_left_to_do(vmtune: Vmtune, folder: Path) -> None:
    done = vmtune("install-hook", "--hooks-dir", str(folder))
    assert (done.code, done.err) == (0, "")
    assert f"{folder}/qemu.d/vmtune is installed" in done.out
    assert "at /run/vmtune/vmtune.sock and waits at most 1 s" in done.out
    assert "incoming VMs are accepted untuned" in done.out
    assert "systemctl reload libvirtd" in done.out
    again = vmtune("install-hook", "--hooks-dir", str(folder))
    assert "is unchanged" in again.out
    assert "reload" not in again.out


def test_how_it_behaves_is_what_was_asked_for(vmtune: Vmtune, folder: Path) -> None:
    (folder).mkdir()
    (folder / "qemu").write_text("#!/bin/sh\n")
    (folder / "qemu").chmod(0o755)
    where = ("--hooks-dir", str(folder), "--socket", "/run/other.sock", "--json")
    done = vmtune("install-hook", "--fail-closed", "--timeout", "0.5", *where).document
    assert done == {
        "path": f"{folder}/qemu.d/vmtune",
        "socket": "/run/other.sock",
        "limit_ms": 500,
        "fail_closed": True,
        **{"url": "", "token_file": "", "ca_file": ""},
        "changed": True,
        "reload_libvirt": False,
        "runs_after": f"{folder}/qemu",
    }
    assert "on_failure=refuse" in (folder / "qemu.d/vmtune").read_text()
    said = vmtune("install-hook", "--hooks-dir", str(folder), "--fail-closed").out
    assert "incoming VMs are refused" in said
    assert f"{folder}/qemu runs first" in said


@pytest.mark.parametrize(
    ("text", "limit_ms"), [("1", 1000), ("1s", 1000), ("250ms", 250), ("0.1", 100), ("2.5s", 2500)]
)
def test_the_timeout_is_in_seconds_or_says_in_what(
    vmtune: Vmtune, folder: Path, text: str, limit_ms: int
) -> None:
    done = vmtune("install-hook", "--timeout", text, "--hooks-dir", str(folder), "--json")
    assert done.document["limit_ms"] == limit_ms


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        *((("--timeout", text), "timeout") for text in ("0", "31", "nan", "inf", "soon", "")),
        (("--socket", "/a b"), "socket"),
        (("--service-url", "http://rack9"), "service_url"),
        (("--service-url", "https://rack9", "--hook-token-file", "/nowhere"), "hook_token_file"),
        (("--ca-file", "/ca.pem"), "ca_file"),
    ],
)
def test_what_would_not_work_is_refused_and_nothing_is_written(
    vmtune: Vmtune, folder: Path, arguments: tuple[str, ...], field: str
) -> None:
    refused = vmtune("install-hook", *arguments, "--hooks-dir", str(folder))
    assert refused.code == 1
    assert refused.err.startswith(f"error: {field}: ")
    assert "remedy: " in refused.err
    assert not folder.exists()


def test_away_again(vmtune: Vmtune, folder: Path) -> None:
    vmtune("install-hook", "--hooks-dir", str(folder))
    gone = vmtune("uninstall-hook", "--hooks-dir", str(folder))
    assert gone.out == (f"removed {folder}/qemu.d/vmtune, and {folder}/qemu.d, and {folder}\n")
    assert not folder.exists()
    nothing = vmtune("uninstall-hook", "--hooks-dir", str(folder), "--json")
    assert nothing.code == 0
    assert nothing.document["changed"] is False


def test_another_file_of_the_name_stays(vmtune: Vmtune, folder: Path) -> None:
    (folder / "qemu.d").mkdir(parents=True)
    (folder / "qemu.d/vmtune").write_text("theirs")
    for command in ("install-hook", "uninstall-hook"):
        refused = vmtune(command, "--hooks-dir", str(folder))
        assert refused.code == 1
        assert "exists and is not vmtune's hook" in refused.err
    assert (folder / "qemu.d/vmtune").read_text() == "theirs"


def test_of_a_service_on_another_host(vmtune: Vmtune, folder: Path, tmp_path: Path) -> None:
    token = tmp_path / "hook.token"
    token.write_text("vmt_abc\n")
    token.chmod(0o600)
    where = ("--hook-token-file", str(token), "--hooks-dir", str(folder))
    done = vmtune("install-hook", "--service-url", "https://rack9:8470", *where)
    assert "it asks the service at https://rack9:8470 and waits at most 1 s" in done.out
    assert f"token_file={token}" in (folder / "qemu.d/vmtune").read_text()
