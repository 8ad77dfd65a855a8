"""Every error PocketMQ raises: one tree under `MQError`.

Class flags say what a caller may do about an error, so that retry loops read flags, never lists
of types:

* `retryable`: the same call may succeed if it is made again;
* `refresh_route`: ask the name server again before the next try;
* `outcome_unknown`: the request may have taken effect although no answer came.
"""

from pocketmq.errors.absent import Absent
from pocketmq.errors.client import ClientClosed, ClientForked, GroupTaken, WouldBlockLoop
from pocketmq.errors.invalid import (
    AllocationInputInvalid,
    AttributeRefused,
    FilterSyntaxError,
    FilterUndecided,
    InvalidInput,
    NameInvalid,
    StrategyUnknown,
)
from pocketmq.errors.migration import CannotMigrate, MigrationFileUnusable
from pocketmq.errors.pipeline import (
    BatchDecided,
    DataLost,
    LedgerUnusable,
    OptionInvalid,
    PipelineFailed,
    RowRefused,
    RowsNotSent,
)
from pocketmq.errors.response import ResponseCode
from pocketmq.errors.server import (
    ConsumerOffline,
    FlowControlled,
    MessageIllegal,
    NoPermission,
    OffsetMoved,
    RequestNotSupported,
    ServerError,
    ServiceNotAvailable,
    SubscriptionGroupNotFound,
    SystemBusy,
    SystemFailure,
    TopicNotFound,
    server_error,
)
from pocketmq.errors.start import CannotStart, PartEnded
from pocketmq.errors.store import (
    StoreCorrupt,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreInUse,
)
from pocketmq.errors.transport import (
    BrokerNotFound,
    ConnectFailed,
    ConnectionLost,
    ListenFailed,
    NameServersUnreachable,
    QueueNotSelected,
    RequestNotSent,
    RequestTimedOut,
    RouteNotFound,
    SendFailed,
    TransportError,
)
from pocketmq.errors.tree import MQError
from pocketmq.errors.wire import (
    BodyMalformed,
    BodyTooLarge,
    CodecMissing,
    FrameMalformed,
    FrameTooLarge,
    GreetingMalformed,
    HeaderMalformed,
    MessageMalformed,
    MessagesCutShort,
    ProtocolError,
    UnknownRequestCode,
)

__all__ = [
    "Absent",
    "AllocationInputInvalid",
    "AttributeRefused",
    "BatchDecided",
    "BodyMalformed",
    "BodyTooLarge",
    "BrokerNotFound",
    "CannotMigrate",
    "CannotStart",
    "ClientClosed",
    "ClientForked",
    "CodecMissing",
    "ConnectFailed",
    "ConnectionLost",
    "ConsumerOffline",
    "DataLost",
    "FilterSyntaxError",
    "FilterUndecided",
    "FlowControlled",
    "FrameMalformed",
    "FrameTooLarge",
    "GreetingMalformed",
    "GroupTaken",
    "HeaderMalformed",
    "InvalidInput",
    "LedgerUnusable",
    "ListenFailed",
    "MQError",
    "MessageIllegal",
    "MessageMalformed",
    "MessagesCutShort",
    "MigrationFileUnusable",
    "NameInvalid",
    "NameServersUnreachable",
    "NoPermission",
    "OffsetMoved",
    "OptionInvalid",
    "PartEnded",
    "PipelineFailed",
    "ProtocolError",
    "QueueNotSelected",
    "RequestNotSent",
    "RequestNotSupported",
    "RequestTimedOut",
    "ResponseCode",
    "RouteNotFound",
    "RowRefused",
    "RowsNotSent",
    "SendFailed",
    "ServerError",
    "ServiceNotAvailable",
    "StoreCorrupt",
    "StoreError",
    "StoreFailed",
    "StoreFull",
    "StoreInUse",
    "StrategyUnknown",
    "SubscriptionGroupNotFound",
    "SystemBusy",
    "SystemFailure",
    "TopicNotFound",
    "TransportError",
    "UnknownRequestCode",
    "WouldBlockLoop",
    "server_error",
]
