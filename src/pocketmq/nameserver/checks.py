"""What a registration may say: sizes and names, checked before anything is stored.

Java's name server stores whatever it is sent and hands it to every client. Names are not held to
the rules for topics here: brokers register topics with their own names, which may be host names.
"""

import re

from pocketmq.errors import ServerError, SystemFailure
from pocketmq.errors.server import ResponseCode
from pocketmq.model.route import QueueData
from pocketmq.nameserver.registrations import Announcement, TableLimits
from pocketmq.protocol.requests.topics import TopicTableBody

_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def refused(reason: str) -> ServerError:
    """Make the error for what this name server does not take in."""
    return SystemFailure(ResponseCode.SYSTEM_ERROR, f"refused: {reason}")


def check_name(what: str, name: str, limits: TableLimits) -> None:
    """Raise `ServerError` for a name that is empty, too long or holds blanks or controls."""
    if not name:
        raise refused(f"an empty {what}")
    if len(name) > limits.name_length:
        raise refused(f"a {what} of {len(name)} characters; {limits.name_length} are allowed")
    if _UNPRINTABLE.search(name):
        raise refused(f"the {what} {name!r} holds a blank or a control character")


def check_announcement(broker: Announcement, limits: TableLimits) -> None:
    """Raise `ServerError` if a broker's description of itself cannot be stored."""
    check_name("cluster name", broker.cluster, limits)
    check_name("broker name", broker.name, limits)
    check_name("broker address", broker.address, limits)
    if len(broker.ha_address) > limits.name_length:
        raise refused(f"an HA address of {len(broker.ha_address)} characters")
    if broker.zone is not None and len(broker.zone) > limits.name_length:
        raise refused(f"a zone name of {len(broker.zone)} characters")
    servers = broker.filter_servers or ()
    if len(servers) > limits.filter_servers:
        raise refused(f"{len(servers)} filter servers; {limits.filter_servers} are allowed")
    for server in servers:
        check_name("filter server", server, limits)


def check_topics(table: TopicTableBody, limits: TableLimits) -> None:
    """Raise `ServerError` if a topic of a registration cannot be stored."""
    for config in table.topic_config_table.values():
        check_name("topic name", config.topic_name, limits)
        check_counts(config.topic_name, config.read_queue_nums, config.write_queue_nums, limits)
    for topic, mapping in (table.topic_queue_mapping_info_map or {}).items():
        check_name("topic name", topic, limits)
        check_counts(topic, mapping.total_queues, len(mapping.curr_id_map or ()), limits)


def check_queue_data(topic: str, data: QueueData, limits: TableLimits) -> None:
    """Raise `ServerError` if a topic that is registered alone cannot be stored."""
    check_name("topic name", topic, limits)
    check_counts(topic, data.read_queue_nums, data.write_queue_nums, limits)


def check_counts(topic: str, reads: int, writes: int, limits: TableLimits) -> None:
    """Raise `ServerError` for numbers of queues that would cost every client its memory."""
    if not (0 <= reads <= limits.queues and 0 <= writes <= limits.queues):
        raise refused(f"topic {topic} with {reads} and {writes} queues; {limits.queues} is most")
