"""What a client tells brokers about its groups in every heartbeat."""

from pocketmq.model.kinds import ConsumeFromWhere, ConsumeType, MessageModel
from pocketmq.model.subscription import Subscription
from pocketmq.model.value import WireValue


class ProducerData(WireValue, frozen=True, kw_only=True):
    """One producer group of a client."""

    group_name: str


class ConsumerData(WireValue, frozen=True, kw_only=True):
    """One consumer group of a client: how it consumes, and what."""

    group_name: str
    consume_type: ConsumeType = ConsumeType.CONSUME_PASSIVELY
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    subscription_data_set: list[Subscription] = []
    unit_mode: bool = False
