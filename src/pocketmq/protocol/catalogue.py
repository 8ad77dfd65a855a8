"""Every request in one table, gathered from the files of its features.

Brokers, name servers and tools import it; clients import the features they use.
"""

from types import ModuleType

from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.request import AnyRequest, Request
from pocketmq.protocol.requests import (
    access,
    assignment,
    broker_admin,
    client_calls,
    foreign,
    groups,
    key_values,
    membership,
    nameserver,
    offsets,
    pop,
    reading,
    sending,
    stats,
    topics,
)

FEATURES = (
    access,
    assignment,
    broker_admin,
    client_calls,
    foreign,
    groups,
    key_values,
    membership,
    nameserver,
    offsets,
    pop,
    reading,
    sending,
    stats,
    topics,
)


def rows_of(*features: ModuleType) -> dict[int, AnyRequest]:
    """Return the rows of features by code.

    Raises `TypeError` for a row that is not named as its code, and for a second row of a code.
    """
    rows: dict[int, AnyRequest] = {}
    for feature in features:
        for name, row in vars(feature).items():
            if not isinstance(row, Request):
                continue
            if name != row.code.name or row.code in rows:
                raise TypeError(f"{feature.__name__}.{name}: misplaced row of {row.code!r}")
            rows[int(row.code)] = row
    return rows


REQUESTS = rows_of(*FEATURES)
"""Every request code of RocketMQ, with its row."""


def request_of(code: int) -> AnyRequest:
    """Return the row of a request code; raises `UnknownRequestCode` for one without."""
    return REQUESTS[RequestCode.of(code)]
