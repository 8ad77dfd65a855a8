"""Putting log and queues where an earlier run left them."""

import logging
from collections.abc import Mapping

from pocketmq.errors import StoreCorrupt
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.metadata import Metadata
from pocketmq.store.queues import Queues
from pocketmq.store.recovery import Recovered, TagRule, recover

log = logging.getLogger("pocketmq.store")


def take_up(
    commit_log: CommitLog, queues: Queues, metadata: Metadata, tag_rules: Mapping[str, TagRule]
) -> Recovered:
    """Load the last checkpoint and recover what came after it.

    Raises `StoreCorrupt` if files are missing.
    """
    segments = commit_log.segments
    segments.load()
    free = [row[:3] for row in metadata.extents_of(0)]
    queues.files.load(metadata.number("index_end") or 0, free)
    deleted = metadata.deleted_topics()
    queues.load(deleted)
    start = metadata.number("position") or 0
    if not segments.first <= start <= segments.end:
        raise StoreCorrupt(
            f"the commit log holds bytes {segments.first} to {segments.end}, but a checkpoint "
            f"was made at {start}: files are missing"
        )
    recovered = recover(segments, start, queues, deleted, tag_rules)
    for damage in recovered.damage:
        log.warning("commit log: bytes %d to %d are damaged", damage.start, damage.end)
    recovered.torn = commit_log.begin(recovered.tail, start)
    for topic, position in deleted.items():
        if position > recovered.tail:  # new records will lie where its lost ones lay
            metadata.delete_topic(topic, recovered.tail)
    queues.index.first_kept = segments.first
    return recovered
