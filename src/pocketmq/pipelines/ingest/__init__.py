"""Topics to Parquet: every message once, by day and topic, JSON bodies as columns.

`ingest` is the entry point. Its directory has:

    data/day=2026-11-15/topic=orders/batch=7/…   messages
    bad/day=…/topic=…/batch=…/…                  unreadable messages, with the reason
    checkpoint/                                  the position of the stream
    schema.json                                  the columns of bodies, if any

A batch that is repeated after a crash reads the same messages and replaces what it had written, so
there are no duplicates; a late message is stored under its own day.
"""

from pocketmq.pipelines.ingest.files import compact, ingested_values
from pocketmq.pipelines.ingest.running import IngestProgress, IngestResult, IngestSettings, ingest

__all__ = [
    "IngestProgress",
    "IngestResult",
    "IngestSettings",
    "compact",
    "ingest",
    "ingested_values",
]  # fmt: skip
