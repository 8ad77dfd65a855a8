"""Settings that were changed while a broker ran, kept for its next starts.

Java writes such a change into the file its broker was started with. Here they are documents of the
store: they count before a file, and whatever is given for one start alone (an option of the
command) counts before them. Secrets cannot be changed at run time, so none is here.
"""

import logging
from collections.abc import Collection

import msgspec

from pocketmq.broker.config import BrokerConfig
from pocketmq.errors import InvalidInput
from pocketmq.store import MessageStore

logger = logging.getLogger("pocketmq.broker")

KIND = "setting"


def keep_settings(store: MessageStore, changed: dict[str, str]) -> None:
    """Keep settings, as text by their keys. Raises `StoreError` if they cannot be."""
    documents: dict[str, bytes | None] = {
        key: msgspec.json.encode(value) for key, value in changed.items()
    }
    store.metadata.save_documents(KIND, documents)


def with_kept(config: BrokerConfig, store: MessageStore, given: Collection[str]) -> BrokerConfig:
    """Give the settings a broker starts with: those kept before, unless they were `given` now.

    One that cannot be any more, as after a change of version, is told and passed over.
    """
    for key, document in store.metadata.documents(KIND):
        if key in given:
            logger.info("%s is as given at the start, whatever it was changed to before", key)
            continue
        try:
            config = config.updated({key: msgspec.json.decode(document, type=str)})
        except (InvalidInput, msgspec.DecodeError) as error:
            logger.warning("kept setting %s is ignored: %s", key, error)
    return config
