"""Operators read the name server's settings and change them while it runs.

That is rare, so the reader of settings is imported when it is needed.
"""

from collections.abc import Hashable

from pocketmq.nameserver.state import SUCCESS, Handler, NameServerState
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command


def read(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Give all settings, sorted, and where this name server listens and saves."""
    from pocketmq.protocol.properties_text import write_properties

    shown = state.config.shown_properties() | state.place
    return request.reply(SUCCESS, body=write_properties(dict(sorted(shown.items()))))


def update(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Change settings: all of them or, if one may not be changed or does not fit, none."""
    from pocketmq.protocol.properties_text import read_properties

    if request.body:
        properties = read_properties(request.body)
        state.config.check_updatable(properties)
        config = state.config.updated(properties)
        if state.save_properties is not None:
            state.save_properties(config.kept_properties())
        state.config = config
    return request.reply(SUCCESS)


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.GET_NAMESRV_CONFIG: read,
    RequestCode.UPDATE_NAMESRV_CONFIG: update,
}
