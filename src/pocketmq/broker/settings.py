"""Settings of a running broker: change them (25), show them (26), keep changes for the next start.

Java writes a change into the file its broker was started with. Here changes are documents of the
store: they override a file, and what is given for one start alone (an option of the command)
overrides them. Secrets cannot be changed at run time, so none is here.
"""

import logging
import os
from collections.abc import Collection

import msgspec

from pocketmq.broker.config import CHANGEABLE, BrokerConfig
from pocketmq.broker.saving import save_changes
from pocketmq.broker.state import BrokerState, Handler
from pocketmq.errors import InvalidInput, ResponseCode
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode, encode_body
from pocketmq.protocol.config_text import read_properties, write_properties
from pocketmq.protocol.requests.broker_admin import GetBrokerConfigResponse
from pocketmq.store import MessageStore, StoreOptions

logger = logging.getLogger("pocketmq.broker")

_GUARDED = ("brokerConfigPath", "rocketmqHome", "configBlackList")
"""Keys that Java does not let clients change."""
_SHOWN = 40
"""Characters of an unknown key, and unknown keys, that are logged."""
_FOR_TOOLS = {"filterServerNums": "0", "slaveReadEnable": "false"}
"""Settings without a meaning here; `mqadmin exportConfigs` of 4.9 fails without them."""


def update_config(state: BrokerState, connection: Connection, request: Command) -> Command:
    """Change settings, all of them or none, for this run and the next; unknown keys change nothing.

    An invalid value is refused with the reason. Java answers success and keeps the old one.
    """
    wanted = read_properties(request.body) if request.body else {}
    if any(key in wanted for key in _GUARDED):
        return request.reply(ResponseCode.NO_PERMISSION, "Can not update config in black list.")
    before, after = state.config, state.config.updated(wanted)
    properties = after.to_properties()
    keep_settings(state.store, {key: properties[key] for key in wanted if key in CHANGEABLE})
    state.apply(after)
    state.store.keep(store_options(state.config, in_memory=state.store.in_memory))
    changed = [
        f"{key}={value}"
        for key, value in state.config.shown_properties().items()
        if value != before.shown_properties()[key]
    ]
    logger.info(
        "settings changed by %s: %s", connection.remote_address, ", ".join(changed) or "none"
    )
    unknown = sorted(key[:_SHOWN] for key in wanted if key not in properties)[:_SHOWN]
    if unknown:
        logger.warning("ignored unknown settings: %s", ", ".join(unknown))
    if state.config.broker_permission != before.broker_permission:
        _announce(state)
    return request.reply(ResponseCode.SUCCESS)


def _announce(state: BrokerState) -> None:
    """Register all topics again: their permissions are limited by the broker's."""
    state.topics.version = state.topics.version.following(state.clock.now_ms())
    save_changes(state)
    state.announcements.announce(list(state.topics.entries))


def get_config(state: BrokerState, _: Connection, request: Command) -> Command:
    """Answer with every setting as text."""
    version = encode_body(state.topics.version).decode()
    tls = {"useTLS": str(state.config.client_tls() is not None).lower()}
    body = write_properties(state.config.shown_properties() | _FOR_TOOLS | tls)
    return request.reply(ResponseCode.SUCCESS, None, GetBrokerConfigResponse(version=version), body)


KIND = "setting"


def keep_settings(store: MessageStore, changed: dict[str, str]) -> None:
    """Keep settings, as text by their keys. Raises `StoreError` if they cannot be."""
    documents: dict[str, bytes | None] = {
        key: msgspec.json.encode(value) for key, value in changed.items()
    }
    store.metadata.save_documents(KIND, documents)


def with_kept(config: BrokerConfig, store: MessageStore, given: Collection[str]) -> BrokerConfig:
    """Return the settings a broker starts with: those saved before, unless they are `given` now.

    One that is no longer valid, as after a change of version, is logged and ignored.
    """
    for key, document in store.metadata.documents(KIND):
        if key in given:
            logger.info("setting %s given at startup overrides the saved value", key)
            continue
        try:
            config = config.updated({key: msgspec.json.decode(document, type=str)})
        except (InvalidInput, msgspec.DecodeError) as error:
            logger.warning("ignoring invalid saved value of %s: %s", key, error)
    return config


def store_options(config: BrokerConfig, *, in_memory: bool) -> StoreOptions:
    """Return the store's options that follow from the settings."""
    kept = _share_of_memory(config) if in_memory else 0
    return StoreOptions(
        segment_size=config.mapped_file_size_commit_log,
        sync=config.sync_flush,
        retention=config.file_reserved_time * 3600.0,
        retention_bytes=config.file_reserved_bytes or kept,
        delete_hours=config.delete_hours,
        disk_clean_ratio=config.disk_max_used_space_ratio / 100,
        disk_force_ratio=config.disk_space_clean_forcibly_ratio / 100,
        disk_full_ratio=config.disk_space_warning_level_ratio / 100,
    )


def _share_of_memory(config: BrokerConfig) -> int:
    """Return how many bytes a broker in memory keeps; then it deletes the oldest messages."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(memory // 4, 2 * config.mapped_file_size_commit_log)


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.UPDATE_BROKER_CONFIG: update_config,
    RequestCode.GET_BROKER_CONFIG: get_config,
}
