"""The backup file: a zip archive with a manifest, checked before it is used."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from vmtune.documents.dataclass_json import from_json, to_json
from vmtune.errors import InvalidInput, SetupError

FORMAT = 1
MANIFEST = "vmtune-backup.json"
_MAX_MANIFEST_BYTES = 1 << 20
_PIECE = 1 << 20
_PRIVATE = 0o600
_ENDINGS = (".db", ".dump")


@dataclass(frozen=True, slots=True)
class Member:
    """A file in the archive.

    :param name: ``records.db`` and ``jobs.db`` of SQLite, ``records.dump`` and ``jobs.dump`` of
        PostgreSQL (pg_dump's custom format; the records' holds data alone).
    """

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the archive says of itself.

    :param vmtune: the version that made it.
    :param kind: of the database that the records were in: sqlite or postgresql.
    :param revision: of the records' schema.
    :param rows: how many each table of the records had.
    """

    vmtune: str
    kind: str
    revision: str
    made_at: datetime
    rows: Mapping[str, int]
    members: tuple[Member, ...]

    @property
    def has_jobs(self) -> bool:
        """Whether the jobs' database is in it: no service had run where it is not."""
        return any(member.name.startswith("jobs.") for member in self.members)


def measured(file: Path) -> Member:
    """A file as a member."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while piece := opened.read(_PIECE):
            digest.update(piece)
    return Member(file.name, file.stat().st_size, digest.hexdigest())


@contextmanager
def temporary_folder(file: Path) -> Iterator[Path]:
    """A private folder next to *file* to make it in; removed afterwards. One that a killed process
    left is removed, too.

    :raise SetupError: it cannot be made.
    """
    prefix = f".{file.name}.partial-"
    folder = file.parent / f"{prefix}{os.getpid()}"
    try:
        for left in file.parent.glob(f"{prefix}*"):
            if not Path("/proc", left.name.removeprefix(prefix)).exists():
                shutil.rmtree(left, ignore_errors=True)
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise _cannot(file.parent, error) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write(to: Path, manifest: Manifest, folder: Path) -> None:
    """Make the archive of the members in *folder*, and give it its name once it is whole.

    :raise SetupError: it cannot be written.
    """
    made = folder / "archive"
    try:
        with os.fdopen(os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL, _PRIVATE), "w+b") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                archive.writestr(MANIFEST, _text(manifest))
                for member in manifest.members:
                    archive.write(folder / member.name, member.name)
            file.flush()
            os.fsync(file.fileno())
        os.replace(made, to)
        at = os.open(to.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(at)
        finally:
            os.close(at)
    except OSError as error:
        raise _cannot(to, error) from error


def read(file: Path) -> Manifest:
    """What an archive says of itself.

    :raise InvalidInput: it is none, or of a later format.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            if archive.getinfo(MANIFEST).file_size > _MAX_MANIFEST_BYTES:
                raise _no_backup(file, "its manifest is too long")
            return _manifest(file, archive.read(MANIFEST))
    except OSError as error:
        raise InvalidInput(
            f"{file} cannot be read: {error.strerror}",
            field="file",
            remedy="name a file that `vmtune db backup` made",
        ) from error
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError, ValueError) as error:
        raise _no_backup(file, str(error)) from error


def unpack(file: Path, manifest: Manifest, into: Path) -> None:
    """Unpack the members and verify their checksums.

    :raise InvalidInput: one is missing or damaged.
    :raise SetupError: they cannot be written.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            for member in manifest.members:
                _unpack(archive, member, into, file)
    except OSError as error:
        raise _cannot(into, error) from error
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise _no_backup(file, str(error)) from error


def _unpack(archive: zipfile.ZipFile, member: Member, into: Path, file: Path) -> None:
    target = into / member.name
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    left = member.bytes
    with os.fdopen(descriptor, "wb") as out, archive.open(member.name) as packed:
        while piece := packed.read(_PIECE):
            left -= len(piece)
            if left < 0:
                break
            out.write(piece)
    if left or measured(target) != member:
        raise _no_backup(file, f"{member.name} in it is damaged")


def _text(manifest: Manifest) -> str:
    return json.dumps({"format": FORMAT, **to_json(manifest)}, indent=1)


def _manifest(file: Path, text: bytes) -> Manifest:
    raw = json.loads(text)
    found = raw.pop("format", None) if isinstance(raw, dict) else None
    if found != FORMAT:
        raise InvalidInput(
            f"{file} is a backup of format {found!r}, and this vmtune reads {FORMAT}",
            field="file",
            code="backup_format",
            remedy="restore it with the version of vmtune that made it",
        )
    try:
        manifest = from_json(Manifest, raw)
    except InvalidInput as error:
        raise _no_backup(file, str(error.problems[0])) from error
    names = sorted(member.name for member in manifest.members)
    known = [["records" + ending] for ending in _ENDINGS]
    known += [["jobs" + one, "records" + other] for one in _ENDINGS for other in _ENDINGS]
    if names not in known:
        raise _no_backup(file, f"it has {', '.join(names) or 'no members'}")
    return manifest


def _no_backup(file: Path, why: str) -> InvalidInput:
    return InvalidInput(
        f"{file} is damaged, or no backup of vmtune: {why}",
        field="file",
        code="no_backup",
        remedy="name a file that `vmtune db backup` made, or a copy of it",
    )


def _cannot(where: Path, error: OSError) -> SetupError:
    return SetupError(
        f"{where}: {error.strerror or error}",
        field="file",
        code="cannot_write",
        remedy="name a file in a folder that this user may write, with space left for it",
    )
