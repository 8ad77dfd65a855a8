"""From the tables to the store and the name servers: called by whoever changed something.

Topics and groups are saved before their change is answered, offsets every few seconds.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from pocketmq.broker.state import BrokerState
from pocketmq.errors import StoreError

logger = logging.getLogger("pocketmq.broker")


class Documents(Protocol):
    """A table whose entries are saved one by one."""

    @property
    def kind(self) -> str:
        """What its documents are called in the store."""
        ...

    def load(self, documents: Iterable[tuple[str, bytes]]) -> None:
        """Take over what was saved before."""
        ...

    def unsaved(self) -> dict[str, bytes | None]:
        """Give the documents to save, None for those to delete."""
        ...

    def saved(self, names: Iterable[str]) -> None:
        """Take note that these were saved."""
        ...


def _tables(state: BrokerState) -> tuple[Documents, ...]:
    return state.topics, state.groups, state.groups.forbidden, state.modes, state.users, state.acls


def load_tables(state: BrokerState) -> None:
    """Fill the tables with what was saved. Raises `BodyMalformed` for documents that are none."""
    for table in _tables(state):
        table.load(state.store.metadata.documents(table.kind))
    state.offsets.load(state.store.metadata.consumer_offsets())


def save_changes(state: BrokerState) -> None:
    """Save what changed in topics, groups and modes, and tell the name servers of topics."""
    for table in _tables(state):
        changed = table.unsaved()
        if changed:
            state.save_documents(table.kind, changed)
            table.saved(changed)
    topics = state.topics.take_unannounced()
    if topics:
        state.register_topics(topics)


def submit_offsets(state: BrokerState, done: Callable[[], None] = lambda: None) -> bool:
    """Have offsets saved soon, in the order of the calls; tell whether there were any.

    What cannot be saved stays for the next time. Calls `done` either way.
    """
    unsaved = state.offsets.take_unsaved()
    if not unsaved:
        return False

    def saved(error: Exception | None) -> None:
        done()
        if error is not None:
            logger.error("offsets could not be saved: %s", error)
            state.offsets.not_saved(unsaved)

    metadata = state.store.metadata
    state.store.submit(lambda: metadata.save_consumer_offsets(unsaved.rows, unsaved.gone), saved)
    return True


def save_offsets(state: BrokerState) -> None:
    """Save the offsets committed since the last time; what cannot be saved stays for the next."""
    unsaved = state.offsets.take_unsaved()
    if unsaved:
        try:
            state.store.metadata.save_consumer_offsets(unsaved.rows, unsaved.gone)
        except StoreError:
            state.offsets.not_saved(unsaved)
            raise
