"""Who waits until name servers have changed topics, and for how long."""

from collections.abc import Iterable

from pocketmq.broker.name_servers.announcements import TopicAnnouncements


class Link:
    """A name server that is sent what a test lets through."""

    def __init__(self) -> None:
        self.sent = 0
        self.announced: list[tuple[list[str], int]] = []

    def announce(self, topics: Iterable[str], number: int) -> None:
        self.announced.append((list(topics), number))


def announcing(*links: Link) -> tuple[TopicAnnouncements, list[str]]:
    announcements = TopicAnnouncements()
    for link in links:
        announcements.attach(link)
    announcements.start()
    return announcements, []


def test_a_broker_without_name_servers_waits_for_none() -> None:
    announcements, called = announcing()
    announcements.announce(["T"])
    announcements.when_announced(lambda: called.append("T"))
    assert called == ["T"]


def test_changes_go_to_every_name_server_with_rising_numbers() -> None:
    links = [Link(), Link()]
    announcements, _ = announcing(*links)
    announcements.announce(["T", "U"])
    announcements.announce(["V"])
    for link in links:
        assert link.announced == [(["T", "U"], 1), (["V"], 2)]


def test_an_answer_waits_for_the_slowest_name_server_and_only_for_earlier_changes() -> None:
    fast, slow = Link(), Link()
    announcements, called = announcing(fast, slow)
    announcements.announce(["T"])
    announcements.when_announced(lambda: called.append("T"))
    announcements.announce(["U"])
    announcements.when_announced(lambda: called.append("U"))
    fast.sent = 2
    announcements.progressed()
    assert called == []
    slow.sent = 1
    announcements.progressed()
    assert called == ["T"]
    slow.sent = 2
    announcements.progressed()
    assert called == ["T", "U"]
    announcements.when_announced(lambda: called.append("nothing new"))
    assert called == ["T", "U", "nothing new"]


def test_no_answer_waits_before_the_first_registration_or_after_the_last() -> None:
    link = Link()
    announcements = TopicAnnouncements()
    announcements.attach(link)
    called: list[str] = []
    announcements.announce(["T"])
    announcements.when_announced(lambda: called.append("early"))
    assert called == ["early"]
    announcements.start()
    announcements.when_announced(lambda: called.append("waiting"))
    assert called == ["early"]
    announcements.stop()
    assert called == ["early", "waiting"]
    announcements.when_announced(lambda: called.append("late"))
    assert called == ["early", "waiting", "late"]
