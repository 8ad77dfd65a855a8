"""A producer's life: starting, closing, forks, groups, settings."""

import asyncio
import os
import warnings
from random import Random

import pytest

from pocketmq import errors
from pocketmq.client.options import ClientOptions, ClientSettings, Credentials
from pocketmq.client.producer.producer import Producer
from pocketmq.client.producer_options import ProducerOptions, ProducerSettings
from pocketmq.embedded.aio import Cluster
from pocketmq.model import Message
from pocketmq.protocol import RequestCode
from tests.client.producer.stage import silent, stage
from tests.loops import until

MESSAGE = Message("orders", b"42 EUR")
REGISTERED = int(RequestCode.HEART_BEAT)
UNREGISTERED = int(RequestCode.UNREGISTER_CLIENT)


def test_every_option_is_a_keyword() -> None:
    options = set(ProducerOptions.__struct_fields__) - {"group"}
    common = set(ClientSettings.__annotations__)
    assert set(ProducerSettings.__annotations__) == options | common


def test_keywords_are_sorted_into_options() -> None:
    producer = Producer("a:1", group="shop", retries=5, namespace="prod", send_timeout=1.5)
    assert producer.options == ProducerOptions(group="shop", retries=5, send_timeout=1.5)
    assert producer.client_options == ClientOptions(name_servers="a:1", namespace="prod")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"retrys": 3}, "unknown setting 'retrys'; did you mean 'retries'?"),
        ({"send_timeout": 3000000}, "send_timeout must be in seconds"),
        ({"window": 0}, "window must be from 1"),
        ({"window_bytes": 0}, "window_bytes must be from 1"),
        ({"compression_level": 10}, "compression_level must be from 0 to 9"),
        ({"trace_topic": "a b"}, "invalid topic name 'a b'"),
    ],
)
def test_settings_without_sense_are_named(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(errors.InvalidInput, match=reason.replace("?", r"\?")):
        Producer("a:1", group="shop", **settings)  # type: ignore[arg-type]


def test_a_group_is_needed_and_checked() -> None:
    with pytest.raises(errors.InvalidInput, match="it is reserved"):
        Producer("a:1", group="DEFAULT_PRODUCER")


async def test_a_producer_that_is_not_running_says_so() -> None:
    producer = Producer("127.0.0.1:1", group="shop")
    with pytest.raises(errors.ClientClosed, match="producer of group shop"):
        await producer.send(MESSAGE)
    with pytest.raises(errors.ClientClosed):
        producer.submit(MESSAGE)
    await producer.close()
    with pytest.raises(
        errors.NameServersUnreachable, match=r"no name server responds at 127.0.0.1:1"
    ):
        await producer.start()
    with pytest.raises(errors.NameServersUnreachable):  # it may come up later
        await producer.start()


async def test_without_waiting_for_a_name_server_each_send_says_it_is_missing() -> None:
    async with Producer("127.0.0.1:1", group="shop", start_wait=None) as producer:
        with pytest.raises(errors.NameServersUnreachable):
            await producer.send(MESSAGE)


async def test_starting_and_closing_twice_is_harmless() -> None:
    async with stage() as on:
        await asyncio.gather(on.producer.start(), on.producer.start())
        await on.producer.send(MESSAGE)
        await asyncio.gather(on.producer.close(), on.producer.close())
        await on.producer.close()
        with pytest.raises(errors.ClientClosed):
            await on.producer.start()


async def test_starting_at_once_from_two_tasks_starts_once() -> None:
    async with stage() as on:
        address = on.producer.client_options.name_servers
        producer = Producer(address, group="other")
        await asyncio.gather(producer.start(), producer.start())
        assert producer.session.running
        await producer.close()


async def test_brokers_hear_of_the_group_and_of_its_end() -> None:
    async with stage(heartbeat_first_after=60.0) as on:
        brokers = on.brokers.values()
        await until(lambda: all(b.asked_for(REGISTERED) for b in brokers), "heartbeats")
        await on.producer.close()
        for each in brokers:
            left = each.asked_for(UNREGISTERED)
            assert [request.ext["producerGroup"] for request in left] == ["shop"]


async def test_one_client_has_one_producer_of_a_group() -> None:
    async with stage(instance_name="one") as on:
        address = on.producer.client_options.name_servers
        with pytest.raises(errors.GroupTaken):
            await Producer(address, group="shop", instance_name="one").start()
        async with Producer(address, group="other", instance_name="one") as other:
            assert other.session is on.producer.session
        assert (await on.producer.send(MESSAGE)).ok  # the session goes on


async def test_closing_takes_no_longer_than_the_sends_under_way() -> None:
    async with stage({"broker-a": silent}, send_timeout=0.2) as on:
        future = on.producer.submit(MESSAGE)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await on.producer.close()
        assert loop.time() - began < 3.0
        assert future.exception() is not None


async def test_close_can_be_cancelled_and_called_again() -> None:
    async with stage({"broker-a": silent}, send_timeout=0.3) as on:
        future = on.producer.submit(MESSAGE)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await on.producer.close()
        await on.producer.close()
        assert future.exception() is not None


async def test_a_fork_cannot_use_its_parents_producer() -> None:
    async with stage() as on:
        await on.producer.send(MESSAGE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            code = 1
            try:
                on.producer.submit(MESSAGE)
            except errors.ClientForked:
                try:
                    on.producer.send(MESSAGE).send(None)
                except errors.ClientForked:
                    code = 0
            finally:
                os._exit(code)
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert (await on.producer.send(MESSAGE)).ok


async def test_every_request_is_signed_if_there_are_credentials() -> None:
    keys = Credentials(access_key="me", secret_key="secret")
    async with stage(credentials=keys) as on:
        await on.producer.send(MESSAGE)
        (sent,) = [request for each in on.brokers.values() for request in each.sends]
        assert sent.ext["AccessKey"] == "me"
        assert sent.ext["Signature"]


async def test_ids_of_producers_with_the_same_chance_differ() -> None:
    async with Cluster() as cluster:
        ids = []
        for group in ("one", "two"):
            async with Producer(cluster.address, group=group, instance_name="x") as producer:
                producer.session.random.setstate(Random(1).getstate())
                ids.append((await producer.send(MESSAGE)).message_id)
        assert ids[0][:24] != ids[1][:24]
