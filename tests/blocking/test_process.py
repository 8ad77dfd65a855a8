"""Forks, signals and the end of the interpreter: nothing hangs, nothing is shared, nothing lost."""

import signal
import subprocess

import pytest

import pocketmq as mq
from pocketmq import Cluster
from tests.blocking.conftest import program
from tests.own_time import own_time
from tests.server_process import looked


def finish(running: subprocess.Popen[str], timeout: float = 60.0) -> tuple[int, str, str]:
    try:
        out, err = running.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        running.kill()
        out, err = running.communicate()
        pytest.fail(f"it hangs; {out!r}, {err!r}")
    return running.returncode, out, err


def drained(cluster: Cluster, group: str, topic: str, expected: int) -> list[bytes]:
    """What a group has not got yet, once that is so many messages."""
    bodies: list[bytes] = []
    with mq.PullConsumer(
        cluster.address,
        request_timeout=30.0,
        group=group,
        consume_from=mq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    ) as consumer:
        consumer.subscribe(topic)
        while len(bodies) < expected:
            bodies += [message.body for message in consumer.poll(10)]
    return sorted(bodies)


def test_a_fork_is_refused_the_parents_client_and_can_make_its_own(
    cluster: Cluster, topic: str
) -> None:
    text = """
        import os, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        import pocketmq as mq
        address, topic = sys.argv[1:]
        def tried(call):
            try:
                call()
            except mq.MQError as error:
                return type(error).__name__
        with mq.Producer(address, group="shop", send_timeout=30.0) as old:
            old.send(mq.Message(topic, b"parent"))
            pid = os.fork()
            if pid == 0:
                message = mq.Message(topic, b"wrong")
                told = [tried(call) for call in (
                    lambda: old.send(message), lambda: old.submit(message),
                    lambda: old.send_oneway(message), lambda: old.queues(topic), old.close,
                )]
                with mq.Producer(address, group="shop", send_timeout=30.0) as new:
                    new.send(mq.Message(topic, b"child"))
                    new.submit(mq.Message(topic, b"child")).result(30)
                print(*told, flush=True)
                os._exit(0)
            _, status = os.waitpid(pid, 0)
            old.send(mq.Message(topic, b"parent"))
            print(os.waitstatus_to_exitcode(status))
    """
    code, out, err = finish(program(text, cluster.address, topic))
    assert (code, err) == (0, "")
    assert out == "ClientForked ClientForked ClientForked ClientForked ClientForked\n0\n"
    assert drained(cluster, "after-fork", topic, 4) == [b"child", b"child", b"parent", b"parent"]


def test_a_fork_cannot_join_the_parents_open_batch(cluster: Cluster, topic: str) -> None:
    text = """
        import os, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        import pocketmq as mq
        address, topic = sys.argv[1:]
        with mq.Producer(address, group="shop", linger=0.9, send_timeout=30.0) as old:
            old.submit(mq.Message(topic, b"first")).result(30)  # queues and connection are there
            old.submit(mq.Message(topic, b"opens a batch"))
            pid = os.fork()
            if pid == 0:
                try:
                    old.submit(mq.Message(topic, b"wrong"))
                except mq.MQError as error:
                    print(type(error).__name__, flush=True)
                os._exit(0)
            os.waitpid(pid, 0)
            old.submit(mq.Message(topic, b"joins"))
    """
    code, out, err = finish(program(text, cluster.address, topic))
    assert (code, err, out) == (0, "", "ClientForked\n")
    assert drained(cluster, "after-batch", topic, 3) == [b"first", b"joins", b"opens a batch"]


def test_a_program_that_closes_nothing_ends_and_what_it_promised_is_sent(
    cluster: Cluster, topic: str
) -> None:
    # On a busy machine it runs for a second, and would warn of a topic that does not exist.
    cluster.create_topic(f"other-{topic}")
    text = """
        import sys
        import pocketmq as mq
        address, topic = sys.argv[1:]
        producer = mq.Producer(address, group="shop", send_timeout=30.0).start()
        consumer = mq.PushConsumer(address, group="idle")
        consumer.subscribe("other-" + topic, handler=print)
        consumer.start()
        mq.PullConsumer(address, group="idle-pull").subscribe(topic).start()
        for number in range(200):
            producer.submit(mq.Message(topic, b"%03d" % number))
    """
    code, out, err = finish(program(text, cluster.address, topic))
    assert (code, out, err) == (0, "", "")
    assert drained(cluster, "after-exit", topic, 200) == [b"%03d" % number for number in range(200)]


def test_a_program_that_ends_while_the_broker_is_silent_warns_and_does_not_hang() -> None:
    text = """
        import logging, sys
        logging.basicConfig(format="%(message)s")
        import pocketmq as mq
        from pocketmq.blocking import process_loop
        process_loop.CLOSE_WAIT = 0.5
        address, topic = sys.argv[1:]
        producer = mq.Producer(address, group="shop", send_timeout=30.0).start()
        producer.send(mq.Message(topic, b"x"))
        print("ready", flush=True)
        sys.stdin.readline()
        producer.submit(mq.Message(topic, b"y"), timeout=300)
    """
    with Cluster(faults=True) as cluster:
        topic = cluster.create_topic("orders")
        running = program(text, cluster.address, topic)
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        cluster.partition("broker-0")
        code, out, err = finish(running)
        cluster.heal("broker-0")
    assert (code, out) == (0, "")
    assert "was not closed before exit" in err
    assert "Traceback" not in err


def test_an_exception_in_the_main_thread_ends_the_program_with_its_traceback_alone(
    cluster: Cluster, topic: str
) -> None:
    text = """
        import sys
        import pocketmq as mq
        producer = mq.Producer(sys.argv[1], group="shop", send_timeout=30.0).start()
        producer.submit(mq.Message(sys.argv[2], b"x"))
        raise LookupError("mine")
    """
    code, _, err = finish(program(text, cluster.address, topic))
    assert code == 1
    assert err.count("Traceback") == 1
    assert err.endswith("LookupError: mine\n")
    assert drained(cluster, "after-error", topic, 1) == [b"x"]


RUN = """
    import sys, threading
    import pocketmq as mq
    address, topic = sys.argv[1:]
    consumer = mq.PushConsumer(
        address, group="billing", persist_first_after=3600.0,
        consume_from=mq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    begun = threading.Event()
    def handle(message):
        print("begun", flush=True)
        sys.stdin.readline()
        print("handled", message.body.decode(), flush=True)
    consumer.subscribe(topic, handler=handle)
    consumer.run()
    print("left", consumer.running, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_run_in_order_handlers_finish_and_offsets_are_stored(
    cluster: Cluster, topic: str, number: signal.Signals
) -> None:
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        producer.send(mq.Message(topic, b"one"))
    running = program(RUN, cluster.address, topic)
    assert running.stdout is not None
    assert running.stdin is not None
    assert running.stdout.readline() == "begun\n"
    running.send_signal(number)
    running.stdin.write("go\n")
    running.stdin.flush()
    assert finish(running) == (0, "handled one\nleft False\n", "")
    with mq.PullConsumer(cluster.address, request_timeout=30.0, group="billing") as consumer:
        committed = [consumer.committed(queue) for queue in consumer.queues(topic)]
    assert committed.count(1) == 1


def test_a_signal_while_it_starts_ends_run(cluster: Cluster) -> None:
    text = """
        import sys
        import pocketmq as mq
        consumer = mq.PushConsumer("127.0.0.1:1", group="billing", start_wait=300.0)
        consumer.subscribe("t", handler=print)
        print("starting", flush=True)
        consumer.run()
        print("left", consumer.running, flush=True)
    """
    running = program(text)
    assert running.stdout is not None
    assert running.stdout.readline() == "starting\n"
    with mq.Producer(cluster.address, group="pause", send_timeout=30.0) as producer:
        producer.queues("TBW102")  # a moment: it is likely to be waiting for the name server now
    running.send_signal(signal.SIGTERM)
    code, out, err = finish(running)
    assert (code, out) in {(0, "left False\n"), (-signal.SIGTERM, "")}, err
    assert "Traceback" not in err


def test_a_program_that_ends_with_sends_under_way_still_hears_of_them(
    cluster: Cluster, topic: str
) -> None:
    text = """
        import sys
        import pocketmq as mq
        address, topic = sys.argv[1:]
        producer = mq.Producer(address, group="shop", send_timeout=30.0).start()
        for number in range(50):
            future = producer.submit(mq.Message(topic, b"%d" % number))
            future.add_done_callback(lambda future: print(future.result().status.name))
    """
    code, out, err = finish(program(text, cluster.address, topic))
    assert (code, err) == (0, "")
    assert out == "SEND_OK\n" * 50


def test_handlers_that_exit_stop_a_program_that_waits(cluster: Cluster, topic: str) -> None:
    """In order, however many exit at the same time."""
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        for number in range(40):
            producer.send(mq.Message(topic, b"%d" % number))
    text = """
        import logging, sys
        import pocketmq as mq
        logging.disable()
        address, topic, group = sys.argv[1:]
        consumer = mq.PushConsumer(address, group=group, consume_from="first")
        consumer.subscribe(topic, "*", lambda message: sys.exit(3))
        consumer.run()
        print(consumer.running)
    """
    code, out, err = finish(program(text, cluster.address, topic, f"exit-{topic}"))
    assert (code, out, err) == (0, "False\n", "")


KILLED = """
    import os, sys, threading
    import pocketmq as mq
    address, topic = sys.argv[1:]
    consumer = mq.PushConsumer(
        address, group="killed", consume_from=mq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    )
    consumer.subscribe(topic, handler=lambda message: os.write(1, b"handled\\n"))
    consumer.start()
    threading.Event().wait()
"""


def test_what_a_consumer_handled_a_little_before_it_is_killed_does_not_come_again(
    cluster: Cluster, topic: str
) -> None:
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        for _ in range(10):
            producer.send(mq.Message(topic, b"first"))
        running = program(KILLED, cluster.address, topic)
        assert running.stdout is not None
        try:
            for _ in range(10):
                assert running.stdout.readline() == "handled\n"
            began = own_time()
            with mq.Admin(cluster.address) as admin:
                while not looked(lambda: not admin.groups.progress("killed", topic).lag, 0.01):
                    assert own_time() < began + 8, "nothing was stored"
        finally:
            running.kill()
            finish(running)
        producer.send(mq.Message(topic, b"second"))
    assert drained(cluster, "killed", topic, 1) == [b"second"]
