"""Topics to Parquet: every message once, by day and topic, JSON bodies as columns.

`ingest` is the way in. Under the directory it is given:

    data/day=2026-11-15/topic=orders/batch=7/…   what was read
    bad/day=…/topic=…/batch=…/…                  what could not be, with the reason
    checkpoint/                                  how far it has come
    schema.json                                  the columns bodies are read into, if any

A batch that is carried out again after a crash reads the same messages and replaces what it had
written, so nothing is there twice; a message that comes late is put where its day is.
"""

from pocketmq.pipelines.ingest.files import CompactionResult, compact, ingested_values
from pocketmq.pipelines.ingest.running import (
    IngestProgress,
    IngestResult,
    IngestSettings,
    check_ingest,
    ingest,
)

__all__ = [
    "CompactionResult",
    "IngestProgress",
    "IngestResult",
    "IngestSettings",
    "check_ingest",
    "compact",
    "ingest",
    "ingested_values",
]  # fmt: skip
