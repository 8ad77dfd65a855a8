"""How to read everything that a broker keeps in its store, for a check of the store.

Every kind of document has a line here; `tests/broker/upkeep/test_stored_formats.py` fails for one
without. Tag codes of delayed messages depend on the broker's levels, which a check does not know.
"""

from pathlib import Path

import msgspec

from pocketmq.broker.access.users import AclTable, UserTable
from pocketmq.broker.balancing.assignment import RequestModeTable
from pocketmq.broker.core.names import topic_fault
from pocketmq.broker.delay.delays import delay_tag_rules
from pocketmq.broker.delay.progress import DelayProgress
from pocketmq.broker.delay.rules import real_place
from pocketmq.broker.groups.table import ForbiddenTable, GroupConfigTable
from pocketmq.broker.pop.recovery import SavedPops
from pocketmq.broker.pop.redelivery import KIND as POPS
from pocketmq.broker.settings import KIND as SETTING
from pocketmq.broker.static_topics.table import MappingTable
from pocketmq.broker.timers.queue import KIND as TIMERS
from pocketmq.broker.timers.queue import SavedTimers
from pocketmq.broker.timers.timers import timer_tag_rules
from pocketmq.broker.topics.table import MAX_QUEUES, TopicConfigTable
from pocketmq.broker.transactions.checks import half_tag_rules
from pocketmq.broker.transactions.half_messages import KIND as TRANSACTIONS
from pocketmq.broker.transactions.half_messages import SavedStates
from pocketmq.broker.transactions.half_states import unpack_states
from pocketmq.model import GroupConfig, TopicConfig, TopicMappingDetail
from pocketmq.protocol import decode_body
from pocketmq.protocol.requests.access import Acl, User
from pocketmq.store.check_values import CheckReport, StoredFormats
from pocketmq.store.checking import CheckProgress, check_store, ignore_progress
from pocketmq.store.repair import Repaired, repair_store


def _read_states(_: str, document: bytes) -> None:
    unpack_states(msgspec.json.decode(document, type=SavedStates).states)


def _waits_for(properties: bytes) -> tuple[str, int] | None:
    """Return the queue that properties name if it is valid: they have no checksum."""
    place = real_place(properties)
    if place is None or topic_fault(place[0]) is not None or place[1] >= MAX_QUEUES:
        return None
    return place


FORMATS = StoredFormats(
    documents={
        TopicConfigTable.kind: lambda _, document: decode_body(document, TopicConfig),
        MappingTable.kind: lambda _, document: decode_body(document, TopicMappingDetail),
        GroupConfigTable.kind: lambda _, document: decode_body(document, GroupConfig),
        UserTable.kind: lambda _, document: decode_body(document, User),
        AclTable.kind: lambda _, document: decode_body(document, Acl),
        ForbiddenTable.kind: lambda key, document: ForbiddenTable().load([(key, document)]),
        RequestModeTable.kind: lambda key, document: RequestModeTable().load([(key, document)]),
        DelayProgress.kind: lambda key, document: DelayProgress().load([(key, document)], 0),
        SETTING: lambda _, document: msgspec.json.decode(document, type=str),
        POPS: lambda _, document: msgspec.msgpack.decode(document, type=SavedPops),
        TIMERS: lambda _, document: msgspec.json.decode(document, type=SavedTimers),
        TRANSACTIONS: _read_states,
    },
    tag_rules={**half_tag_rules(), **timer_tag_rules()} | dict.fromkeys(delay_tag_rules("1s")),
    waits_for=_waits_for,
)


def check_broker_store(path: Path, progress: CheckProgress = ignore_progress) -> CheckReport:
    """Check a store, and everything that a broker keeps in it; see `check_store`."""
    return check_store(path, FORMATS, progress)


def repair_broker_store(path: Path) -> Repaired:
    """Repair a store; documents that a broker could not read are left out; see `repair_store`."""
    return repair_store(path, FORMATS)
