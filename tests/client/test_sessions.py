"""Sessions are shared by client id, and stop with the last who uses them."""

import asyncio
import os
import warnings

import pytest

from pocketmq.client.options import ClientOptions, Credentials
from pocketmq.client.session import Session
from pocketmq.client.sessions import lease_session
from pocketmq.errors import InvalidInput, NameServersUnreachable
from pocketmq.net import Server
from tests.client.servers import Directory, serving
from tests.loops import until
from tests.ports import free_port


def is_running(session: Session) -> bool:
    """Ask anew each time; a type checker believes that properties stay as they were."""
    return session.running


async def test_members_with_one_client_id_share_a_session() -> None:
    directory = Directory()
    async with serving(directory) as (_, names):
        options = ClientOptions(name_servers=names, client_ip="10.0.0.1", instance_name="me")
        one, other = await asyncio.gather(lease_session(options), lease_session(options))
        session = one.session
        assert session is other.session
        assert session.client_id == "10.0.0.1@me"
        assert directory.topics_asked().count("TBW102") == 1  # started once
        await one.release()
        await one.release()
        assert is_running(session)
        await other.release()
        assert not is_running(session)
        again = await lease_session(options)
        assert again.session is not session
        await again.release()


async def test_unnamed_clients_have_sessions_of_their_own() -> None:
    async with serving(Directory()) as (_, names):
        options = ClientOptions(name_servers=names, client_ip="10.0.0.1")
        leases = [
            await lease_session(options),
            await lease_session(options),
            await lease_session(options, shared_name=True),
            await lease_session(options, shared_name=True, stream=True),
        ]
        ids = [lease.session.client_id for lease in leases]
        assert len(set(ids)) == 4
        assert ids[2:] == ["10.0.0.1@DEFAULT", "10.0.0.1@DEFAULT@STREAM"]
        for lease in leases:
            await lease.release()


async def test_one_client_id_cannot_have_two_sets_of_options() -> None:
    async with serving(Directory()) as (_, names):
        options = ClientOptions(name_servers=names, instance_name="me")
        lease = await lease_session(options)
        secret = Credentials(access_key="a", secret_key="b")
        other = ClientOptions(name_servers="h:1", instance_name="me", credentials=secret)
        with pytest.raises(InvalidInput, match=r"other options \(name_servers, credentials\)"):
            await lease_session(other)
        await lease.release()


async def test_a_failed_start_fails_for_all_who_waited_and_can_be_tried_again() -> None:
    port = free_port()
    options = ClientOptions(name_servers=f"127.0.0.1:{port}", instance_name="me")
    outcomes = await asyncio.gather(
        lease_session(options), lease_session(options), return_exceptions=True
    )
    assert [type(each) for each in outcomes] == [NameServersUnreachable] * 2
    assert outcomes[0] is not outcomes[1]
    server = Server(Directory())
    await server.listen("127.0.0.1", port)
    lease = await lease_session(options)
    await lease.release()
    await server.close(grace=0.2)


async def test_one_who_gives_up_waiting_leaves_the_start_to_the_others() -> None:
    directory = Directory()
    directory.script[105] = lambda _: None
    async with serving(directory) as (_, names):
        options = ClientOptions(name_servers=names, instance_name="me", start_wait=30.0)
        impatient = asyncio.create_task(lease_session(options))
        patient = asyncio.create_task(lease_session(options))
        await asyncio.sleep(0)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        assert not patient.done()
        patient.cancel()  # the last one: nothing may be left, says the loop's own check
        with pytest.raises(asyncio.CancelledError):
            await patient


async def test_a_release_that_is_cancelled_still_stops_the_session() -> None:
    async with serving(Directory()) as (_, names):
        lease = await lease_session(ClientOptions(name_servers=names))
        releasing = asyncio.create_task(lease.release())
        await asyncio.sleep(0)
        releasing.cancel()
        await asyncio.wait({releasing})
        await until(lambda: not lease.session.running, "the session to stop")


def test_a_forked_child_can_have_a_client_of_its_own() -> None:
    """Sessions of the parent are not the child's: the same id gets a new one there."""

    async def parent() -> int:
        async with serving(Directory()) as (_, names):
            options = ClientOptions(
                name_servers=names, instance_name="me", request_timeout=30.0
            )  # either process may be without a processor for a while
            lease = await lease_session(options)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                os._exit(_child(options))
            _, status = await asyncio.to_thread(os.waitpid, child, 0)
            await lease.release()
            return os.waitstatus_to_exitcode(status)

    assert asyncio.run(parent()) == 0


def _child(options: ClientOptions) -> int:
    """Lease and give back in a loop of the child's own; the parent serves meanwhile."""

    async def use() -> None:
        lease = await lease_session(options)
        await lease.session.routes.name_servers.ask(
            105, {"topic": "t"}, timeout=10.0, accept=frozenset({17})
        )
        await lease.release()

    try:
        asyncio.new_event_loop().run_until_complete(use())
    except BaseException:  # noqa: BLE001 - the exit code says it
        return 1
    return 0
