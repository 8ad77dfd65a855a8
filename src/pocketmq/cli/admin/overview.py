"""The cluster at a glance: `clusterList`, `statsAll`, and `top`, the live view."""

import asyncio

from pocketmq.admin.admin import Admin
from pocketmq.admin.brokers import BrokerStatus
from pocketmq.admin.gathered import ServerPlace
from pocketmq.admin.overview import Glance, TopicTraffic, TrafficRate
from pocketmq.cli import completion
from pocketmq.cli.admin import flags, java_text
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.shown import Shown, front, row, table_lines, told
from pocketmq.cli.output import TableColumn
from pocketmq.model import names as topic_names

_BASE = "%-22s  %-22s  %-4s  %-22s %-16s  %16s  %30s  %-22s  %-11s  %-12s  %-8s  %-10s"
_BASE_ROW = "%-22s  %-22s  %-4s  %-22s %-16s  %16s  %30s  %-22s  %11s  %-12s  %-8s  %10s"
_MORE = "%-16s  %-32s %14s %14s %14s %14s"
_COLUMNS = "%-64s  %-64s %12s %11s %11s %14s %14s"
_UNKNOWN = "?"


@admin_command(
    "clusterList",
    flags.CLUSTER,
    flags.flag("-m", "--moreStats", "more", help="Show totals of messages."),
    flags.INTERVAL,
)
async def cluster_list(admin: Admin, *, cluster: str | None, more: bool) -> Shown:
    """Show clusters and the state of their brokers.

    `?` stands for unknown figures.
    """
    places = await admin.brokers.all(cluster)
    found = await admin.brokers.status(cluster)
    status: dict[ServerPlace, BrokerStatus] = {each.place: each.value for each in found}
    if more:
        lines = [
            row(
                _MORE,
                "#Cluster Name",
                "#Broker Name",
                "#InTotalYest",
                "#OutTotalYest",
                "#InTotalToday",
                "#OutTotalToday",
            )
        ]
        lines += [_more(place, status.get(place)) for place in places]
    else:
        lines = [
            row(
                _BASE,
                "#Cluster Name",
                "#Broker Name",
                "#BID",
                "#Addr",
                "#Version",
                "#InTPS(LOAD)",
                "#OutTPS(LOAD)",
                "#Timer(Progress)",
                "#PCWait(ms)",
                "#Hour",
                "#SPACE",
                "#ACTIVATED",
            )
        ]
        now = admin.now_ms() / 1000
        lines += [_base(place, status.get(place), now) for place in places]
    brokers = [{"place": place, "status": status.get(place)} for place in places]
    return Shown(lines, {"brokers": brokers}, told(found.missing))


def _more(place: ServerPlace, status: BrokerStatus | None) -> str:
    numbers: list[object] = [_UNKNOWN] * 4
    if status is not None:
        numbers = [
            _UNKNOWN if each is None else each
            for each in (
                status.put_yesterday,
                status.get_yesterday,
                status.put_today,
                status.get_today,
            )
        ]
    return row(_MORE, place.cluster, place.broker, *numbers)


def _base(place: ServerPlace, status: BrokerStatus | None, now: float) -> str:
    where = (place.cluster, place.broker, place.broker_id, place.address)
    if status is None:
        return row(_BASE_ROW, *where, *([_UNKNOWN] * 8))
    figure = status.figures.get
    sends = (
        f"{figure('sendThreadPoolQueueSize')},{figure('sendThreadPoolQueueHeadWaitTimeMills')}ms"
    )
    pulls = (
        f"{figure('pullThreadPoolQueueSize')},{figure('pullThreadPoolQueueHeadWaitTimeMills')}ms"
    )
    acks = (
        f"{figure('ackThreadPoolQueueSize', 'N')},"
        f"{figure('ackThreadPoolQueueHeadWaitTimeMills', 'N')}ms"
    )
    earliest = status.earliest_message
    return row(
        _BASE_ROW,
        *where,
        status.version or _UNKNOWN,
        f"{_padded(status.put_tps)}({sends})",
        f"{_padded(status.get_tps)}({pulls}|{acks})",
        _timer(status.figures),
        figure("pageCacheLockTimeMills", _UNKNOWN),
        _UNKNOWN if earliest is None else f"{(now - earliest) / 3600:2.2f}",
        _UNKNOWN if status.disk_ratio is None else f"{status.disk_ratio:.4f}",
        _UNKNOWN if status.active is None else java_text.java_word(status.active),
    )


def _padded(rate: float | None) -> str:
    return f"{_UNKNOWN:>9}" if rate is None else f"{rate:9.2f}"


def _timer(figures: dict[str, str]) -> str:
    """Return the state of the timer wheel; `?` where Java prints zeros for none."""
    names = ("timerReadBehind", "timerOffsetBehind", "timerCongestNum")
    rates = ("timerEnqueueTps", "timerDequeueTps")
    try:
        behind, offset, congested = (int(figures[name]) for name in names)
        into, out = (float(figures[name]) for name in rates)
    except (KeyError, ValueError):
        return _UNKNOWN
    return f"{behind}-{offset}({congested / 10000:.1f}w, {into:.1f}, {out:.1f})"


def _rate(flow: TrafficRate) -> str:
    return _UNKNOWN if flow.tps is None else f"{flow.tps:.2f}"


def _day(flow: TrafficRate) -> str:
    return _UNKNOWN if flow.day is None else str(flow.day)


@admin_command(
    "statsAll",
    flags.flag("-a", "--activeTopic", "active", help="Only topics with traffic."),
    flags.text("-t", "--topic", help="Only this topic.", completed=completion.topic_names),
)
async def stats_all(admin: Admin, *, active: bool, topic: str | None) -> Shown:
    """Show the traffic of topics and groups.

    `?` stands for unknown figures.
    """
    if topic is not None:
        await admin.topics.route(topic)
        names = [topic]
    else:
        names = [
            name
            for name in await admin.topics.names()
            if not topic_names.is_retry_topic(name) and not topic_names.is_dead_letter_topic(name)
        ]
    found = await admin.overview.traffic(names)
    heads = ("#Accumulation", "#InTPS", "#OutTPS", "#InMsg24Hour", "#OutMsg24Hour")
    lines = [row(_COLUMNS, "#Topic", "#Consumer Group", *heads)]
    for each in found:
        lines += _traffic(each, active=active)
    problems = dict.fromkeys(problem for each in found for problem in told(each.missing))
    return Shown(lines, {"topics": found}, tuple(problems))


def _traffic(each: TopicTraffic, *, active: bool) -> list[str]:
    topic, into = front(each.topic, 64), each.into
    lines = []
    for group in each.groups:
        if active and not into.day and not group.out.day:
            continue
        lag = _UNKNOWN if group.lag is None else group.lag
        name = front(group.group, 64)
        rates = (_rate(into), _rate(group.out), _day(into), _day(group.out))
        lines.append(row(_COLUMNS, topic, name, lag, *rates))
    if not each.groups and (not active or into.day):
        lines.append(row(_COLUMNS, topic, "", 0, _rate(into), "", _day(into), "NO_CONSUMER"))
    return lines


_TOP_BROKERS = (
    TableColumn("BROKER", least=22),
    TableColumn("ADDRESS", least=22),
    *(TableColumn(name, right=True, least=8) for name in ("IN/S", "OUT/S", "DISK")),
)
_TOP_TOPICS = (
    TableColumn("TOPIC", least=40),
    *(TableColumn(name, right=True, least=10) for name in ("IN/S", "IN 24 H", "GROUPS")),
)
_TOP_GROUPS = (
    TableColumn("GROUP", least=40),
    *(TableColumn(name, right=True, least=10) for name in ("MEMBERS", "OUT/S", "LAG")),
)


@admin_command(
    "top",
    flags.number("--rows", default=15, least=1, help="Rows of each table."),
    live=True,
)
async def top(admin: Admin, *, rows: int) -> Shown:
    """Show brokers, busiest topics and lagging groups.

    A live view on a terminal, every 2 seconds or as --watch says; printed once when piped.
    """
    places = await admin.brokers.all()
    status = await admin.brokers.status()
    known = {each.place: each.value for each in status}
    names = await admin.topics.names()
    groups = [
        name.removeprefix(topic_names.RETRY_PREFIX)
        for name in names
        if topic_names.is_retry_topic(name)
    ]
    brokers = {place.broker for place in places} | {place.cluster for place in places}
    topics = [name for name in names if name not in brokers and _is_users(name)]
    traffic, glances = await asyncio.gather(
        admin.overview.traffic(topics), admin.overview.groups(groups)
    )
    busiest = sorted(traffic, key=lambda t: (-(t.into.tps or 0), -(t.into.day or 0), t.topic))
    behind = sorted(glances, key=lambda g: (-(g.progress.lag if g.progress else 0), g.group))
    lines = [
        *table_lines(_TOP_BROKERS, [_top_broker(place, known.get(place)) for place in places]),
        "",
        *table_lines(_TOP_TOPICS, [_top_topic(each) for each in busiest[:rows]]),
        "",
        *table_lines(_TOP_GROUPS, [_top_group(each) for each in behind[:rows]]),
    ]
    problems = [*told(status.missing)]
    problems += [f"group {glance.group}: {error}" for glance in glances for error in glance.errors]
    data = {"brokers": status.answers, "topics": busiest[:rows], "groups": behind[:rows]}
    return Shown(lines, data, tuple(problems))


def _is_users(topic: str) -> bool:
    return not (
        topic_names.is_retry_topic(topic)
        or topic_names.is_dead_letter_topic(topic)
        or topic_names.is_system_topic(topic)
    )


def _top_broker(place: ServerPlace, status: BrokerStatus | None) -> tuple[object, ...]:
    figures: list[float | None] = [None] * 3
    if status is not None:
        figures = [status.put_tps, status.get_tps, status.disk_ratio]
    shown = [_UNKNOWN if figure is None else f"{figure:.2f}" for figure in figures]
    return (place.broker, place.address, *shown)


def _top_topic(traffic: TopicTraffic) -> tuple[object, ...]:
    into = traffic.into
    return (front(traffic.topic, 40), _rate(into), _day(into), len(traffic.groups))


def _top_group(glance: Glance) -> tuple[object, ...]:
    members = _UNKNOWN if glance.members is None else len(glance.members)
    progress = glance.progress
    rate = _UNKNOWN if progress is None else f"{progress.consume_tps:.2f}"
    lag = _UNKNOWN if progress is None else progress.lag
    return (front(glance.group, 40), members, rate, lag)
