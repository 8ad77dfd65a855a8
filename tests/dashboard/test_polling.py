"""One question for all who watch, and none when nobody does."""

import asyncio

from pocketmq.dashboard.polling import FORGOTTEN_AFTER, INTERVAL, WANTED_FOR, Poller, Pollers
from pocketmq.dashboard.watch import EVERY, REMEMBERED, RESTS, Job, Sampler, WatchedGroups
from pocketmq.errors import NameServersUnreachable
from tests.loops import leap as leap_once
from tests.loops import leaping


async def leap(seconds: float) -> None:
    """Let time have passed, and all that follows from it have happened."""
    for _ in range(5):
        await leap_once(0.0)
    await leap_once(seconds)
    for _ in range(5):
        await leap_once(0.0)


class Cluster:
    """Something to look at, which counts how often it is."""

    def __init__(self) -> None:
        self.looks = 0
        self.error: Exception | None = None

    async def look(self) -> int:
        self.looks += 1
        if self.error is not None:
            raise self.error
        return self.looks


@leaping
async def test_many_viewers_cost_one_look() -> None:
    cluster = Cluster()
    watch = Poller(cluster.look)
    answers = await asyncio.gather(*(watch.fresh(5.0) for _ in range(100)))
    assert answers == [1] * 100
    assert cluster.looks == 1
    watch.want()
    await leap(INTERVAL)
    assert (watch.value, cluster.looks) == (2, 2)
    await watch.close()


@leaping
async def test_nobody_looks_when_nobody_watches() -> None:
    cluster = Cluster()
    watch = Poller(cluster.look)
    await watch.fresh(5.0)
    await leap(WANTED_FOR)
    looks = cluster.looks
    for _ in range(5):
        await leap(10 * INTERVAL)
    assert cluster.looks == looks
    assert await watch.fresh(5.0) == looks + 1, "who comes back gets a new answer, not the old one"
    await watch.close()


@leaping
async def test_after_an_error_the_old_answer_stays_and_the_problem_is_told() -> None:
    cluster = Cluster()
    watch = Poller(cluster.look)
    await watch.fresh(5.0)
    seen = watch.at
    cluster.error = NameServersUnreachable(("127.0.0.1:9876",), "refused")
    watch.want()
    await leap(INTERVAL)
    assert (watch.value, watch.at) == (1, seen)
    assert "127.0.0.1:9876" in (watch.problem or "")
    cluster.error = None
    watch.want()
    await leap(INTERVAL)
    assert (watch.value, watch.problem) == (3, None)
    await watch.close()


@leaping
async def test_a_bug_in_a_look_does_not_end_the_watch() -> None:
    cluster = Cluster()
    cluster.error = KeyError("bug")
    watch = Poller(cluster.look)
    assert await watch.fresh(5.0) is None
    assert watch.problem == "internal error of the dashboard: KeyError"
    cluster.error = None
    watch.want()
    await leap(INTERVAL)
    assert watch.value == 2
    await watch.close()


@leaping
async def test_after_an_action_one_looks_at_once() -> None:
    cluster = Cluster()
    watches = Pollers()
    watch = watches.of(("x",), cluster.look)
    await watch.fresh(5.0)
    watches.hurry()
    await leap(0.0)
    assert cluster.looks == 2
    await watches.close()


@leaping
async def test_what_nobody_wants_is_forgotten() -> None:
    watches = Pollers()
    first = watches.of(("group", "a"), Cluster().look)
    assert watches.of(("group", "a"), Cluster().look) is first
    await leap(FORGOTTEN_AFTER + 1)
    watches.of(("group", "b"), Cluster().look)
    assert watches.of(("group", "a"), Cluster().look) is not first
    await watches.close()


@leaping
async def test_a_sample_is_one_look_and_none_while_a_page_looks_anyway() -> None:
    cluster = Cluster()
    watch = Poller(cluster.look)
    await watch.sample()
    await leap(10 * INTERVAL)
    assert (watch.value, cluster.looks) == (1, 1)
    await watch.fresh(5.0)
    looks = cluster.looks
    await watch.sample()
    assert cluster.looks == looks
    await watch.close()


@leaping
async def test_what_is_sampled_is_not_forgotten() -> None:
    watches = Pollers()
    first = watches.of(("group", "a"), Cluster().look)
    for _ in range(3):
        await leap(FORGOTTEN_AFTER - 1)
        await first.sample()
    watches.of(("group", "b"), Cluster().look)
    assert watches.of(("group", "a"), Cluster().look) is first
    await watches.close()


@leaping
async def test_a_page_that_opens_during_a_sample_does_not_ask_at_the_same_time() -> None:
    asked, most, answer = 0, 0, asyncio.Event()

    async def ask() -> int:
        nonlocal asked, most
        asked += 1
        most = max(most, asked)
        await answer.wait()
        asked -= 1
        return 1

    watch = Poller(ask)
    sampling = asyncio.create_task(watch.sample())
    await leap(0.0)
    opening = asyncio.create_task(watch.fresh(5.0))
    await leap(0.0)
    answer.set()
    assert await opening == 1
    await sampling
    assert most == 1
    await watch.close()


@leaping
async def test_samples_come_round_by_round_and_a_failure_ends_nothing() -> None:
    cluster, rounds = Cluster(), 0

    async def fail() -> None:
        raise KeyError("bug")

    def jobs() -> list[Job]:
        nonlocal rounds
        rounds += 1
        return [fail, cluster.look]

    sampler = Sampler(jobs)
    await sampler.close()
    sampler.start()
    await leap(0.0)
    assert (rounds, cluster.looks) == (1, 1)
    await leap(EVERY)
    assert (rounds, cluster.looks) == (2, 2)
    await sampler.close()


@leaping
async def test_after_a_long_round_the_sampler_rests_longer() -> None:
    rounds = 0

    async def slow() -> None:
        nonlocal rounds
        rounds += 1
        await asyncio.sleep(4.0)

    sampler = Sampler(lambda: [slow])
    sampler.start()
    await leap(4.0)
    await leap(RESTS * 4.0 - 1.0)
    assert rounds == 1
    await leap(1.5)
    assert rounds == 2
    await sampler.close()


def test_groups_that_have_lost_their_members_are_still_sampled_for_a_while() -> None:
    groups = WatchedGroups(most=2)
    assert groups.now(["a", "b"], 0.0) == ["a", "b"]
    assert groups.now(["b"], 10.0) == ["a", "b"]
    assert groups.now(["b", "c"], 20.0) == ["b", "c"], "the one without members gives way"
    assert groups.now([], 20.0 + REMEMBERED) == []
