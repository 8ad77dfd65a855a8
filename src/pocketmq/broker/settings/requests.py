"""The broker's settings: change them while it runs (25), show them (26)."""

import logging

from pocketmq.broker.config import CHANGEABLE
from pocketmq.broker.saving import save_changes
from pocketmq.broker.settings.kept_settings import keep_settings
from pocketmq.broker.settings.store_options import store_options
from pocketmq.broker.state import BrokerState, Handler
from pocketmq.errors import ResponseCode
from pocketmq.net import Connection
from pocketmq.protocol.bodies.properties_text import read_properties, write_properties
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.json_values import encode_body
from pocketmq.protocol.requests.broker_admin import GetBrokerConfigResponse

logger = logging.getLogger("pocketmq.broker")

_GUARDED = ("brokerConfigPath", "rocketmqHome", "configBlackList")
"""What Java lets nobody change from afar."""
_SHOWN = 40
"""Characters of an unknown key, and keys, that are told."""
_FOR_TOOLS = {"filterServerNums": "0", "slaveReadEnable": "false"}
"""Settings without a meaning here; `mqadmin exportConfigs` of 4.9 fails without them."""


def update_config(state: BrokerState, connection: Connection, request: Command) -> Command:
    """Change settings, all of them or none, for this run and the next; unknown keys change nothing.

    A value that cannot be is refused and said so. Java says success and keeps the old one.
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
    logger.info("%s changed settings: %s", connection.remote_address, ", ".join(changed) or "none")
    unknown = sorted(key[:_SHOWN] for key in wanted if key not in properties)[:_SHOWN]
    if unknown:
        logger.warning("settings nobody knows were to be changed: %s", ", ".join(unknown))
    if state.config.broker_permission != before.broker_permission:
        _announce(state)
    return request.reply(ResponseCode.SUCCESS)


def _announce(state: BrokerState) -> None:
    """Tell name servers of all topics anew: what they may be used for is what the broker may."""
    state.topics.version = state.topics.version.following(state.clock.now_ms())
    save_changes(state)
    state.announcements.announce(list(state.topics.entries))


def get_config(state: BrokerState, _: Connection, request: Command) -> Command:
    """Give every setting as text."""
    version = encode_body(state.topics.version).decode()
    tls = {"useTLS": str(state.config.client_tls() is not None).lower()}
    body = write_properties(state.config.shown_properties() | _FOR_TOOLS | tls)
    return request.reply(ResponseCode.SUCCESS, None, GetBrokerConfigResponse(version=version), body)


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.UPDATE_BROKER_CONFIG: update_config,
    RequestCode.GET_BROKER_CONFIG: get_config,
}
