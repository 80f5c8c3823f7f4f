"""Build the lab's guest from the source that lies in ``guest/``."""

from __future__ import annotations

from pathlib import Path

from vmtune.lab.programs import require_programs, run

SOURCE = Path(__file__).parent / "guest"


def build_guest(out_dir: Path, lock: int | None = None) -> Path:
    """Build the guest into ``out_dir`` and return the path of its ELF file.

    Only what is older than its source is built again.

    :param lock: a descriptor that the compiler holds open until it ends, also when we are killed:
        who waits for it finds nobody writing to *out_dir*.
    :raise LabError: make or gcc is missing, or the build failed.
    """
    require_programs("make", "gcc", "ld")
    out_dir.mkdir(parents=True, exist_ok=True)
    build = out_dir.resolve()
    run(
        ["make", "--silent", "--directory", str(SOURCE), f"BUILD={build}"],
        doing="build the guest",
        timeout_s=120,
        keeps=lock,
    )
    return build / "guest.elf"
