"""Records without the damaged ones among them: an error names those, or the query goes on.

Used when a batch cannot be decoded, which is rare; so records are looked at one by one.
"""

from collections.abc import Iterator

from pocketmq.balance.consumer.pulling import PullStatus
from pocketmq.blocking.record_reader import RecordReader
from pocketmq.client.damage import Suspicion
from pocketmq.errors import DataLost, MessagesCutShort
from pocketmq.model.kinds import OnDamage
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.received import DeliveryContext
from pocketmq.spark.layout import Part
from pocketmq.spark.source_options import Pulling


def without_damage(reader: RecordReader, part: Part, pulling: Pulling) -> Iterator[Part]:
    """Give the sound records of a part, those behind a damaged one pulled anew.

    Raises `DataLost` at a damaged record, unless the query is to go on without it.
    """
    suspicion = Suspicion()
    on_damage = OnDamage.STOP if pulling.fail_on_data_loss else OnDamage.SKIP
    at, records, behind = part.start, part.records, part.behind
    delta = part.offset_delta
    while True:
        try:
            decode_pulled(records, DeliveryContext())
        except MessagesCutShort as error:
            if error.decoded:
                suspicion.clear()
                yield Part(part.queue, records[: error.position], at, part.end, delta)
                at = error.decoded[-1].queue_offset + delta + 1
            else:
                try:
                    at = suspicion.next_offset(part.queue, at, behind, error, on_damage)
                except MessagesCutShort:
                    raise _lost(part, at, max(at + 1, behind), error) from error
        else:
            suspicion.clear()
            if records:
                yield Part(part.queue, records, at, part.end, delta)
            at = max(at + 1, behind)
        if at >= min(part.behind, part.end):
            return
        pulled = reader.pull(
            part.queue,
            at,
            max_messages=1 if suspicion.alone else min(part.behind, part.end) - at,
            max_bytes=pulling.size,
            wanted=pulling.wanted,
        )
        records, behind, delta = pulled.records, pulled.next_offset, pulled.offset_delta
        if pulled.status is PullStatus.OFFSET_ILLEGAL:  # deleted meanwhile
            at = behind


def _lost(part: Part, at: int, go_on: int, error: MessagesCutShort) -> DataLost:
    queue = part.queue
    why = f"the stored record is damaged ({error.reason})"
    return DataLost(queue.topic, queue.broker_name, queue.queue_id, (at, go_on), why)
