"""The hook is put beside what others have there, and taken away without a trace."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.unit.api.test_tls import certificate
from vmtune.errors import Conflict, SetupError
from vmtune.hook import HookSettings, Script, install, uninstall

SETTINGS = HookSettings("/run/x.sock", 500, True)
NOBODY = 65534


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where libvirt looks for hooks; not there yet."""
    (tmp_path / "libvirt").mkdir()
    return tmp_path / "libvirt/hooks"


def everything(folder: Path) -> dict[str, tuple[int, str]]:
    """All files and folders at and below, with their modes and contents."""
    return {
        str(place.relative_to(folder)): (
            place.lstat().st_mode,
            "" if place.is_dir() or place.is_symlink() else place.read_text(),
        )
        for place in sorted([folder, *folder.rglob("*")])
    }


def a_hook(path: Path, mode: int = 0o755) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\ncat\n")
    path.chmod(mode)


def test_into_nothing_and_away_again(folder: Path) -> None:
    before = everything(folder.parent)
    done = install(SETTINGS, folder)
    assert (done.changed, done.first, done.before) == (True, True, None)
    assert done.path == folder / "qemu.d/vmtune"
    found = done.path.lstat()
    assert stat.S_ISREG(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == 0o755
    assert found.st_uid == os.geteuid()
    for made in (folder, folder / "qemu.d"):
        assert stat.S_IMODE(made.stat().st_mode) == 0o755
    assert [p.name for p in folder.iterdir()] == ["qemu.d"]  # no draft is left
    text = done.path.read_text()
    assert "\nsocket=/run/x.sock\nurl=\n" in text
    assert "\nlimit_ms=500\non_failure=refuse\n" in text
    gone = uninstall(folder)
    assert gone.changed
    assert gone.folders == (folder / "qemu.d", folder)
    assert everything(folder.parent) == before


def test_twice_is_once_and_other_settings_replace(folder: Path) -> None:
    install(SETTINGS, folder)
    again = install(SETTINGS, folder)
    assert (again.changed, again.first) == (False, False)
    other = install(HookSettings(), folder)
    assert other.changed
    assert "\non_failure=continue\n" in other.path.read_text()
    # Which folders came with it is not forgotten.
    assert len(uninstall(folder).folders) == 2
    assert not folder.exists()
    assert not uninstall(folder).changed


def test_other_hooks_stay_as_they_are(folder: Path) -> None:
    a_hook(folder / "qemu", 0o700)
    a_hook(folder / "qemu.d/50-other")
    a_hook(folder / "network")
    before = everything(folder)
    done = install(SETTINGS, folder)
    assert (done.first, done.before) == (False, folder / "qemu")
    assert uninstall(folder).folders == ()
    assert everything(folder) == before


def test_an_empty_folder_that_was_there_stays(folder: Path) -> None:
    (folder / "qemu.d").mkdir(parents=True)
    assert install(SETTINGS, folder).first
    uninstall(folder)
    assert (folder / "qemu.d").is_dir()


def test_a_folder_with_something_else_in_it_stays(folder: Path) -> None:
    install(SETTINGS, folder)
    a_hook(folder / "qemu.d/later")
    assert uninstall(folder).folders == ()
    assert [p.name for p in (folder / "qemu.d").iterdir()] == ["later"]


def test_what_libvirt_would_not_run_is_no_hook(folder: Path) -> None:
    a_hook(folder / "qemu", 0o644)
    done = install(SETTINGS, folder)
    assert (done.first, done.before) == (True, None)


def test_the_mode_is_corrected(folder: Path) -> None:
    path = install(SETTINGS, folder).path
    path.chmod(0o644)
    assert install(SETTINGS, folder).changed
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_one_that_a_package_shipped_is_ours(folder: Path) -> None:
    path = folder / "qemu.d/vmtune"
    a_hook(path)
    path.write_text(Script.shipped().text)
    assert install(HookSettings(), folder).changed is False
    assert install(SETTINGS, folder).changed
    assert uninstall(folder).folders == ()


def test_one_whose_settings_somebody_edited_is_ours(folder: Path) -> None:
    path = install(SETTINGS, folder).path
    path.write_text(path.read_text().replace("limit_ms=500", "limit_ms=' broken"))
    assert install(SETTINGS, folder).changed
    path.write_text(path.read_text().replace("limit_ms=500", "limit_ms=700"))
    assert len(uninstall(folder).folders) == 2


@pytest.mark.parametrize("what", ["other", "edited", "binary", "link", "dangling", "folder"])
def test_what_is_not_ours_is_left_alone(folder: Path, what: str) -> None:
    path = install(SETTINGS, folder).path
    text = path.read_text()
    path.unlink()
    code = "hook_taken"
    match what:
        case "other":
            a_hook(path)
        case "edited":
            path.write_text(text.replace("exit 1", "exit 2"))
            code = "hook_edited"
        case "binary":
            path.write_bytes(b"\x7fELF\xff\xfe")
        case "link":
            (folder.parent / "real").write_text(text)
            path.symlink_to(folder.parent / "real")
        case "dangling":
            path.symlink_to(folder.parent / "nowhere")
        case "folder":
            path.mkdir()
    if what != "binary":
        before = everything(folder.parent)
    for call in (lambda: install(HookSettings(), folder), lambda: uninstall(folder)):
        with pytest.raises(Conflict) as refused:
            call()
        (problem,) = refused.value.problems
        assert (problem.field, problem.code) == ("hooks_dir", code)
        assert str(path) in problem.message
        assert problem.remedy
    if what != "binary":
        assert everything(folder.parent) == before


@pytest.mark.parametrize(
    ("which", "how", "why"),
    [
        ("hooks", "link", "is not a folder but a link"),
        ("qemu.d", "link", "is not a folder but a link"),
        ("qemu.d", "file", "is not a folder"),
        ("hooks", "open", "is writable by other users"),
        ("qemu.d", "group", "is writable by other users"),
        ("qemu.d", "theirs", "belongs to user 65534"),
    ],
)
def test_an_unsafe_folder_is_refused(folder: Path, which: str, how: str, why: str) -> None:
    if how == "theirs" and os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    place = folder if which == "hooks" else folder / which
    place.parent.mkdir(exist_ok=True)
    if how == "link":
        (folder.parent / "real").mkdir()
        place.symlink_to(folder.parent / "real")
    elif how == "file":
        place.write_text("")
    else:
        place.mkdir()
        place.chmod({"open": 0o777, "group": 0o775}.get(how, 0o755))
        if how == "theirs":
            os.chown(place, NOBODY, NOBODY)
    before = everything(folder.parent)
    for call in (lambda: install(SETTINGS, folder), lambda: uninstall(folder)):
        with pytest.raises(SetupError, match=why) as refused:
            call()
        (problem,) = refused.value.problems
        assert (problem.code, bool(problem.remedy)) == ("unsafe_folder", True)
    assert everything(folder.parent) == before


def test_without_libvirt_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(SetupError) as refused:
        install(SETTINGS, tmp_path / "nowhere/hooks")
    assert refused.value.problems[0].code == "no_libvirt"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_may_not_be_written_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir()

    def refuse(_self: Path, _to: Path) -> Path:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(SetupError, match="Permission denied") as refused:
        install(SETTINGS, folder)
    assert "as root" in refused.value.problems[0].remedy
    assert not any(path.is_file() for path in folder.rglob("*"))


def secrets(folder: Path) -> HookSettings:
    """A token and a certificate that can be used."""
    token = folder / "token"
    token.write_text("vmt_abc\n")
    token.chmod(0o600)
    cert, _ = certificate(folder)
    return HookSettings("/s", 500, False, "https://rack9", str(token), str(cert))


def test_of_a_service_on_another_host(folder: Path, tmp_path: Path) -> None:
    text = install(secrets(tmp_path), folder).path.read_text()
    assert f"\nurl=https://rack9\ntoken_file={tmp_path}/token\n" in text
    assert "vmt_abc" not in text


@pytest.mark.parametrize(
    ("how", "field"),
    [
        *(("missing", "hook_token_file"), ("readable", "hook_token_file")),
        *(
            ("empty", "hook_token_file"),
            ("two", "hook_token_file"),
            ("a folder", "hook_token_file"),
        ),
        *(("long", "hook_token_file"), ("binary", "hook_token_file")),
        ("other end of line", "hook_token_file"),
        *(("no authority", "ca_file"), ("no certificate", "ca_file")),
    ],
)
def test_what_could_not_be_used_is_refused_before_anything_is_written(
    folder: Path, tmp_path: Path, how: str, field: str
) -> None:
    settings = secrets(tmp_path)
    token = Path(settings.token_file)
    match how:
        case "missing":
            token.unlink()
        case "readable":
            token.chmod(0o640)
        case "a folder":
            token.unlink()
            token.mkdir(0o700)
        case "no authority":
            Path(settings.ca_file).unlink()
        case "no certificate":
            Path(settings.ca_file).write_text("none")
        case _:
            contents = {
                "empty": b"",
                "two": b"a\nb\n",
                "long": b"a" * 5000,
                "binary": b"\xff",
                "other end of line": b"a\r\n",
            }
            token.write_bytes(contents[how])
    with pytest.raises(SetupError) as refused:
        install(settings, folder)
    assert [(p.field, bool(p.remedy)) for p in refused.value.problems] == [(field, True)]
    assert not folder.exists()
