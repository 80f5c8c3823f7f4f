"""The firmware that a boot starts with, as the distributions install it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from vmtune.bench.model.scenario.matrix_cells import Firmware
from vmtune.errors import SetupError

_SEABIOS = "bios-256k.bin"
_SEABIOS_FOLDERS = (Path("/usr/share/seabios"), Path("/usr/share/qemu"))
_SEABIOS_VERSION = re.compile(rb"\0((?:rel-)?1\.[0-9]+\.[0-9]+[0-9A-Za-z.+~:-]{0,60})\n?\0")
OVMF_PAIRS = tuple(
    (Path("/usr/share", folder, code), Path("/usr/share", folder, variables))
    for folder, code, variables in (
        ("OVMF", "OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"),
        ("OVMF", "OVMF_CODE.fd", "OVMF_VARS.fd"),
        ("edk2/ovmf", "OVMF_CODE.fd", "OVMF_VARS.fd"),
        ("edk2/x64", "OVMF_CODE.4m.fd", "OVMF_VARS.4m.fd"),
    )
)
"""Of each place, the code and an empty store of variables: Debian's and Ubuntu's first."""
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class FirmwareFiles:
    """A firmware.

    :param words: its name, and its version or the beginning of its SHA-256.
    :param code: None: QEMU's own.
    :param variables: each boot gets a copy of it; None: it has none.
    """

    words: str
    code: Path | None
    variables: Path | None = None


def find_firmware(
    kind: Firmware,
    data_folder: Path | None = None,
    seabios_folders: tuple[Path, ...] = _SEABIOS_FOLDERS,
    ovmf_pairs: tuple[tuple[Path, Path], ...] = OVMF_PAIRS,
) -> FirmwareFiles:
    """The installed one. Blocks for some milliseconds.

    :param data_folder: where QEMU finds its own firmware, if that was named.
    :raise SetupError: there is none.
    """
    if kind is Firmware.SEABIOS:
        folders = (*((data_folder,) if data_folder else ()), *seabios_folders)
        found = next((f / _SEABIOS for f in folders if (f / _SEABIOS).is_file()), None)
        return FirmwareFiles(_seabios(found) if found else "SeaBIOS", found)
    for code, variables in ovmf_pairs:
        if code.is_file() and variables.is_file():
            return FirmwareFiles(f"OVMF {code.name} {_digest(code.read_bytes())}", code, variables)
    raise SetupError(
        "OVMF, the EFI firmware for VMs, is not installed",
        field="scenario.cell.firmware",
        code="ovmf_missing",
        remedy="install the package ovmf",
    )


def _seabios(path: Path) -> str:
    image = path.read_bytes()
    version = _SEABIOS_VERSION.search(image)
    return f"SeaBIOS {version[1].decode() if version else _digest(image)}"


def _digest(image: bytes) -> str:
    return hashlib.sha256(image).hexdigest()[:_DIGITS]
