"""Tunable packs that come with vmtune, and reading packs from files.

The setting ``packs`` names which are loaded: ``qemu-live``, or a file or a folder by its path.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vmtune.errors import InvalidInput, Problem
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.packs.pack import Pack, read_toml
from vmtune.model.tunables.registry import TunableRegistry

_FOLDER = Path(__file__).parent
_MAX_BYTES = 4 << 20


def shipped() -> dict[str, Path]:
    """The packs that come with vmtune, by the names of their files."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.toml"))}


def read_file(path: Path) -> Pack:
    """The pack of a file.

    :raise InvalidInput: it cannot be read or accepted; each problem says where.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InvalidInput(
                f"{path} has more than {_MAX_BYTES:,} bytes",
                field="pack",
                code="too_long",
                remedy="split it",
            )
        text = path.read_bytes().decode()
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror}",
            field="pack",
            code="unreadable",
            remedy="name a TOML file that this user may read",
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path}: byte {error.start} is not UTF-8",
            field="pack",
            code="not_toml",
            remedy="write it as UTF-8",
        ) from error
    return read_toml(text, str(path))


def load(names: Sequence[str]) -> tuple[Pack, ...]:
    """The packs that the setting ``packs`` names, in its order; of a folder, all its ``.toml``.

    :raise InvalidInput: with all that is wrong with any of them.
    """
    packs: dict[str, Pack] = {}
    problems: list[Problem] = []
    for name in names:
        try:
            for path in _paths(name):
                pack = read_file(path)
                if pack.name in packs:
                    problems.append(_twice(pack.name, path))
                packs[pack.name] = pack
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput("the packs cannot be loaded", problems=problems)
    return tuple(packs.values())


def registry(names: Sequence[str]) -> TunableRegistry:
    """vmtune's own tunables and those of the packs that the setting ``packs`` names.

    :raise InvalidInput: as :func:`load` does, or two packs have a tunable of one name or of one
        place in QEMU.
    """
    return BUILT_IN.with_packs(row for pack in load(names) for row in pack.tunables)


def _paths(name: str) -> list[Path]:
    known = shipped()
    if name in known:
        return [known[name]]
    path = Path(name)
    if not path.is_absolute():
        raise InvalidInput(
            f"no pack {name[:60]!r} comes with vmtune",
            field="packs",
            code="unknown_pack",
            remedy=f"name {' or '.join(known)}, or a file or folder by a path that begins with /",
        )
    if not path.is_dir():
        return [path]
    try:
        return sorted(path.glob("*.toml"))
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror}", field="packs", code="unreadable"
        ) from error


def _twice(name: str, path: Path) -> Problem:
    return Problem(
        "packs", "duplicate_name", f"{path}: a pack called {name} is loaded already", "rename it"
    )
