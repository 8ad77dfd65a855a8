"""What an ingestion has written, read without Spark."""

from pathlib import Path
from typing import Any

from pyarrow import dataset


def ingested_values(place: str | Path, column: str, *, kind: str = "data") -> list[Any]:
    """Give the values of a column of all rows, in any order; of `bad` ones if that is the kind."""
    folder = Path(place) / kind
    if not folder.is_dir():
        return []
    files = dataset.dataset(folder, format="parquet", partitioning="hive")
    found: list[Any] = files.to_table(columns=[column]).column(column).to_pylist()
    return found
