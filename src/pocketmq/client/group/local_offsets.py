"""Offsets of a broadcasting consumer: a file of its own, where and as Java keeps it.

`<home>/.rocketmq_offsets/<client id>/<group>/offsets.json`, beside it `offsets.json.bak` with the
state before. A write goes to another file first and takes the place of the old one in one step,
so that a process killed in between leaves one whole file or the other. Nothing is forced to disk:
writes come every few seconds, and after a loss of power the older file is good enough.
"""

import logging
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from pocketmq.balance.consumer.offsets import NO_OFFSET, NotedOffsets
from pocketmq.errors import InvalidInput, MQError
from pocketmq.model import MessageQueue, WireValue, sort_queues
from pocketmq.protocol import decode_body
from pocketmq.protocol.fastjson import quote

logger = logging.getLogger("pocketmq.client")

FILE = "offsets.json"
LARGEST = 64 * 1024 * 1024
"""A larger file was not written by any consumer."""


class StoredOffsets(WireValue, frozen=True, kw_only=True):
    """What the file holds (Java: OffsetSerializeWrapper)."""

    offset_table: dict[MessageQueue, int] = {}


def offsets_file(directory: str, client_id: str, group: str) -> Path:
    """Return the path of a consumer's offsets."""
    root = Path(directory) if directory else Path.home() / ".rocketmq_offsets"
    return root / client_id / group / FILE


class LocalOffsets:
    """Offsets of a broadcasting consumer, which shares its queues with no other."""

    def __init__(self, file: Path) -> None:
        self.table = NotedOffsets()
        self.file = file
        self._failing = False

    def load(self) -> None:
        """Take over what the file holds.

        Raises `InvalidInput` if neither it nor its backup can be read, rather than start over.
        """
        for queue, offset in self._stored().items():
            self.table.update(queue, offset, increase_only=False)

    async def read(self, queue: MessageQueue) -> int:
        """Return the offset in the file, and note it."""
        try:
            offset = self._stored().get(queue, NO_OFFSET)
        except InvalidInput as error:
            logger.warning("%s", error)
            return NO_OFFSET
        if offset != NO_OFFSET:
            self.table.update(queue, offset, increase_only=False)
        return offset

    def persist(self, queue: MessageQueue) -> None:
        """Write one queue's offset; the others stay as the file has them."""
        offset = self.table.read(queue)
        if offset != NO_OFFSET:
            self._store({queue: offset})

    async def persist_all(self, held: Collection[MessageQueue]) -> None:
        """Write the offsets of the held queues; others stay as the file has them."""
        noted = self.table.of_topic(None)
        wanted = {queue: noted[queue] for queue in held if queue in noted}
        if wanted:
            self._store(wanted)

    async def persist_last(self, held: Collection[MessageQueue]) -> None:
        """Write them a last time."""
        await self.persist_all(held)

    def _store(self, offsets: Mapping[MessageQueue, int]) -> None:
        try:
            before = self._stored()
            after = {**before, **offsets}
            if after != before or not self.file.exists():
                _replace(self.file, pretty(after).encode())
            self._failing = False
        except (OSError, InvalidInput) as error:
            log = logger.debug if self._failing else logger.error
            log('storing offsets failed: file=%s error="%s"; retrying', self.file, error)
            self._failing = True

    def _stored(self) -> dict[MessageQueue, int]:
        """Return what the file holds, or its backup if the file is empty or broken."""
        failure: Exception | None = None
        for file in (self.file, _backup(self.file)):
            try:
                found = _read(file)
            except (OSError, MQError) as error:
                logger.warning('reading offsets failed: file=%s error="%s"', file, error)
                failure = error
            else:
                if found is not None:
                    return found
        if failure is not None:
            raise InvalidInput(
                f"{self.file} and its backup cannot be read ({failure}); repair or remove them"
            ) from failure
        return {}


def pretty(offsets: Mapping[MessageQueue, int]) -> str:
    """Write offsets as Java does: object keys and all, one line for each field."""
    entries = [
        f'\n\t\t{{\n\t\t\t"brokerName":{quote(queue.broker_name)},\n'
        f'\t\t\t"queueId":{queue.queue_id},\n'
        f'\t\t\t"topic":{quote(queue.topic)}\n\t\t}}:{offsets[queue]}'
        for queue in sort_queues(set(offsets))
    ]
    inner = ",".join(entries) + "\n\t" if entries else ""
    return f'{{\n\t"offsetTable":{{{inner}}}\n}}'


def _read(file: Path) -> dict[MessageQueue, int] | None:
    """Return what a file holds; None if it is missing or empty."""
    try:
        if file.stat().st_size > LARGEST:
            raise InvalidInput(f"{file} is larger than {LARGEST} bytes")
        text = file.read_bytes()
    except FileNotFoundError:
        return None
    return dict(decode_body(text, StoredOffsets).offset_table) if text else None


def _replace(file: Path, text: bytes) -> None:
    """Let a file have a new content, and its backup the old one; each in one step."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f"{FILE}.{os.getpid()}.tmp")
    fresh.write_bytes(text)
    try:
        old = file.read_bytes()
    except FileNotFoundError:
        old = b""
    if old:
        copy = file.with_name(f"{FILE}.{os.getpid()}.bak.tmp")
        copy.write_bytes(old)
        copy.replace(_backup(file))
    fresh.replace(file)


def _backup(file: Path) -> Path:
    return file.with_name(file.name + ".bak")
