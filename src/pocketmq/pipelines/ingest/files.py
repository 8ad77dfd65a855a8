"""The files of an ingestion: compacting them, and reading them without Spark.

Compaction merges the batches of a day and topic into one file. Only committed batches are touched.
It is crash-safe: the merged file is synced and a journal written before anything is deleted, and
the next run completes what the journal says; replaying it is idempotent. For local directories;
readers that run at the same time may see files disappear.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import dataset, parquet

from pocketmq.errors import InvalidInput
from pocketmq.pipelines.places import local_path

STAGING = ".compacting"
JOURNAL = ".compaction.json"
ROWS_AT_ONCE = 1 << 17


class CompactionResult(msgspec.Struct, frozen=True):
    """The result of a compaction."""

    partitions: int
    files_before: int
    files_after: int
    rows: int


def compact(
    place: str | Path,
    *,
    least_files: int = 2,
    progress: Callable[[str], None] | None = None,
) -> CompactionResult:
    """Merge the files of every day and topic that has several, below `data` and `bad`.

    Raises `InvalidInput` if the directory is not that of an ingestion, or not on this machine.
    """
    root = local_path(place)
    if root is None:
        raise InvalidInput(f"{place} is not on this machine; only local files are merged")
    if not (root / "checkpoint").is_dir():
        raise InvalidInput(f"{place} is not the directory of an ingestion")
    last = _last_batch(root)
    total = CompactionResult(0, 0, 0, 0)
    for kind in ("data", "bad"):
        repair(root / kind)
        for partition in sorted((root / kind).glob("day=*/topic=*")):
            batches = [d for d in partition.glob("batch=*") if _number(d) <= last]
            files = [file for d in batches for file in sorted(d.glob("*.parquet"))]
            if len(files) < least_files:
                continue
            if progress is not None:
                progress(f"{partition.parent.name} {partition.name}: {len(files)} files")
            rows = _merge(root / kind, partition, batches, files)
            total = CompactionResult(
                total.partitions + 1, total.files_before + len(files), total.files_after + 1,
                total.rows + rows,
            )  # fmt: skip
    return total


def repair(kind: Path) -> None:
    """Complete an interrupted compaction if its journal exists, else discard it."""
    journal = kind / JOURNAL
    if journal.exists():
        plan = json.loads(journal.read_text("utf-8"))
        _carry_out(kind, plan["partition"], plan["target"], plan["merged"])
    shutil.rmtree(kind / STAGING, ignore_errors=True)


def _merge(kind: Path, partition: Path, batches: list[Path], files: list[Path]) -> int:
    staging = kind / STAGING
    staging.mkdir(parents=True, exist_ok=True)
    merged = staging / "merged.parquet"
    schema = pa.unify_schemas([parquet.read_schema(file) for file in files])
    rows = 0
    with parquet.ParquetWriter(merged, schema, compression="zstd") as writer:
        for file in files:
            for batch in parquet.ParquetFile(file).iter_batches(ROWS_AT_ONCE):
                table = pa.Table.from_batches([batch])
                for name in schema.names:
                    if name not in table.column_names:
                        nothing = pa.nulls(len(table), schema.field(name).type)
                        table = table.append_column(schema.field(name), nothing)
                writer.write_table(table.select(schema.names).cast(schema))
                rows += len(table)
    with merged.open("rb") as written:
        os.fsync(written.fileno())  # the files it replaces are deleted next
    target = max(batches, key=_number)
    within, names = str(partition.relative_to(kind)), sorted(d.name for d in batches)
    plan = {"partition": within, "target": target.name, "merged": names}
    draft = kind / f"{JOURNAL}.part"
    draft.write_text(json.dumps(plan), "utf-8")
    draft.replace(
        kind / JOURNAL
    )  # the commit point: from here on the merge is completed, also after a crash
    _carry_out(kind, within, target.name, names)
    return rows


def _carry_out(kind: Path, partition: str, target: str, merged: list[str]) -> None:
    """Replace the merged batches by the new file; idempotent.

    The file is moved last: as long as it is in the staging directory, the deletion is repeated.
    """
    new, place = kind / STAGING / "merged.parquet", kind / partition
    if new.exists():
        for name in merged:
            shutil.rmtree(place / name, ignore_errors=True)
        (place / target).mkdir(parents=True, exist_ok=True)
        new.replace(place / target / "merged.parquet")
    (kind / JOURNAL).unlink(missing_ok=True)


def _last_batch(root: Path) -> int:
    done = [int(p.name) for p in (root / "checkpoint" / "commits").glob("*") if p.name.isdigit()]
    return max(done, default=-1)


def _number(batch: Path) -> int:
    text = batch.name.removeprefix("batch=")
    return int(text) if text.isdigit() else 1 << 62


def ingested_values(place: str | Path, column: str, *, kind: str = "data") -> list[Any]:
    """Return the values of a column, in any order; `kind` is `data` or `bad`."""
    folder = Path(place) / kind
    if not folder.is_dir():
        return []
    files = dataset.dataset(folder, format="parquet", partitioning="hive")
    found: list[Any] = files.to_table(columns=[column]).column(column).to_pylist()
    return found
