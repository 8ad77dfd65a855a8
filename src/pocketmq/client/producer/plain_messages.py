"""Which messages are plain, and where they go: the next queue in turn, without asking the rules.

What all plain messages to a queue have in common is made once: the templates of their requests, and
what follows the id in their property text. Decides only; `plain_sends` and `blocking.exchange`
send.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from pocketmq.client.producer.choices import delay_properties
from pocketmq.client.producer.plain_frames import from_json, json_text
from pocketmq.client.producer.publishing import Publication
from pocketmq.client.producer.requests import Outgoing, Template
from pocketmq.model import Message, MessageQueue, SysFlag
from pocketmq.model.topics import is_logical
from pocketmq.protocol.property_text import encode_properties

if TYPE_CHECKING:
    from pocketmq.client.producer.sending import Sending

_MASK = 0x7FFF_FFFF
_PREPARED = int(SysFlag.PREPARED)
_MOST_REMEMBERED = 4096  # names come from applications: what is cached by them is bounded

Aim: TypeAlias = tuple[Publication, int, MessageQueue, Template, bytes]
"""Where a plain message goes: topic, turn, queue, its template, and the end of the properties."""


class PlainTopic(msgspec.Struct, frozen=True):
    """A topic by the caller's name for it, and the templates of its queues of one route."""

    name: str
    publication: Publication
    queues: tuple[MessageQueue, ...]
    templates: tuple[Template, ...]


class PlainMessages:
    """Decides which messages are plain, and where they go. Any thread may call it."""

    def __init__(self, sending: "Sending") -> None:
        options, writer = sending.options, sending.exchange.writer
        self.possible = sending.rule.may_be_plain and writer.is_plain and options.linger is None
        """Whether any message is plain."""
        self._hooks = sending.hooks.hooks
        self.largest = min(options.compress_from - 1, options.max_message_size)
        """Bytes of a plain message's body, at most."""
        self._preparing = sending.preparing
        self._publishing = sending.publishing
        self._template = writer.plain_template
        self._topics: dict[str, PlainTopic] = {}
        self._latest: PlainTopic | None = None  # most messages have the topic of the one before
        self.tails: dict[str | None, bytes] = {}
        """The ends of properties by tag; always this dict."""
        self._delayed_tails: dict[tuple[str | None, int], bytes] = {}
        self._half_tails: dict[str | None, bytes] = {}

    def aim(self, message: Message, delay_level: int | None = None) -> Aim | None:
        """Return where a message goes if it is plain. No turn is taken by that: see `took`.

        None sends it the ordinary path, which also has the words for what can never be sent.
        """
        if type(message) is not Message:
            return None
        topic = self._latest
        if (
            topic is None
            or topic.name is not message.topic
            or topic.publication.queues is not topic.queues
            or self._hooks
        ):
            topic = self.topic(message.topic)
            if topic is None:
                return None
            self._latest = topic
        publication, queues = topic.publication, topic.queues
        if (
            not queues
            or not 0 < len(message.body) <= self.largest
            or message.keys
            or message.properties
            or message.flag
            or message.priority is not None
        ):
            return None
        if delay_level is None:
            tail = self.tails.get(message.tag)
            if tail is None:
                tail = self._tail(message.tag)
        else:
            tail = self._delayed_tail(message.tag, delay_level)
        turn = publication.robin.index + 1 & _MASK
        place = turn % len(queues)
        return publication, turn, queues[place], topic.templates[place], tail

    def topic(self, name: str) -> PlainTopic | None:
        """Return a topic with its route of now; None if none of its messages is plain."""
        if self._hooks or not self.possible:
            return None
        try:
            topic = self._topics.get(name)
        except TypeError:
            return None
        if topic is None and (topic := self._find(name)) is None:
            return None
        return topic if topic.publication.queues is topic.queues else self._renew(topic)

    def aim_half(self, message: Message, half: Mapping[str, str]) -> Aim | None:
        """Return the same for a half message, with the properties that all of them have.

        None as `aim`; also if sends are signed, as a signature covers the flag.
        """
        aim = self.aim(message)
        if aim is None:
            return None
        publication, turn, queue, template, _ = aim
        if template.signing is not None:
            return None
        if template.half is None:
            template.half = Template(queue, template.head, template.middle, sys_flag=_PREPARED)
        tail = self._half_tails.get(message.tag)
        if tail is None:
            tail = json_text(self._preparing.tail(message.tag) + encode_properties(half).decode())
            if len(self._half_tails) >= _MOST_REMEMBERED:
                self._half_tails.clear()
            self._half_tails[message.tag] = tail
        return publication, turn, queue, template.half, tail

    def outgoing(self, message: Message, aim: Aim, message_id: str) -> Outgoing:
        """Return a plain message that was sent already, for another try."""
        publication, _, _, template, tail = aim
        return self._preparing.named(
            message, publication.topic, message_id, from_json(tail), template.sys_flag
        )

    def _find(self, name: str) -> PlainTopic | None:
        wire = self._preparing.plain_topic(name)
        publication = None if wire is None else self._publishing.ready(wire)
        if publication is None:
            return None
        if len(self._topics) >= _MOST_REMEMBERED:
            self._topics.clear()
        return self._renew(PlainTopic(name, publication, (), ()))

    def _renew(self, old: PlainTopic) -> PlainTopic | None:
        queues = old.publication.queues
        if queues and is_logical(queues[0]):
            return None  # connections are remembered by the queue's broker, which is not a real one
        templates = tuple(map(self._template, queues))
        topic = PlainTopic(old.name, old.publication, queues, templates)
        self._topics[old.name] = topic
        return topic

    def _tail(self, tag: str | None) -> bytes:
        tail = json_text(self._preparing.tail(tag))
        if len(self.tails) >= _MOST_REMEMBERED:
            self.tails.clear()
        self.tails[tag] = tail
        return tail

    def _delayed_tail(self, tag: str | None, level: int) -> bytes:
        """Return the same for a message with a delay level. Raises `InvalidInput`."""
        tail = self._delayed_tails.get((tag, level)) if type(level) is int else None
        if tail is None:
            extra = delay_properties(None, level, None)
            tail = json_text(self._preparing.tail(tag) + encode_properties(extra).decode())
            if len(self._delayed_tails) >= _MOST_REMEMBERED:
                self._delayed_tails.clear()
            self._delayed_tails[tag, level] = tail
        return tail
