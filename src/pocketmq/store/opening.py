"""Putting log and queues where an earlier run left them."""

import logging
from collections.abc import Mapping

import msgspec

from pocketmq.errors import StoreCorrupt
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.metadata import LOG_FIRST, Metadata
from pocketmq.store.queues import Queues
from pocketmq.store.recovery import (
    REPAIR_KIND,
    Damage,
    Recovered,
    TagRule,
    read_repair_note,
    recover,
)
from pocketmq.store.segments import Segments

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
    _follow_repair(recovered, segments, queues, metadata, deleted)
    for damage in recovered.damage:
        log.warning("commit log: bytes %d to %d are damaged", damage.start, damage.end)
    recovered.torn = commit_log.begin(recovered.tail, start)
    for topic, position in deleted.items():
        if position > recovered.tail:  # new records will lie where its lost ones lay
            metadata.delete_topic(topic, recovered.tail)
    queues.index.first_kept = segments.first
    _look_for_missing(commit_log, metadata)
    return recovered


def _look_for_missing(commit_log: CommitLog, metadata: Metadata) -> None:
    """Warn if files at the beginning of the log are gone that retention has not deleted."""
    first, known = commit_log.first, metadata.number(LOG_FIRST)
    commit_log.deleted_until = first if known is None else min(known, first)
    if commit_log.deleted_until < first:
        log.warning(
            "commit log files are missing: bytes=%d first_kept=%d; they were not deleted by "
            "retention, and their messages are lost; put the files back, or run "
            "`pocketmq store check --repair` to accept the loss",
            first - commit_log.deleted_until, first,
        )  # fmt: skip


def _follow_repair(
    recovered: Recovered,
    segments: Segments,
    queues: Queues,
    metadata: Metadata,
    deleted: Mapping[str, int],
) -> None:
    """Let log and queues end where they ended before a repair, though records there are damaged.

    Otherwise new messages would get offsets that consumers have committed already. Only until the
    first checkpoint after the repair, which knows it all.
    """
    documents = dict(metadata.documents(REPAIR_KIND))
    if REPAIR_KIND not in documents:
        return
    try:
        note = read_repair_note(documents[REPAIR_KIND])
    except msgspec.MsgspecError as error:
        raise StoreCorrupt(f"meta.sqlite: what a repair has noted is damaged: {error}") from error
    if recovered.start != note.start:
        return
    if recovered.tail < note.tail <= segments.end:
        recovered.damage.append(Damage(recovered.tail, note.tail))
        recovered.tail = note.tail
    for topic, queue_id, following in note.ends:
        if following > 0 and deleted.get(topic, -1) < note.tail:  # not deleted since the repair
            queue = queues.make(topic, queue_id)
            if queue.next_offset < following:
                queue.lose_until(following, recovered.tail)
                queues.index.dirty.add(queue)
