"""From the tables to the store and the name servers: called by code that changed something.

Topics and groups are saved before their change is answered, offsets every few seconds. Offsets
refer to messages, so the log is synced before they are saved.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Protocol

from pocketmq.broker.core.late_saving import Outcome, save_synced, write_log
from pocketmq.broker.offsets.table import Unsaved
from pocketmq.broker.state import BrokerState
from pocketmq.broker.topics.attributes import lacking
from pocketmq.errors import StoreError

logger = logging.getLogger("pocketmq.broker")

_SHOWN = 5
"""Topics that one line of the log names."""


class SavedTable(Protocol):
    """A table whose entries are saved one by one."""

    @property
    def kind(self) -> str:
        """What its documents are called in the store."""
        ...

    def load(self, documents: Iterable[tuple[str, bytes]]) -> None:
        """Take over what was saved before."""
        ...

    def unsaved(self) -> dict[str, bytes | None]:
        """Return the documents to save, None for those to delete."""
        ...

    def saved(self, names: Iterable[str]) -> None:
        """Record that these were saved."""
        ...


def _tables(state: BrokerState) -> tuple[SavedTable, ...]:
    settings = state.topics, state.groups, state.groups.forbidden, state.modes
    return *settings, state.users, state.acls, state.mappings


def load_tables(state: BrokerState) -> None:
    """Fill the tables with what was saved. Raises `BodyMalformed` for malformed documents."""
    for table in _tables(state):
        table.load(state.store.metadata.documents(table.kind))
    _warn_of_attributes(state)
    state.offsets.load(state.store.metadata.consumer_offsets())
    _lower_offsets(state)


def _warn_of_attributes(state: BrokerState) -> None:
    """Name the topics that were stored, by an earlier release, with what is refused by now."""
    found = [
        f"{name} ({', '.join(pairs)})"
        for name, config in state.topics.entries.items()
        if (pairs := lacking(config.attributes))
    ]
    if found:
        logger.warning(
            "attributes of topics are not supported and ignored: topics=%d first=%s; "
            "delete and recreate the topics without them",
            len(found),
            "; ".join(found[:_SHOWN]),
        )


def _lower_offsets(state: BrokerState) -> None:
    """Lower offsets beyond the end of their queues, or new messages there would be skipped."""
    ends = state.store.queues.ends() if state.offsets.committed else {}
    for lowered in state.offsets.lower(ends):
        logger.warning(
            "consumer offsets beyond the end of the log were lowered to it: group=%s topic=%s "
            "queues=%s offsets_beyond=%d",
            lowered.group,
            lowered.topic,
            ",".join(map(str, lowered.queue_ids)),
            lowered.beyond,
        )


def save_changes(state: BrokerState) -> None:
    """Save what changed in topics, groups and modes, and announce topics to the name servers."""
    for table in _tables(state):
        changed = table.unsaved()
        if changed:
            state.save_documents(table.kind, changed)
            table.saved(changed)
    topics = state.topics.take_unannounced()
    if topics:
        state.announcements.announce(topics)


def submit_offsets(state: BrokerState, done: Outcome = lambda _: None) -> bool:
    """Save the changed offsets soon, in the order of the calls; return whether there were any.

    The log is synced first, off the loop: after a power cut no saved offset is beyond the log.
    Offsets that cannot be saved stay for the next call. Calls `done` with the error, if any.
    """
    try:
        write_log(state)  # an offset may be that of a message that is not written yet
    except StoreError as error:
        logger.error("save of offsets failed: error=%s; retrying", error)  # noqa: TRY400
        return False
    unsaved = state.offsets.take_unsaved()
    if unsaved:
        _save(state, unsaved, done)
    return bool(unsaved)


async def save_offsets(state: BrokerState) -> None:
    """Save the changed offsets, after all that were submitted before. Raises `StoreError`."""
    saved: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
    unsaved = state.offsets.take_unsaved()
    _save(state, unsaved, saved.set_result)
    error = await saved
    if error is not None and unsaved:
        raise error


def _save(state: BrokerState, unsaved: Unsaved, done: Outcome) -> None:
    metadata = state.store.metadata

    def save() -> None:
        if unsaved:
            metadata.save_consumer_offsets(unsaved.rows, unsaved.gone)

    def saved(error: Exception | None) -> None:
        if error is not None and unsaved:
            logger.error("save of offsets failed: error=%s; retrying", error)
            state.offsets.not_saved(unsaved)
        done(error)

    save_synced(state.store, save, saved)
