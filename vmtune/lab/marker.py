"""The lab's marker: what the lab made, written before it is made.

``down`` removes what the marker names and nothing else, so the marker is
renewed before each step of ``up``, and lies in the lab's folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from vmtune.errors import LabError

MARKER_NAME = "vmtune-lab.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class NamespaceMark:
    """A network namespace of the lab.

    :param inode: of the namespace in the kernel; 0 while it is being made.
    """

    name: str
    inode: int = 0


@dataclass(frozen=True, slots=True)
class Marker:
    """What a lab has made.

    :param boot_id: of the kernel it was made on: namespaces end with that.
    :param settings: a text that is the same for the same settings.
    :param made_folder: the lab's folder was not there before.
    :param made_netns_folder: nor was /run/netns.
    :param complete: ``up`` came to its end.
    """

    boot_id: str
    settings: str
    made_folder: bool
    made_netns_folder: bool = False
    namespaces: tuple[NamespaceMark, ...] = ()
    complete: bool = False

    def write(self, folder: Path) -> None:
        """Renew the marker of the lab in ``folder``, wholly or not at all."""
        data = {
            "format": _FORMAT,
            "boot_id": self.boot_id,
            "settings": self.settings,
            "made_folder": self.made_folder,
            "made_netns_folder": self.made_netns_folder,
            "namespaces": [[mark.name, mark.inode] for mark in self.namespaces],
            "complete": self.complete,
        }
        new = folder / f"{MARKER_NAME}.new"
        new.write_text(json.dumps(data, indent=1) + "\n")
        new.replace(folder / MARKER_NAME)

    def with_namespace(self, name: str, inode: int) -> Marker:
        """This marker, with what is known of one namespace set."""
        others = tuple(mark for mark in self.namespaces if mark.name != name)
        return replace(self, namespaces=(*others, NamespaceMark(name, inode)))

    def without_namespace(self, name: str) -> Marker:
        """This marker, without one namespace."""
        others = tuple(mark for mark in self.namespaces if mark.name != name)
        return replace(self, namespaces=others)


def boot_id() -> str:
    """The identity of this start of the kernel."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def read_marker(folder: Path) -> Marker | None:
    """The marker of the lab in ``folder``; None when there is no lab.

    :raise LabError: the folder belongs to another user, or its marker cannot
        be read.
    """
    try:
        text = (folder / MARKER_NAME).read_text()
    except FileNotFoundError:
        if folder.is_dir() and not any(folder.iterdir()):
            return None
        if not os.path.lexists(folder):
            return None
        raise _foreign(folder) from None
    except NotADirectoryError:
        raise _foreign(folder) from None
    except OSError as error:
        remedy = "run it with sudo" if isinstance(error, PermissionError) else ""
        raise LabError(f"{folder}: {error.strerror}", field="folder", remedy=remedy) from error
    try:
        data = json.loads(text)
        if data["format"] != _FORMAT:
            raise ValueError("it is of another version")
        return Marker(
            boot_id=str(data["boot_id"]),
            settings=str(data["settings"]),
            made_folder=bool(data["made_folder"]),
            made_netns_folder=bool(data["made_netns_folder"]),
            namespaces=tuple(NamespaceMark(str(n), int(i)) for n, i in data["namespaces"]),
            complete=bool(data["complete"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise LabError(
            f"the marker {folder / MARKER_NAME} cannot be read: {error}",
            field="folder",
            code="marker_unreadable",
            remedy="look what is running in the lab's namespaces, then remove the folder by hand",
        ) from error


def remove_folder(folder: Path, marker: Marker) -> None:
    """Empty the lab's folder, and remove it if the lab made it.

    The marker goes last: if this fails or is interrupted, the rest stays recognisable.

    :raise LabError: a program writes there meanwhile, or a file cannot be removed.
    """
    own = folder / MARKER_NAME
    try:
        for entry in folder.iterdir():
            if entry == own:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        own.unlink()
        if marker.made_folder:
            folder.rmdir()
    except OSError as error:
        if not own.exists():
            marker.write(folder)
        raise LabError(
            f"cannot remove what is in {folder}: {error.strerror}: {error.filename}",
            field="folder",
            remedy="end the program that writes there, then run `vmtune lab down` again",
        ) from error


@contextmanager
def locked(folder: Path, timeout_s: float = 60) -> Iterator[int]:
    """Hold the lab in ``folder`` against other ups and downs; gives the lock's descriptor.

    The lock is on the folder itself and ends with the process, so that nothing
    stays behind; a program that is given the descriptor holds it, too, until it ends.

    :raise LabError: another holds it for longer than ``timeout_s``.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    deadline = time.monotonic() + timeout_s
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LabError(
                        f"another process is bringing the lab in {folder} up or down",
                        field="folder",
                        code="lab_busy",
                        remedy="wait for it to end",
                    ) from None
                time.sleep(0.05)
        yield descriptor
    finally:
        os.close(descriptor)


def _foreign(folder: Path) -> LabError:
    return LabError(
        f"{folder} is there and is not a lab's folder",
        field="folder",
        code="folder_taken",
        remedy="name another folder, or remove it",
    )
