"""Sysctls of this machine: the live value and sysctl.d's, with a journal of what was before.

Each change is journaled first, then written for the next boot, then made; and the journal's entry
goes last. A repeat completes a change that was interrupted anywhere in between.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vmtune.errors import CommandRefused, SetupError
from vmtune.model.host.limits import SYSCTLS, Entry, Floor, Step, Wish, next_step

PROC_SYS = Path("/proc/sys")
SYSCTL_D = Path("/etc/sysctl.d")
FILE_NAME = "99-vmtune.conf"
"""After 99-sysctl.conf, which is /etc/sysctl.conf on Debian: what comes last holds."""
_HEADER = "# Written by vmtune; `vmtune host limits HOST --restore` takes it back.\n"
_MAX_BYTES = 1 << 16

Wishes = Mapping[str, Wish]
Journal = Mapping[str, Entry]


class Sysctls:
    """Writes the sysctls of :data:`~vmtune.model.host.limits.SYSCTLS`. Needs root for the real
    ones. Safe for several processes at once, which wait for each other.

    :param journal: the file that remembers what was before; its folder has to exist.
    :param proc: where the kernel's settings are; *etc* those for the next boot.
    """

    def __init__(self, journal: Path, proc: Path = PROC_SYS, etc: Path = SYSCTL_D) -> None:
        self._journal = journal
        self._proc = proc
        self._file = etc / FILE_NAME

    def live(self) -> dict[str, int]:
        """Each one's value right now; those that cannot be read are left out."""
        found: dict[str, int] = {}
        for name, sysctl in SYSCTLS.items():
            try:
                found[name] = int((self._proc / sysctl.path).read_text())
            except (OSError, ValueError):
                continue
        return found

    def journal(self) -> dict[str, Entry]:
        """What was changed and not yet restored.

        :raise SetupError: the journal cannot be understood.
        """
        return read_journal(self._journal)

    def reach(self, wishes: Wishes) -> None:
        """Set every limit to its requested value.

        :raise CommandRefused: the kernel or a file system does not take it: what was begun is in
            the journal, and is completed or restored by the next call.
        """
        with self._alone():
            entries = self.journal()
            live = self.live()
            # Also those without a request.
            names = [name for name in SYSCTLS if name in wishes or name in entries]
            steps = {
                name: next_step(wishes.get(name, Wish()), entries.get(name), live[name])
                for name in names
                if name in live
            }
            self._apply(steps, entries)

    def _apply(self, steps: Mapping[str, Step], entries: dict[str, Entry]) -> None:
        for name, step in steps.items():
            if step.entry is not None:
                entries[name] = step.entry
        self._save(entries)
        self._keep({name: step.keep for name, step in steps.items() if step.keep is not None})
        for name, step in steps.items():
            if step.write is not None:
                self._write(name, step.write)
        left = {n: e for n, e in entries.items() if n not in steps or not steps[n].done}
        if left != entries:
            self._save(left)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        path = self._journal.with_suffix(".lock")
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise _refused(path, error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _save(self, entries: Journal) -> None:
        text = json.dumps({name: asdict(entry) for name, entry in entries.items()}, indent=1)
        if entries or self._journal.exists():
            write_file(self._journal, text + "\n", 0o644)

    def _keep(self, values: Mapping[str, int]) -> None:
        """Have these values at the next boot, and no other of vmtune's."""
        try:
            if self._file.exists() and not self._file.read_text().startswith(_HEADER):
                raise CommandRefused(
                    f"{self._file} is there, and vmtune has not written it",
                    field="host", code="foreign_file", remedy="rename it to another .conf file",
                )  # fmt: skip
            if not values:
                self._file.unlink(missing_ok=True)
                return
        except OSError as error:
            raise _refused(self._file, error) from error
        lines = [f"{SYSCTLS[name].name} = {value}\n" for name, value in sorted(values.items())]
        text = _HEADER + "".join(lines)
        if not self._file.exists() or self._file.read_text() != text:
            write_file(self._file, text, 0o644)

    def _write(self, name: str, value: int) -> None:
        path = self._proc / SYSCTLS[name].path
        try:
            path.write_text(f"{value}\n")
            seen = int(path.read_text())
        except (OSError, ValueError) as error:
            raise _refused(path, error) from error
        if seen != value:
            raise CommandRefused(
                f"{SYSCTLS[name].name} was set to {value} and is {seen}",
                field=f"values.{name}", code="not_taken", remedy="see what else sets it",
            )  # fmt: skip


def read_journal(path: Path) -> dict[str, Entry]:
    """A journal's entries; none where there is no journal.

    :raise SetupError: it cannot be read or understood.
    """
    document = _document(path)
    try:
        return {
            name: Entry(int(row["before"]), tuple(int(value) for value in row["ours"]))
            for name, row in document.items()
            if name in SYSCTLS
        }
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, repr(error)) from error


def read_wishes(path: Path) -> dict[str, Wish]:
    """What is wished for, as :func:`write_wishes` wrote it; nothing where nothing was written.

    :raise SetupError: it cannot be read or understood.
    """
    document = _document(path)
    try:
        return {name: _wish(name, row) for name, row in document.items() if name in SYSCTLS}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _damaged(path, repr(error)) from error


def _wish(name: str, row: Mapping[str, Any]) -> Wish:  # any JSON
    bounds = SYSCTLS[name]
    claims = {str(owner): value for owner, value in row["claims"].items()}
    floor = row.get("floor")
    for value in (*claims.values(), *([floor["value"]] if floor else ())):
        if type(value) is not int or not 0 <= value <= bounds.most:
            raise ValueError(f"{value!r} is not a value of {bounds.name}")
    if min(claims.values(), default=bounds.least) < bounds.least:
        raise ValueError(f"{bounds.name} is not set below {bounds.least}")
    return Wish(claims, Floor(floor["value"], str(floor["why"])) if floor else None)


def write_wishes(path: Path, wishes: Wishes) -> None:
    """Keep what is wished for, over a power cut too.

    :raise CommandRefused: the file cannot be written.
    """
    document = {
        name: {
            "claims": dict(wish.claims),
            **({"floor": asdict(wish.floor)} if wish.floor else {}),
        }
        for name, wish in wishes.items()
        if wish.claims or wish.floor
    }
    write_file(path, json.dumps(document, indent=1) + "\n", 0o644)


def _document(path: Path) -> dict[str, dict[str, Any]]:  # any JSON
    """A small JSON object. A link is not followed: the folder may be another user's."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _damaged(path, error.strerror or repr(error)) from error
    with os.fdopen(file, "rb") as stream:
        try:
            raw = stream.read(_MAX_BYTES + 1)
            if len(raw) > _MAX_BYTES:
                raise ValueError(f"it has more than {_MAX_BYTES} bytes")
            document = json.loads(raw)
        except (OSError, ValueError, RecursionError) as error:
            raise _damaged(path, str(error)) from error
    if not isinstance(document, dict) or not all(isinstance(v, dict) for v in document.values()):
        raise _damaged(path, "it is not an object of objects")
    return document


def _damaged(path: Path, why: str) -> SetupError:
    return SetupError(
        f"{path} cannot be understood: {why}",
        field="host",
        code="damaged_journal",
        remedy="look at the file: it says what the host's limits were; move it away when they are "
        "as they should be",
    )


def write_file(path: Path, text: str, mode: int) -> None:
    """Replace a file as a whole, so that a power cut leaves the old one or the new one.

    :raise CommandRefused: the file system does not take it.
    """
    new = path.with_name(f".{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(file, "w") as stream:
            stream.write(text)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        new.replace(path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise _refused(path, error) from error


def _refused(path: Path, error: Exception) -> CommandRefused:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return CommandRefused(
        f"{path} cannot be written: {why}",
        field="host",
        code="not_writable",
        remedy="run the service as root, or enable vmtune-limits.path",
    )


class WishFile:
    """Where the service keeps what is wished for. The root part watches it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, Wish]:
        """What is wished for.

        :raise SetupError: it cannot be understood.
        """
        return read_wishes(self._path)

    def write(self, wishes: Wishes) -> None:
        """Keep it.

        :raise CommandRefused: it cannot be written.
        """
        write_wishes(self._path, wishes)
