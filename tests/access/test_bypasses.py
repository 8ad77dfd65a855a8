"""Ways around access control that take more than one request: each ends before the secret."""

import json
from typing import Any

from pocketmq.protocol import Command
from pocketmq.protocol.records import Record, encode_record
from tests.access import attempts
from tests.broker.running import Client, client, position, records, running, send_fields
from tests.loops import leap, leaping

USERS: dict[str, Any] = {
    "authentication_enabled": True,
    "authorization_enabled": True,
    "init_authentication_user": '{"username":"root","password":"root-secret"}',
}
SECRET = b"TOP SECRET BODY"
BODY_AT = 88
"""Where a record's body begins, with addresses of IPv4."""


async def done(peer: Client, user: str, request: attempts.Request) -> Command:
    code, fields, body = request
    return await peer.ask(code, attempts.sign(fields, body, user, f"{user}-secret"), body)


async def prepared(peer: Client, *more: attempts.Request) -> None:
    """Make topics and users: `payer` may use `secret`, `mallory` `public` and the group `mine`."""
    for request in (
        attempts.create_topic("secret"),
        attempts.create_topic("public"),
        *(
            attempts.create_user(name, password=f"{name}-secret")
            for name in ("nobody", "payer", "mallory")
        ),
        attempts.acl("payer", "Topic:secret", "Pub", "Sub"),
        attempts.acl("mallory", "Topic:public", "Pub", "Sub", "Get"),
        attempts.acl("mallory", "Group:mine", "Sub"),
        *more,
    ):
        answer = await done(peer, "root", request)
        assert answer.code == 0, answer.remark


def beat(group: str, client_id: str) -> attempts.Request:
    data = {"clientID": client_id, "producerDataSet": [{"groupName": group}]}
    return 34, {}, json.dumps(data | {"consumerDataSet": []}).encode()


def secret_message() -> attempts.Request:
    return 310, send_fields("secret"), SECRET


async def test_nobody_walks_the_log() -> None:
    async with running(**USERS) as (_, address), client(address) as peer:
        await prepared(peer)
        at = position(await done(peer, "payer", secret_message()))
        for user in ("nobody", "mallory"):
            for request in (
                attempts.asked(33, offset=str(at)),
                attempts.asked(33, offset=str(at), topic="public"),
                attempts.asked(33, offset=str(at), topic=""),
            ):
                answer = await done(peer, user, request)
                assert answer.code == 16
                assert SECRET not in answer.body
        assert SECRET in (await done(peer, "root", attempts.asked(33, offset=str(at)))).body


async def test_a_body_that_looks_like_a_record_shows_nothing_behind_it() -> None:
    """A record within a body names a topic one may read, and reaches into the next record."""
    async with running(**USERS) as (broker, address), client(address) as peer:
        await prepared(
            peer,
            attempts.create_user("auditor", password="auditor-secret"),
            attempts.acl("auditor", "Topic:*", "Get", "Sub"),
            attempts.acl("auditor", "Topic:secret", "Get", "Sub", decision="Deny"),
            attempts.acl("auditor", "Group:mine", "Sub"),
        )
        fake_at = broker.state.store.log.tail + BODY_AT
        fake = encode_record(
            Record(
                topic=b"public",
                body=b"",
                property_bytes=b"x" * 350,
                commit_log_offset=fake_at,
                store_timestamp_ms=1,
            )
        )[:-350]
        sent = await done(peer, "mallory", (310, send_fields("public"), fake))
        assert position(sent) == fake_at - BODY_AT
        long = (310, send_fields("secret"), SECRET + b"." * 600)
        assert (await done(peer, "payer", long)).code == 0
        found = broker.state.store.record_at(fake_at)
        assert found is not None
        assert SECRET in found
        back = attempts.asked(
            36, group="mine", offset=str(fake_at), delayLevel="1", originTopic="public"
        )
        for user in ("mallory", "auditor"):  # a rule for all topics is none for what is no record
            view = await done(peer, user, attempts.asked(33, offset=str(fake_at), topic="public"))
            assert (view.code, view.body) == (16, b"")
            assert (await done(peer, user, back)).code == 16
        own = await done(
            peer, "mallory", attempts.asked(33, offset=str(position(sent)), topic="public")
        )
        assert own.code == 0


async def test_a_rule_for_all_topics_does_not_show_what_a_denied_topic_has_waiting() -> None:
    """Delayed, timed and half messages wait in topics that hold those of all others."""
    async with running(**USERS) as (_, address), client(address) as peer:
        await prepared(
            peer,
            attempts.create_user("auditor", password="auditor-secret"),
            attempts.acl("auditor", "Topic:*", "Get", "Sub"),
            attempts.acl("auditor", "Topic:secret", "Get", "Sub", decision="Deny"),
            attempts.acl("auditor", "Group:mine", "Sub"),
        )
        timed = (310, send_fields("secret", properties="TIMER_DELAY_SEC\x013600\x02"), SECRET)
        assert (await done(peer, "payer", timed)).code == 0
        span = {"maxNum": "1", "beginTimestamp": "0", "endTimestamp": "1"}
        for topic in ("SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "rmq_sys_wheel_timer"):
            for request in (
                attempts.pull(topic, "mine"),
                attempts.asked(12, topic=topic, key="k", **span),
            ):
                answer = await done(peer, "auditor", request)
                assert (answer.code, answer.body) == (16, b"")
        assert (
            SECRET in (await done(peer, "root", attempts.pull("rmq_sys_wheel_timer", "mine"))).body
        )


async def test_nothing_is_copied_to_ones_own_retry_topic_but_what_one_may_read() -> None:
    async with running(**USERS) as (_, address), client(address) as peer:
        await prepared(peer)
        at = position(await done(peer, "payer", secret_message()))
        assert at == 0
        assert (await done(peer, "mallory", attempts.send_back("mine"))).code == 16
        own = position(await done(peer, "mallory", attempts.send("public")))
        back = attempts.asked(
            36, group="mine", offset=str(own), delayLevel="-1", originTopic="public"
        )
        assert (await done(peer, "mallory", back)).code == 0
        again = await done(peer, "mallory", attempts.pull("%RETRY%mine", "mine"))
        assert again.code != 16
        assert records(again) == []  # it is in the dead letters


async def test_a_retry_of_ones_own_group_can_be_sent_back_again() -> None:
    """The record is in the group's retry topic, whatever topic it came from."""
    async with running(**USERS) as (_, address), client(address) as peer:
        await prepared(peer)
        sent = await done(peer, "mallory", attempts.send("%RETRY%mine", a="CLIENT_INNER_PRODUCER"))
        assert sent.code == 0, sent.remark
        fields = {"group": "mine", "delayLevel": "1", "originTopic": "public"}
        back = attempts.asked(36, offset=str(position(sent)), **fields)
        assert (await done(peer, "mallory", back)).code == 0


@leaping
async def test_half_messages_are_shown_to_who_may_send_them_only() -> None:
    text = "UNIQ_KEY\1K\2TRAN_MSG\1true\2PGROUP\1payments\2"
    async with (
        running(transaction_check_interval=1000, **USERS) as (broker, address),
        client(address) as payer,
        client(address) as intruder,
    ):
        await prepared(payer)
        born = str(broker.state.clock.now_ms())
        fields = send_fields("secret", text, f="4", g=born)
        half = await done(payer, "payer", (310, fields, SECRET))
        assert half.code == 0, half.remark
        for user in ("nobody", "mallory"):
            assert (await done(intruder, user, beat("payments", "x"))).code == 0
        await leap(7.1)
        fields = {"producerGroup": "payments", "tranStateTableOffset": "0", "msgId": "K"}
        fields |= {"commitLogOffset": str(position(half)), "fromTransactionCheck": "true"}
        for user in ("nobody", "mallory"):
            for named in ({}, {"topic": "public"}, {"topic": ""}):
                ending = attempts.asked(37, commitOrRollback="12", **fields, **named)
                assert (await done(intruder, user, ending)).code == 16
        assert (await done(payer, "payer", beat("payments", "y"))).code == 0
        await leap(1.1)
        question = await payer.question()
        assert (question.code, SECRET in question.body) == (39, True)
        assert intruder.asked == []
        ended = await done(payer, "payer", attempts.asked(37, commitOrRollback="8", **fields))
        assert ended.code == 0, ended.remark
        queue = broker.state.store.queue("secret", 0)
        assert queue is not None
        assert queue.next_offset == 1


async def test_replies_to_a_client_do_not_go_to_another_user_of_its_name() -> None:
    text = "UNIQ_KEY\1K\2MSG_TYPE\1reply\2CORRELATION_ID\1C\2REPLY_TO_CLIENT\1asker\2"
    async with (
        running(**USERS) as (_, address),
        client(address) as asker,
        client(address) as intruder,
        client(address) as replier,
        client(address) as asker_again,
    ):
        await prepared(asker)
        reply = (325, send_fields("DefaultCluster_REPLY_TOPIC", text), SECRET)
        code, fields, body = reply
        signed = attempts.sign(fields, body, "payer", "payer-secret")
        assert (await done(asker, "payer", beat("shop", "asker"))).code == 0
        assert (await done(intruder, "mallory", beat("shop", "asker"))).code == 0
        number = replier.post(code, signed, body)
        push = await asker.question()
        assert push.body == SECRET
        asker.reply(push)
        assert (await replier.answer(number)).code == 0
        assert intruder.asked == []
        assert (await done(asker_again, "payer", beat("shop", "asker"))).code == 0
        replier.post(code, signed, body)
        assert (await asker_again.question()).body == SECRET  # the same user came by another way


async def test_a_consumer_does_not_see_how_an_operator_signs() -> None:
    """It could send what it sees again, as another request whose fields fit."""
    async with (
        running(**USERS) as (_, address),
        client(address) as operator,
        client(address) as member,
    ):
        await prepared(operator)
        sent = await done(operator, "mallory", attempts.send("public"))
        assert (await done(member, "mallory", attempts.heartbeat("mine", "public"))).code == 0
        assert (await member.question()).code == 40  # it joined the group
        who = {"consumerGroup": "mine", "clientId": "10.0.0.1@1"}
        message_id = sent.ext["msgId"]
        for code, fields in ((307, who), (309, who | {"msgId": message_id})):
            signed = attempts.sign(fields, b"", "root", "root-secret")
            number = operator.post(code, signed)
            question = await member.question()
            assert question.code == code
            assert question.ext.keys() & {"AccessKey", "Signature", "!"} == set()
            assert question.ext["consumerGroup"] == "mine"
            member.reply(question)
            assert (await operator.answer(number)).code == 0
