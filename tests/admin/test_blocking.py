"""The blocking admin: the parts and methods of the asyncio one."""

import inspect

import pytest

import pocketmq as mq
from pocketmq import aio
from pocketmq.blocking.admin import BlockingPart

PARTS = [
    name for name, value in vars(mq.Admin("127.0.0.1:1")).items() if isinstance(value, BlockingPart)
]


def methods(part: object) -> set[str]:
    return {name for name in dir(part) if not name.startswith("_")}


def test_it_has_every_part() -> None:
    of_asyncio = aio.Admin("127.0.0.1:1")
    expected = {name for name in methods(of_asyncio) if name not in {"close", "start", "now_ms"}}
    assert {*PARTS, "options", "client_options"} == expected


@pytest.mark.parametrize("name", PARTS)
def test_a_part_has_every_method_with_the_same_arguments(name: str) -> None:
    blocking = getattr(mq.Admin("127.0.0.1:1"), name)
    own, theirs = type(blocking), type(blocking._part)
    assert methods(own) == methods(theirs)
    for method in methods(own):
        if inspect.isfunction(getattr(theirs, method)):
            assert inspect.signature(getattr(own, method)) == inspect.signature(
                getattr(theirs, method)
            )


def test_threads_ask_without_a_loop_of_their_own() -> None:
    with mq.Cluster() as cluster, mq.Admin(cluster.address) as admin:
        cluster.create_topic("orders", 2)
        assert len(admin.topics.status("orders").queues) == 2
        assert admin.name_servers.addresses == (cluster.address,)
        with pytest.raises(mq.errors.RouteNotFound):
            admin.topics.route("none")
