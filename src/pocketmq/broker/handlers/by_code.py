"""Every request a broker answers, and the function that does."""

from pocketmq.broker.handlers import (
    accounts,
    assignment,
    connections,
    delay,
    groups,
    locks,
    membership,
    offsets,
    popping,
    pulling,
    queries,
    recall,
    replies,
    retry,
    sending,
    settings,
    statistics,
    topics,
    transactions,
    users,
)
from pocketmq.broker.state import Handler

HANDLERS: dict[int, Handler] = {
    int(code): handler
    for feature in (
        sending,
        retry,
        delay,
        transactions,
        recall,
        replies,
        pulling,
        popping,
        offsets,
        membership,
        connections,
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
