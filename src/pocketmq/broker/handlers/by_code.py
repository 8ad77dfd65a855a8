"""Every request a broker answers, and the function that does."""

from pocketmq.broker.handlers import (
    accounts,
    assignment,
    delay,
    groups,
    locks,
    membership,
    offsets,
    pulling,
    queries,
    retry,
    sending,
    settings,
    statistics,
    topics,
    users,
)
from pocketmq.broker.state import Handler

HANDLERS: dict[int, Handler] = {
    int(code): handler
    for feature in (
        sending,
        retry,
        delay,
        pulling,
        offsets,
        membership,
        locks,
        queries,
        topics,
        groups,
        assignment,
        settings,
        statistics,
        users,
        accounts,
    )
    for code, handler in feature.HANDLERS.items()
}
