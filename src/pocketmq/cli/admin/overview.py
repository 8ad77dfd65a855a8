"""The cluster at a glance: `clusterList`, `statsAll`, and `top`, the live view."""

import asyncio

import click

from pocketmq.admin.admin import Admin
from pocketmq.admin.brokers import BrokerStatus
from pocketmq.admin.gathered import ServerPlace
from pocketmq.admin.overview import TopicTraffic, TrafficRate
from pocketmq.cli.admin.flags import CLUSTER, INTERVAL, flag, text
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.java_text import java_word
from pocketmq.cli.admin.shown import Shown, front, row, told
from pocketmq.model.names import (
    RETRY_PREFIX,
    is_dead_letter_topic,
    is_retry_topic,
    is_system_topic,
)

_COLUMNS = "%-64s  %-64s %12s %11s %11s %14s %14s"
_UNKNOWN = "?"


def _rate(flow: TrafficRate) -> str:
    return _UNKNOWN if flow.tps is None else f"{flow.tps:.2f}"


def _day(flow: TrafficRate) -> str:
    return _UNKNOWN if flow.day is None else str(flow.day)


@admin_command(
    "statsAll",
    flag("-a", "--activeTopic", "active", help="Only what had traffic."),
    text("-t", "--topic", help="One topic."),
)
async def stats_all(admin: Admin, *, active: bool, topic: str | None) -> Shown:
    """Show the traffic of topics and groups; `?` stands for what is not known."""
    if topic is not None:
        await admin.topics.route(topic)
        names = [topic]
    else:
        names = [
            name
            for name in await admin.topics.names()
            if not is_retry_topic(name) and not is_dead_letter_topic(name)
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


@admin_command(
    "top",
    click.option("--rows", type=click.IntRange(1), default=15, show_default=True, help="Lines."),
    live=True,
)
async def top(admin: Admin, *, rows: int) -> Shown:
    """Show brokers, the busiest topics and the groups with the most lag.

    On a terminal it is a live view, every 2 seconds or as --watch says; else one picture.
    """
    places = await admin.brokers.all()
    status = await admin.brokers.status()
    known = {each.place: each.value for each in status}
    names = await admin.topics.names()
    groups = [name.removeprefix(RETRY_PREFIX) for name in names if is_retry_topic(name)]
    topics = [
        name
        for name in names
        if not is_retry_topic(name) and not is_dead_letter_topic(name) and not is_system_topic(name)
    ]
    brokers = {place.broker for place in places} | {place.cluster for place in places}
    traffic, glances = await asyncio.gather(
        admin.overview.traffic([name for name in topics if name not in brokers]),
        admin.overview.groups(groups),
    )
    lines = [row("%-22s %-22s %10s %10s %8s", "BROKER", "ADDRESS", "IN/S", "OUT/S", "DISK")]
    for place in places:
        each = known.get(place)
        numbers = [None] * 3 if each is None else [each.put_tps, each.get_tps, each.disk_ratio]
        shown = [_UNKNOWN if number is None else f"{number:.2f}" for number in numbers]
        lines.append(row("%-22s %-22s %10s %10s %8s", place.broker, place.address, *shown))
    lines += ["", row("%-40s %10s %14s %6s", "TOPIC", "IN/S", "IN 24 H", "GROUPS")]
    busiest = sorted(traffic, key=lambda t: (-(t.into.tps or 0), -(t.into.day or 0), t.topic))
    for flow in busiest[:rows]:
        count = len(flow.groups)
        lines.append(
            row("%-40s %10s %14s %6s", flow.topic[:40], _rate(flow.into), _day(flow.into), count)
        )
    lines += ["", row("%-40s %8s %10s %14s", "GROUP", "MEMBERS", "OUT/S", "LAG")]
    behind = sorted(glances, key=lambda g: (-(g.progress.lag if g.progress else 0), g.group))
    for glance in behind[:rows]:
        members = _UNKNOWN if glance.members is None else len(glance.members)
        progress = glance.progress
        rate = _UNKNOWN if progress is None else f"{progress.consume_tps:.2f}"
        lag = _UNKNOWN if progress is None else progress.lag
        lines.append(row("%-40s %8s %10s %14s", glance.group[:40], members, rate, lag))
    problems = [*told(status.missing)]
    problems += [f"group {glance.group}: {error}" for glance in glances for error in glance.errors]
    data = {"brokers": status.answers, "topics": busiest[:rows], "groups": behind[:rows]}
    return Shown(lines, data, tuple(problems))


_BASE = "%-22s  %-22s  %-4s  %-22s %-16s  %16s  %30s  %-22s  %-11s  %-12s  %-8s  %-10s"
_BASE_ROW = "%-22s  %-22s  %-4s  %-22s %-16s  %16s  %30s  %-22s  %11s  %-12s  %-8s  %10s"
_MORE = "%-16s  %-32s %14s %14s %14s %14s"


@admin_command(
    "clusterList", CLUSTER, flag("-m", "--moreStats", "more", help="Show totals."), INTERVAL
)
async def cluster_list(admin: Admin, *, cluster: str | None, more: bool) -> Shown:
    """Show clusters and how their brokers are; `?` stands for what is not known."""
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
    told = status.figures.get
    sends = f"{told('sendThreadPoolQueueSize')},{told('sendThreadPoolQueueHeadWaitTimeMills')}ms"
    pulls = f"{told('pullThreadPoolQueueSize')},{told('pullThreadPoolQueueHeadWaitTimeMills')}ms"
    acks = (
        f"{told('ackThreadPoolQueueSize', 'N')},"
        f"{told('ackThreadPoolQueueHeadWaitTimeMills', 'N')}ms"
    )
    earliest = status.earliest_message
    return row(
        _BASE_ROW,
        *where,
        status.version or _UNKNOWN,
        f"{_padded(status.put_tps)}({sends})",
        f"{_padded(status.get_tps)}({pulls}|{acks})",
        _timer(status.figures),
        told("pageCacheLockTimeMills", _UNKNOWN),
        _UNKNOWN if earliest is None else f"{(now - earliest) / 3600:2.2f}",
        _UNKNOWN if status.disk_ratio is None else f"{status.disk_ratio:.4f}",
        _UNKNOWN if status.active is None else java_word(status.active),
    )


def _padded(rate: float | None) -> str:
    return f"{_UNKNOWN:>9}" if rate is None else f"{rate:9.2f}"


def _timer(figures: dict[str, str]) -> str:
    """Write how the timer wheel is; Java shows zeros where a broker has none, or does not tell."""
    names = ("timerReadBehind", "timerOffsetBehind", "timerCongestNum")
    rates = ("timerEnqueueTps", "timerDequeueTps")
    try:
        behind, offset, congested = (int(figures[name]) for name in names)
        into, out = (float(figures[name]) for name in rates)
    except (KeyError, ValueError):
        return _UNKNOWN
    return f"{behind}-{offset}({congested / 10000:.1f}w, {into:.1f}, {out:.1f})"
