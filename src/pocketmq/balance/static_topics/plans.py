"""Where logical queues go: plans to create a static topic, to add queues, and to move queues.

The rules are Java's (TopicQueueMappingUtils); the time is an argument. Where Java shuffles brokers
that have equally few queues, the order of their names decides here.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

import msgspec

from pocketmq.balance.static_topics import checks
from pocketmq.errors import MappingRefused
from pocketmq.model import MappedTopicConfig, TopicMappingDetail
from pocketmq.model.topics import MAX_STATIC_QUEUES, MappedRange, TopicMappingPlan

Configs: TypeAlias = Mapping[str, MappedTopicConfig]
"""How a static topic is set up, with its mapping, by the name of the broker."""
CREATE, MOVE = "CREATE_OR_UPDATE", "REMAPPING"
_EPOCH_STEP = 1000


def creation_plan(
    topic: str, queues: int, targets: Collection[str], configs: Configs, now_ms: int
) -> TopicMappingPlan:
    """Plan a static topic with a number of queues on brokers, or further queues of one.

    Raises `MappingRefused`.
    """
    epoch, led = now_ms, dict[int, list[MappedRange]]()
    if configs:
        epoch, _ = checks.check_alike(topic, configs)
        led = checks.led_queues(configs.values())
        checks.check_physical_queues(configs)
    if queues < len(led):
        raise MappingRefused(
            f"Cannot decrease the queue num for static topic {queues} < {len(led)}"
        )
    if queues == len(led):
        raise MappingRefused("The topic queue num is equal the existed queue num, do nothing")
    if queues > MAX_STATIC_QUEUES:
        raise MappingRefused(f"a static topic can have {MAX_STATIC_QUEUES} queues at most")
    counts = dict.fromkeys(sorted(targets), 0)
    for parts in led.values():
        counts[_leader(parts)] = counts.get(_leader(parts), 0) + 1
    drafts = {name: _Draft(topic, name, config) for name, config in configs.items()}
    for number, broker in zip(
        range(len(led), queues), _fewest_first(counts, queues - len(led)), strict=True
    ):
        draft = drafts.setdefault(broker, _Draft(topic, broker))
        draft.hosted[number] = [_range(0, draft.add_queue(), broker, logic_offset=0)]
    newest = max(epoch + _EPOCH_STEP, now_ms)
    made = {name: draft.config(queues, newest) for name, draft in drafts.items()}
    _double_check(topic, made)
    return TopicMappingPlan(topic=topic, type=CREATE, epoch=newest, broker_config_map=made)


def moving_plan(
    topic: str, targets: Collection[str], configs: Configs, now_ms: int
) -> TopicMappingPlan:
    """Plan how a static topic's queues come to lie on some brokers, evenly, moving few of them.

    A broker either gets queues or loses some, never both. Raises `MappingRefused`.
    """
    epoch, queues = checks.check_alike(topic, configs)
    led = checks.led_queues(configs.values())
    checks.check_physical_queues(configs)
    drafts = {name: _Draft(topic, name, config) for name, config in configs.items()}
    sources: set[str] = set()
    gaining: set[str] = set()
    for number, broker in _destinations(led, targets).items():
        parts = led[number]
        if _leader(parts) == broker:
            continue
        gaining.add(broker)
        sources.add(_leader(parts))
        draft = drafts.setdefault(broker, _Draft(topic, broker))
        moved = [*parts, _range(parts[-1].gen + 1, draft.add_queue(), broker, logic_offset=-1)]
        for name in (broker, _leader(parts)):
            drafts[name].hosted[number] = moved
    newest = max(epoch + _EPOCH_STEP, now_ms)
    made = {name: draft.config(queues, newest) for name, draft in drafts.items()}
    _double_check(topic, made)
    return TopicMappingPlan(
        topic=topic,
        type=MOVE,
        epoch=newest,
        broker_config_map=made,
        broker_to_map_in=sorted(gaining),
        broker_to_map_out=sorted(sources),
    )


def completed(plan: TopicMappingPlan, brokers: Iterable[str]) -> TopicMappingPlan:
    """Add the other brokers of a cluster: they learn of the topic, and lead none of its queues."""
    made = dict(plan.broker_config_map)
    some = next(iter(made.values()))
    queues = 0 if some.mapping_detail is None else some.mapping_detail.total_queues
    for name in brokers:
        if name not in made:
            made[name] = _Draft(plan.topic, name).config(queues, plan.epoch)
    return msgspec.structs.replace(plan, broker_config_map=made)


def _destinations(led: Mapping[int, list[MappedRange]], targets: Collection[str]) -> dict[int, str]:
    """Return the broker of each queue; queues stay where they are as far as the numbers allow."""
    before: dict[str, int] = {}
    for parts in led.values():
        before[_leader(parts)] = before.get(_leader(parts), 0) + 1
    counts = dict.fromkeys(sorted(targets), 0)
    wanted: dict[str, int] = {}
    for broker in _fewest_first(counts, len(led), before):
        wanted[broker] = wanted.get(broker, 0) + 1
    found: dict[int, str] = {}
    waiting: deque[int] = deque()
    for number, parts in sorted(led.items()):
        broker = _leader(parts)
        if wanted.get(broker, 0) > 0:
            wanted[broker] -= 1
            found[number] = broker
        else:
            waiting.append(number)
    for broker, count in wanted.items():
        for _ in range(count):
            found[waiting.popleft()] = broker
    return found


def _fewest_first(
    counts: dict[str, int], number: int, before: Mapping[str, int] | None = None
) -> list[str]:
    """Choose a broker with the fewest queues `number` times; of equals, that with more before."""
    held = before or {}
    chosen = []
    for _ in range(number):
        broker = min(counts, key=lambda name: (counts[name], -held.get(name, 0)))
        counts[broker] += 1
        chosen.append(broker)
    return chosen


class _Draft:
    """A topic's set-up on one broker while a plan is made."""

    def __init__(self, topic: str, broker: str, config: MappedTopicConfig | None = None) -> None:
        none = MappedTopicConfig(topic_name=topic, read_queue_nums=0, write_queue_nums=0)
        self._config = none if config is None else config
        self._detail = self._config.mapping_detail or TopicMappingDetail(topic=topic, bname=broker)
        self._added = 0
        self.hosted = dict(self._detail.hosted_queues)

    def add_queue(self) -> int:
        """Add a physical queue; return its id."""
        self._added += 1
        return self._config.write_queue_nums + self._added - 1

    def config(self, queues: int, epoch: int) -> MappedTopicConfig:
        """Return the set-up as planned."""
        detail = msgspec.structs.replace(
            self._detail, hosted_queues=self.hosted, total_queues=queues, epoch=epoch
        )
        return msgspec.structs.replace(
            self._config,
            read_queue_nums=self._config.read_queue_nums + self._added,
            write_queue_nums=self._config.write_queue_nums + self._added,
            mapping_detail=detail,
        )


def _range(gen: int, queue_id: int, broker: str, *, logic_offset: int) -> MappedRange:
    return MappedRange(gen=gen, queue_id=queue_id, bname=broker, logic_offset=logic_offset)


def _leader(parts: list[MappedRange]) -> str:
    return parts[-1].bname or ""


def _double_check(topic: str, made: Configs) -> None:
    checks.check_alike(topic, made)
    checks.led_queues(made.values())
    checks.check_physical_queues(made)
