"""The dataset of migrations as one Parquet file, and back.

A row is a migration, with the fields of docs/reference/migration-dataset.md; what consists of
several is a struct or a list of structs, as pandas, DuckDB and Arrow read them. Of the silences
there are those since the migration's start that took 20 ms or more: the others were most of the
file; their times are rounded to a tenth of a millisecond.

    python -m tests.perf.forecasts.dataset_file publish RESULTS      as dataset/, with its datasheet
    python -m tests.perf.forecasts.dataset_file pack RESULTS FILE    migrations.jsonl into FILE
    python -m tests.perf.forecasts.dataset_file unpack FILE RESULTS  and back, to go on collecting
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

from tests.perf.forecasts.dataset_drawn import SEED, drawn
from tests.perf.forecasts.dataset_sheet import with_figures

SHEET = Path(__file__).parents[3] / "dataset" / "README.md"
PUBLISHED = Path(__file__).parents[3] / "dataset" / "migrations.parquet"
_MOST_BYTES = 8 << 20
_SILENCE_LEAST_MS = 20
_Migration = dict[str, Any]  # any: JSON
_TITLE = {b"title": b"vmtune: live migrations of drawn workloads", b"licence": b"CC-BY-4.0"}


def pack(migrations: Sequence[_Migration], file: Path) -> None:
    """Write them, by number.

    :raise ValueError: the file would be larger than is published.
    """
    rows = [shortened(one) for one in sorted(migrations, key=lambda one: int(one["number"]))]
    fields = dict.fromkeys(name for row in rows for name in row)  # else those of the first alone
    table = pyarrow.Table.from_pylist(
        [dict.fromkeys(fields) | row for row in rows]
    ).replace_schema_metadata(_TITLE)
    parquet.write_table(table, file, compression="zstd", compression_level=19)
    if file.stat().st_size > _MOST_BYTES:
        raise ValueError(f"{file} has {file.stat().st_size} bytes, more than {_MOST_BYTES}")


def shortened(migration: _Migration) -> _Migration:
    """Without the silences that the file leaves out, and without digits that nobody measures."""
    kept = [
        {name: round(ms, 1) for name, ms in silence.items()}
        for silence in migration.get("silences") or ()
        if silence["at_ms"] + silence["duration_ms"] >= migration["begun_ms"]
        and silence["duration_ms"] >= _SILENCE_LEAST_MS
    ]
    return migration | {"silences": kept} if "silences" in migration else migration


def unpack(file: Path) -> list[_Migration]:
    """The migrations of a file. What a migration does not have is None, but for tunables, which
    are left out."""
    rows: list[_Migration] = parquet.read_table(file).to_pylist()
    for row in rows:
        row["values"] = {name: v for name, v in row["values"].items() if v is not None}
    return rows


def unpack_lines(file: Path, lines: Path) -> int:
    """The same into a migrations.jsonl, which is there as a whole or not at all; how many."""
    lines.parent.mkdir(parents=True, exist_ok=True)
    migrations = unpack(file)
    new = lines.with_name(f"{lines.name}.new")
    new.write_text("".join(json.dumps(one) + "\n" for one in migrations))
    new.replace(lines)
    return len(migrations)


def read_lines(file: Path) -> list[_Migration]:
    """The whole lines of a migrations.jsonl, which may be written to meanwhile."""
    whole = file.read_text().rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def publish(results: Path, file: Path = PUBLISHED, sheet: Path = SHEET) -> str:
    """Write what was collected as the published dataset, and its datasheet's figures.

    :return: what was done.
    :raise ValueError: something is missing that was published, or numbers in between; the file
        would be too large; or migrations are not those that are drawn. Nothing is changed then.
    """
    before = {one["number"]: one for one in unpack(file)} if file.exists() else {}
    collected = {one["number"]: one for one in read_lines(results / "migrations.jsonl")}
    migrations = [one for _, one in sorted((collected | before).items())]
    missing = sorted(set(range(len(migrations))) - {one["number"] for one in migrations})
    if missing:
        raise ValueError(f"not collected: {missing[:10]}")
    strange = [one["number"] for one in migrations if not is_drawn(one)]
    if strange:
        raise ValueError(f"not as they are drawn: {strange[:10]}")
    new = file.with_suffix(".new")
    try:
        pack(migrations, new)
        text = with_figures(sheet.read_text(), unpack(new))
        size = new.stat().st_size
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)
    sheet.write_text(text)
    return f"{len(migrations)} migrations, {len(before)} of them published before; {size} bytes"


def is_drawn(migration: _Migration, seed: int = SEED) -> bool:
    """Whether it is what its number is drawn as."""
    asked = drawn(seed, migration["number"])
    return (
        (migration["profile"], migration["kind"]) == (asked.profile, asked.kind)
        and migration["workload"] == asdict(asked.scenario.workload)
        and migration["values"] == dict(asked.scenario.values)
    )


def main() -> None:
    """Publish, pack or unpack."""
    match sys.argv[1:]:
        case ["publish", results]:
            try:
                print(publish(Path(results)))
            except (OSError, ValueError) as error:
                sys.exit(str(error))
        case ["pack", results, file]:
            migrations = read_lines(Path(results) / "migrations.jsonl")
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            pack(migrations, Path(file))
            print(f"{len(migrations)} migrations, {Path(file).stat().st_size} bytes")
        case ["unpack", file, results]:
            lines = Path(results) / "migrations.jsonl"
            if lines.exists():
                sys.exit(f"{lines} is there already: give a folder without it")
            print(f"{unpack_lines(Path(file), lines)} migrations")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
