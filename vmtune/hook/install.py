"""Installs the hook where libvirt looks for it, and removes it.

Other programs' files are never changed: other hooks, a file of the same name that is not ours, and
an edited one of ours are kept.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from vmtune.errors import Conflict, SetupError
from vmtune.hook.script import FOLDERS, HookSettings, Script
from vmtune.hook.secrets import check_certificates, check_token

FOLDER = Path("/etc/libvirt/hooks")
NAME = "vmtune"
_PARTS = FOLDERS[1]
_MODE = 0o755
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Installed:
    """The result of an installation.

    :param changed: the file is new, or other than before.
    :param first: there was no hook for QEMU before: libvirt may not look for any until it is
        reloaded. (It looks which kinds of hooks there are when it starts and at SIGHUP;
        libvirt src/util/virhook.c.)
    :param before: another hook that runs first: ours gets the XML as that one left it.
    """

    path: Path
    settings: HookSettings
    changed: bool
    first: bool
    before: Path | None


@dataclass(frozen=True, slots=True)
class Removed:
    """What became of a removal.

    :param folders: that went with it, because they came with it.
    """

    path: Path
    folders: tuple[Path, ...]
    changed: bool = True


def install(settings: HookSettings, folder: Path = FOLDER) -> Installed:
    """Put the hook into *folder*, or set the one that is there to *settings*.

    :param folder: where libvirt looks for hooks.
    :raise SetupError: there is no libvirt, or the folder is not safe or not writable; or the token
        or the certificates cannot be used.
    :raise Conflict: a file of that name is not ours, or was edited.
    """
    path = folder / _PARTS / NAME
    if settings.url:
        check_token(Path(settings.token_file))
        if settings.ca_file:
            check_certificates(Path(settings.ca_file))
    with _os_errors_reported(folder):
        _check_places(folder)
        there = _ours(path)
        first = not _hooks(folder)
        made = there.came_with if there else _missing(folder)
        script = Script.shipped().with_settings(settings, made)
        kept = path.is_file() and stat.S_IMODE(path.stat().st_mode) == _MODE
        changed = there is None or there.text != script.text or not kept
        if changed:
            _put(script.text, path)
    main = folder / "qemu"
    return Installed(path, settings, changed, first, main if os.access(main, os.X_OK) else None)


def uninstall(folder: Path = FOLDER) -> Removed:
    """Remove the hook, with the folders that were made for it if nothing else is in them.

    :raise SetupError: the folder is not safe or not writable.
    :raise Conflict: the file of that name is not ours, or was edited.
    """
    path = folder / _PARTS / NAME
    with _os_errors_reported(folder):
        _check_places(folder)
        there = _ours(path)
        if there is None:
            return Removed(path, (), changed=False)
        path.unlink()
        gone = []
        for name, place in reversed(_places(folder).items()):
            if name in there.came_with:
                with suppress(OSError):  # something else is in it by now
                    place.rmdir()
                    gone.append(place)
    return Removed(path, tuple(gone))


@contextmanager
def _os_errors_reported(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or folder
        raise SetupError(
            f"{where}: {error.strerror}",
            field="hooks_dir",
            remedy="run it as root, or use another folder with --hooks-dir",
        ) from error


def _check_places(folder: Path) -> None:
    """Refuse folders in which other users could put a hook of their own, which libvirt
    would run as root."""
    if not folder.parent.is_dir():
        raise SetupError(
            f"the folder {folder.parent} does not exist",
            field="hooks_dir",
            code="no_libvirt",
            remedy="install libvirt first, or set libvirt's folder of hooks with --hooks-dir",
        )
    for place in _places(folder).values():
        try:
            found = place.lstat()
        except FileNotFoundError:
            continue
        why = ""
        if not stat.S_ISDIR(found.st_mode):
            why = "is not a folder" + (" but a link" if stat.S_ISLNK(found.st_mode) else "")
        elif found.st_uid not in (0, os.geteuid()):
            why = f"belongs to user {found.st_uid}"
        elif found.st_mode & _OTHERS_WRITE:
            why = "is writable by other users than its owner"
        if why:
            raise SetupError(
                f"{place} {why}: libvirt runs its content as root",
                field="hooks_dir",
                code="unsafe_folder",
                remedy=f"make root its only writer with `chown root {place}` and "
                f"`chmod 755 {place}`",
            )


def _ours(path: Path) -> Script | None:
    """The hook that is there; None where there is none.

    :raise Conflict: what is there is not ours, or not ours any more.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    script = None
    if stat.S_ISREG(found.st_mode):
        script = Script.read(path.read_bytes().decode(errors="replace"))
    if script is None:
        raise Conflict(
            f"{path} exists and is not vmtune's hook",
            field="hooks_dir",
            code="hook_taken",
            remedy="move the file away if it is not needed",
        )
    if script.edited:
        raise Conflict(
            f"{path} was edited after vmtune wrote it",
            field="hooks_dir",
            code="hook_edited",
            remedy="check the changes; move the file away to continue",
        )
    return script


def _hooks(folder: Path) -> list[Path]:
    """The hooks for QEMU that libvirt would run."""
    parts = folder / _PARTS
    places = [folder / "qemu", *(parts.iterdir() if parts.is_dir() else ())]
    return [place for place in places if place.is_file() and os.access(place, os.X_OK)]


def _missing(folder: Path) -> tuple[str, ...]:
    return tuple(name for name, place in _places(folder).items() if not place.is_dir())


def _places(folder: Path) -> dict[str, Path]:
    return dict(zip(FOLDERS, (folder, folder / _PARTS), strict=True))


def _put(text: str, path: Path) -> None:
    """Write a file in one step: libvirt sees all of it or none."""
    for place in _places(path.parent.parent).values():
        if not place.is_dir():
            place.mkdir()
            place.chmod(_MODE)
    # Not made where libvirt would run it too.
    handle, name = tempfile.mkstemp(prefix=f".{NAME}-", dir=path.parent.parent)
    draft = Path(name)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(_MODE)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
