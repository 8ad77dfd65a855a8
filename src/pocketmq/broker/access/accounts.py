"""The accounts of 4.x and what each may do: pure rules in Java's words (PlainPermissionManager).

A group is guarded under the name of its retry topic, as in Java. Where Java looks at a signature
only, though messages or accounts are at stake, the same rules hold here as for the request's
siblings: batches, pops and pulls of other codes, and changes of accounts.
"""

from collections.abc import Mapping
from enum import IntFlag

import msgspec

from pocketmq.broker.access.addresses import AddressPattern, parse_pattern
from pocketmq.errors import InvalidInput, MQError, ResponseCode, ServerError, server_error
from pocketmq.model.names import RETRY_PREFIX, TRACE_TOPIC, is_retry_topic, retry_topic
from pocketmq.protocol.bodies.access import Account
from pocketmq.protocol.bodies.heartbeat import Heartbeat
from pocketmq.protocol.bodies.pop import BatchAcks
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.command import Command
from pocketmq.protocol.json_values import decode_body
from pocketmq.protocol.signature import ACCESS_KEY, Signed, check_signature

_EXCEPTION = "org.apache.rocketmq.acl.common.AclException"
_SHORTEST = 7
_REMEMBERED = 10_000
_ADMIN = frozenset(
    {Code.UPDATE_AND_CREATE_TOPIC, Code.UPDATE_BROKER_CONFIG, Code.DELETE_TOPIC_IN_BROKER}
    | {Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, Code.DELETE_SUBSCRIPTIONGROUP}  # until here Java's
    | {Code.UPDATE_AND_CREATE_TOPIC_LIST, Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST}
    | {Code.UPDATE_AND_CREATE_ACL_CONFIG, Code.DELETE_ACL_CONFIG}
    | {Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, Code.GET_BROKER_CLUSTER_ACL_CONFIG}
    | set(range(Code.AUTH_CREATE_USER, Code.AUTH_LIST_ACL + 1))
)


class Right(IntFlag):
    """What an account may do with a topic or group."""

    DENY = 1
    PUB = 4
    SUB = 8


_RIGHTS = {
    "PUB": Right.PUB,
    "SUB": Right.SUB,
    "PUB|SUB": Right.PUB | Right.SUB,
    "SUB|PUB": Right.PUB | Right.SUB,
}


class Holder(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """An account, ready for questions."""

    access_key: str
    secret: bytes
    white: AddressPattern
    admin: bool
    topics: Right
    groups: Right
    rights: dict[str, Right]

    def __repr__(self) -> str:
        return f"Holder(access_key={self.access_key!r})"


class Accounts(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Everybody a file names, and from where nobody is asked."""

    holders: dict[str, Holder] = {}
    white: tuple[AddressPattern, ...] = ()
    allowed: set[tuple[object, ...]] = set()
    """What was asked and may pass again."""


def read_accounts(white: list[str], accounts: list[Account]) -> Accounts:
    """Make accounts of what a file says. Raises `InvalidInput`."""
    holders: dict[str, Holder] = {}
    for account in accounts:
        holder = _holder(account)
        holders.setdefault(holder.access_key, holder)  # the first counts, as in Java
    return Accounts(holders=holders, white=tuple(parse_pattern(each) for each in white))


def check_account(
    accounts: Accounts, source: str, request: Command, fields: Mapping[str, str]
) -> None:
    """Raise `ServerError` with Java's code and words unless a request may pass."""
    for pattern in accounts.white:
        if pattern(source):
            return
    name = fields.get(ACCESS_KEY)
    if name is None:
        raise _refused("No accessKey is configured")
    holder = accounts.holders.get(name)
    if holder is None:
        raise _refused(f"No acl config for {name}")
    if holder.white(source):
        return
    if check_signature(holder.secret, request.code, fields, request.body) is Signed.NOT:
        raise _refused(f"Check signature failed for accessKey={name}")
    if request.code not in _KEYS:
        _check_rights(holder, request)
        return
    asked = name, request.code, *_named(request.code, fields)
    if asked not in accounts.allowed:
        _check_rights(holder, request)
        if len(accounts.allowed) >= _REMEMBERED:
            accounts.allowed.clear()
        accounts.allowed.add(asked)


def needed_rights(request: Command) -> dict[str, Right]:
    """Give what a request needs, by topic and retry topic.

    Raises a `ProtocolError` if its body cannot be read.
    """
    code = request.code
    if code in _KEYS:
        topic, group = _named(code, request.ext)
        if code in _SENDING:
            return _sent_to(topic, group)
        return _taken(popped_from(topic, group) if code in _ACKING else topic, group)
    needed: dict[str, Right] = {}
    if code == Code.HEART_BEAT:
        for data in decode_body(request.body, Heartbeat).consumer_data_set:
            needed |= _taken(None, data.group_name)
            for subscription in data.subscription_data_set:
                needed |= _taken(subscription.topic, None)
    elif code == Code.BATCH_ACK_MESSAGE:
        for ack in decode_body(request.body, BatchAcks).acks:
            needed |= _taken(popped_from(ack.topic, ack.consumer_group), ack.consumer_group)
    return needed


_NONE = ""
_KEYS: dict[int, tuple[str, str]] = {
    Code.SEND_MESSAGE: ("topic", "group"),
    Code.SEND_MESSAGE_V2: ("b", "a"),
    Code.CONSUMER_SEND_MSG_BACK: (_NONE, "group"),
    Code.PULL_MESSAGE: ("topic", "consumerGroup"),
    Code.QUERY_MESSAGE: ("topic", _NONE),
    Code.UNREGISTER_CLIENT: (_NONE, "consumerGroup"),
    Code.GET_CONSUMER_LIST_BY_GROUP: (_NONE, "consumerGroup"),
    Code.UPDATE_CONSUMER_OFFSET: ("topic", "consumerGroup"),
    Code.SEND_BATCH_MESSAGE: ("b", "a"),  # from here on Java looks at the signature only
    Code.LITE_PULL_MESSAGE: ("topic", "consumerGroup"),
    Code.POP_MESSAGE: ("topic", "consumerGroup"),
    Code.PEEK_MESSAGE: ("topic", "consumerGroup"),
    Code.NOTIFICATION: ("topic", "consumerGroup"),
    Code.ACK_MESSAGE: ("topic", "consumerGroup"),
    Code.CHANGE_MESSAGE_INVISIBLETIME: ("topic", "consumerGroup"),
}
"""The fields that hold topic and group."""
_SENDING = frozenset({Code.SEND_MESSAGE, Code.SEND_MESSAGE_V2, Code.SEND_BATCH_MESSAGE})
_ACKING = frozenset({Code.ACK_MESSAGE, Code.CHANGE_MESSAGE_INVISIBLETIME})


def _named(code: int, fields: Mapping[str, str]) -> tuple[str | None, str | None]:
    topic_key, group_key = _KEYS[code]
    return fields.get(topic_key), fields.get(group_key)


def popped_from(topic: str | None, group: str | None) -> str | None:
    """Give the topic of a popped message; one that came again is in a topic of group and topic."""
    for mark in ("_", "+"):
        start = f"{RETRY_PREFIX}{group}{mark}"
        if topic is not None and topic.startswith(start):
            return topic.removeprefix(start)
    return topic


def _sent_to(topic: str | None, group: str | None) -> dict[str, Right]:
    if topic is not None and is_retry_topic(topic):
        return {} if group is None else {retry_topic(group): Right.SUB}
    return {} if topic is None else {topic: Right.PUB}


def _taken(topic: str | None, group: str | None) -> dict[str, Right]:
    names = (topic, None if group is None else retry_topic(group))
    return {name: Right.SUB for name in names if name is not None}


def _check_rights(holder: Holder, request: Command) -> None:
    try:
        needed = needed_rights(request)
    except MQError as error:
        raise _refused(str(error)) from error
    if needed.get(TRACE_TOPIC) == Right.PUB:
        return
    if request.code in _ADMIN and not holder.admin:
        raise _refused(
            f"Need admin permission for request code={request.code}, "
            f"but accessKey={holder.access_key} is not"
        )
    if holder.admin and not holder.rights:
        return
    for name, right in needed.items():
        default = holder.groups if is_retry_topic(name) else holder.topics
        owned = holder.rights.get(name, default)
        if owned & Right.DENY or not owned & right:
            group = name.removeprefix(RETRY_PREFIX)
            shown = f"group:{group}" if is_retry_topic(name) else f"topic:{name}"
            raise _refused(f"No default permission for {shown}")


def _refused(text: str) -> ServerError:
    """Make Java's answer; it names the class of its exception before the text."""
    return server_error(ResponseCode.SYSTEM_ERROR, f"{_EXCEPTION}: {text}")


def _holder(account: Account) -> Holder:
    key, secret = account.access_key or "", account.secret_key or ""
    if len(key) < _SHORTEST or len(secret) < _SHORTEST:
        raise InvalidInput(
            f"the account {key!r} needs an accessKey and a secretKey of more than 6 characters each"
        )
    topics = _listed("topic", account.topic_perms)
    groups = _listed("group", account.group_perms)
    return Holder(
        access_key=key,
        secret=secret.encode(),
        white=parse_pattern(account.white_remote_address),
        admin=account.admin,
        topics=_right(account.default_topic_perm),
        groups=_right(account.default_group_perm),
        rights=topics | {retry_topic(group): right for group, right in groups.items()},
    )


def _listed(kind: str, lines: list[str] | None) -> dict[str, Right]:
    rights = {}
    for line in lines or ():
        words = [word.strip() for word in line.split("=")]
        if len(words) != 2 or not all(words):
            raise InvalidInput(f"Parse resource permission failed for {kind}:{line}")
        rights[words[0]] = _right(words[1])
    return rights


def _right(text: str | None) -> Right:
    """Read a right; whatever is none denies, as in Java."""
    return _RIGHTS.get((text or "").strip(), Right.DENY)
