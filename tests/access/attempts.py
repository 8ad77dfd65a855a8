"""Attempts to get past access control, each with the answer it gets: data for ours and Java's.

`java` is Java's answer where it differs, because Java looks at the user only and lets it pass.
"""

import base64
import hmac
import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from pocketmq.protocol.signature import SigningUser
from pocketmq.protocol.signature import sign as sign_bound
from tests.broker.running import Client, pull_fields, send_fields

Fields: TypeAlias = dict[str, str]
Answer: TypeAlias = tuple[int, str | None]
Request: TypeAlias = tuple[int, Fields, bytes]
OK: Answer = (0, None)
SAME: Answer = (-1, None)

UPDATE_CONFIG: Request = (25, {}, b"msgTraceTopicName=T\n")


class Attempt(NamedTuple):
    """A request somebody signs, somebody may have altered, and the code and words it gets."""

    name: str
    user: str
    request: Request
    answer: Answer
    altered: Callable[[Fields, bytes], tuple[Fields, bytes]] | None = None
    secret: str = ""
    java: Answer = SAME
    bound_to: int = 0
    """The code that a client of ours signs; 0: signed as by Java's, which bind none."""

    def signed(self, secrets: dict[str, str]) -> Request:
        """Return the request as it goes out."""
        code, fields, body = self.request
        if self.user:
            secret = self.secret or secrets.get(self.user, "not a secret")
            if self.bound_to:
                fields = dict(fields)
                sign_bound(SigningUser(self.user, secret.encode()), self.bound_to, fields, body)
            else:
                fields = sign(fields, body, self.user, secret)
        if self.altered is not None:
            fields, body = self.altered(dict(fields), body)
        return code, fields, body


def sign(fields: Fields, body: bytes, user: str, secret: str) -> Fields:
    """Sign as Java's AclClientRPCHook does; all keys here are ASCII."""
    signed = fields | {"AccessKey": user}
    content = "".join(signed[key] for key in sorted(signed)).encode() + body
    digest = hmac.digest(secret.encode(), content, "sha1")
    return signed | {"Signature": base64.b64encode(digest).decode()}


async def carried_out(
    connected: Client, attempts: list[Attempt], secrets: dict[str, str]
) -> dict[str, Answer]:
    """Try one after another; what is said with a success does not count."""
    answers = {}
    for attempt in attempts:
        code, fields, body = attempt.signed(secrets)
        answer = await connected.ask(code, fields, body)
        answers[attempt.name] = (answer.code, answer.remark if answer.code else None)
    return answers


# Requests


def send(topic: str, **fields: str) -> Request:
    return 310, send_fields(topic, **fields), b"hello"


def batch(topic: str) -> Request:
    message = b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2hi\0\0"
    body = (len(message) + 4).to_bytes(4, "big") + message
    return 320, send_fields(topic, m="true"), body


def pull(topic: str, group: str, code: int = 11) -> Request:
    fields = pull_fields(topic, consumerGroup=group, sysFlag="4", suspendTimeoutMillis="0")
    return code, fields, b""


def heartbeat(group: str, *topics: str) -> Request:
    subscriptions = [
        {"topic": topic, "subString": "*", "subVersion": 0, "expressionType": "TAG"}
        for topic in topics
    ]
    data = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "subscriptionDataSet": subscriptions,
        "unitMode": False,
    }
    beat = {"clientID": "10.0.0.1@1", "producerDataSet": [], "consumerDataSet": [data]}
    return 34, {}, json.dumps(beat).encode()


def lock(group: str, topic: str) -> Request:
    queue = {"topic": topic, "brokerName": "broker-a", "queueId": 0}
    body = {"consumerGroup": group, "clientId": "c", "mqSet": [queue]}
    return 41, {}, json.dumps(body).encode()


def offset(code: int, topic: str, group: str) -> Request:
    fields = {"consumerGroup": group, "topic": topic, "queueId": "0"}
    return code, fields | ({"commitOffset": "0"} if code == 15 else {}), b""


def asked(code: int, body: Any = None, **fields: str) -> Request:
    return code, fields, b"" if body is None else json.dumps(body).encode()


FOREIGN = 0
"""Where the log has a message of the topic `other`: it is the first one that is sent."""
MESSAGE_ID = "7F00000100002A9F" + f"{FOREIGN:016X}"
NOWHERE = str(1 << 40)


def view(offset: object = FOREIGN, **fields: str) -> Request:
    return asked(33, offset=str(offset), **fields)


def send_back(group: str) -> Request:
    return asked(36, group=group, offset=str(FOREIGN), delayLevel="0", originTopic="orders")


def end_transaction(**fields: str) -> Request:
    standard = {"producerGroup": "PG", "tranStateTableOffset": "0", "msgId": "K"}
    standard |= {"commitLogOffset": str(FOREIGN), "commitOrRollback": "12"}
    return asked(37, **standard | fields)


def consume_directly(**fields: str) -> Request:
    return asked(309, clientId="nobody", msgId=MESSAGE_ID, **fields)


def assignment(topic: str, group: str) -> Request:
    body = {"topic": topic, "consumerGroup": group, "clientId": "c", "messageModel": "CLUSTERING"}
    return asked(400, body | {"strategyName": "AVG"})


def client_check(topic: str, group: str) -> Request:
    wanted = {"topic": topic, "subString": "a = 1", "subVersion": 0, "expressionType": "SQL92"}
    return asked(46, {"clientId": "c", "group": group, "subscriptionData": wanted})


def reply_to(topic: str) -> Request:
    return 325, send_fields(topic), b"forged"


def take_back(topic: str, taken: str) -> Request:
    properties = f"UNIQ_KEY\1K\2TIMER_DELAY_SEC\13600\2TIMER_DEL_UNIQKEY\1{taken}+K\2"
    return send(topic, properties=properties)


LISTINGS = {
    "all topics": 21,
    "all settings": 26,
    "all offsets": 43,
    "all delays": 45,
    "all groups": 201,
}


def create_topic(topic: str) -> Request:
    fields = {"topic": topic, "defaultTopic": "TBW102", "readQueueNums": "4"}
    fields |= {"writeQueueNums": "4", "perm": "6", "topicFilterType": "SINGLE_TAG"}
    return 17, fields | {"topicSysFlag": "0", "order": "false"}, b""


def create_user(name: str, **fields: str) -> Request:
    return asked(3001, fields, username=name)


def rules(
    name: str, resource: str, *actions: str, decision: str = "Allow", ip: str = ""
) -> dict[str, Any]:
    entry: dict[str, Any] = {"resource": resource, "actions": actions, "decision": decision}
    if ip:
        entry["sourceIps"] = [ip]
    kind = "Default" if name.startswith("default ") else "Custom"
    subject = f"User:{name.removeprefix('default ')}"
    return {"subject": subject, "policies": [{"policyType": kind, "entries": [entry]}]}


def acl(*args: str, **options: str) -> Request:
    body = rules(*args, **options)
    return asked(3006, body, subject=body["subject"])


# Ways to alter a signed request


def change(key: str, value: str) -> Callable[[Fields, bytes], tuple[Fields, bytes]]:
    return lambda fields, body: (fields | {key: value}, body)


def drop(key: str) -> Callable[[Fields, bytes], tuple[Fields, bytes]]:
    return lambda fields, body: ({k: v for k, v in fields.items() if k != key}, body)


def other_body(fields: Fields, body: bytes) -> tuple[Fields, bytes]:
    return fields, body[:-1] + b"!"


def cut_signature(fields: Fields, body: bytes) -> tuple[Fields, bytes]:
    return fields | {"Signature": fields["Signature"][:-4]}, body


def folded_signature(fields: Fields, body: bytes) -> tuple[Fields, bytes]:
    return fields | {"Signature": fields["Signature"].swapcase()}, body


def shifted(fields: Fields, body: bytes) -> tuple[Fields, bytes]:
    """Move a character from one value to the one before it: the same text is signed."""
    return fields | {"a": fields["a"] + fields["b"][0], "b": fields["b"][1:]}, body


# 5.x: users and rules

USERS = {
    "root": "root-secret",
    "alice": "alice-secret",
    "bob": "bob-secret",
    "carol": "carol-secret",
    "dave": "dave-secret",
    "erin": "erin-secret",
    "gina": "gina-secret",
    "hank": "hank-secret",
}
USER_SETUP = [
    create_user("alice", password=USERS["alice"]),
    create_user("bob", password=USERS["bob"], userStatus="disable"),
    create_user("carol", password=USERS["carol"], userType="Normal"),
    create_user("dave", password=USERS["dave"]),
    create_user("erin", password=USERS["erin"]),
    acl("alice", "Topic:orders*", "Pub", "Sub"),
    acl("alice", "Topic:orders-secret", "All", decision="Deny"),
    acl("alice", "Group:billing", "Sub"),
    acl("default alice", "Topic:public*", "Pub"),
    acl("carol", "Topic:orders", "Pub", ip="10.0.0.0/8"),
    acl("erin", "Cluster:DefaultCluster", "Update", "Get"),
    create_topic("orders"),
    create_topic("other"),
    create_user("gina", password=USERS["gina"]),
    acl("gina", "Group:mine", "Sub", "Update"),
    acl("gina", "Topic:orders", "Get"),
    create_user("hank", password=USERS["hank"]),
    acl("hank", "Topic:*", "Get", "Sub"),
    acl("hank", "Topic:other", "Get", "Sub", decision="Deny"),
    acl("hank", "Group:mine", "Sub"),
    send("other"),
]


def denied(user: str, resource: str, why: str = "no matched policies.") -> Answer:
    return 16, f"User:{user} has no permission to access {resource} from 127.0.0.1, {why}"


def no(remark: str) -> Answer:
    return 16, remark


DENIED_OTHER = denied("hank", "Topic:other", "the decision is deny.")
BAD_SIGNATURE = no("check signature failed.")
CLUSTER = "Cluster:DefaultCluster"
NO_SUBJECT = no("The subject is null.")
_AUTH_EXCEPTION = "org.apache.rocketmq.auth.authorization.exception.AuthorizationException"
NO_RULES = (1, f"{_AUTH_EXCEPTION}: The body of acl is null")

USER_ATTEMPTS = [
    # Who are you?
    Attempt("nobody", "", send("orders"), no("username cannot be null.")),
    Attempt("nothing at all", "", (34, {}, b""), no("username cannot be null.")),
    Attempt("empty name", "", send("orders", AccessKey=""), no("username cannot be null.")),
    Attempt("unknown user", "mallory", send("orders"), no("User:mallory is not found.")),
    Attempt("other case", "ALICE", send("orders"), no("User:ALICE is not found.")),
    Attempt("disabled user", "bob", send("orders"), no("User:bob is disabled.")),
    Attempt("wrong secret", "alice", send("orders"), BAD_SIGNATURE, secret="guess"),
    Attempt("no signature", "alice", send("orders"), BAD_SIGNATURE, drop("Signature")),
    Attempt("empty signature", "alice", send("orders"), BAD_SIGNATURE, change("Signature", "")),
    Attempt("cut signature", "alice", send("orders"), BAD_SIGNATURE, cut_signature),
    Attempt("signature in other case", "alice", send("orders"), BAD_SIGNATURE, folded_signature),
    Attempt(
        "signature not ASCII", "alice", send("orders"), BAD_SIGNATURE, change("Signature", "é")
    ),
    Attempt(
        "name of the boss", "alice", send("orders"), BAD_SIGNATURE, change("AccessKey", "root")
    ),
    Attempt("unknown request, nobody", "", (9999, {}, b""), no("username cannot be null.")),
    Attempt("unknown request", "alice", (9999, {}, b""), (3, " request type 9999 not supported")),
    # Altered on the way
    Attempt("other topic", "alice", send("orders"), BAD_SIGNATURE, change("b", "orders-2")),
    Attempt("other body", "alice", send("orders"), BAD_SIGNATURE, other_body),
    Attempt("a field more", "alice", send("orders"), BAD_SIGNATURE, change("zz", "1")),
    Attempt("a field less", "alice", send("orders"), BAD_SIGNATURE, drop("g")),
    Attempt("token added", "alice", send("orders"), BAD_SIGNATURE, change("SecurityToken", "t")),
    Attempt("values shifted", "alice", send("orders"), denied("alice", "Topic:rders"), shifted),
    # Messages
    Attempt("send", "alice", send("orders"), OK),
    Attempt("send again, the same", "alice", send("orders"), OK),
    Attempt("send by prefix", "alice", send("orders-eu"), OK),
    Attempt("send by default rule", "alice", send("public-1"), OK),
    Attempt("send to another's", "alice", send("other"), denied("alice", "Topic:other")),
    Attempt(
        "send to a denied one",
        "alice",
        send("orders-secret"),
        denied("alice", "Topic:orders-secret", "the decision is deny."),
    ),
    Attempt("batch to another's", "alice", batch("other"), denied("alice", "Topic:other")),
    Attempt(
        "old send to another's",
        "alice",
        asked(10, topic="other", producerGroup="g"),
        denied("alice", "Topic:other"),
    ),
    Attempt("send without rules", "dave", send("orders"), denied("dave", "Topic:orders")),
    Attempt("send from elsewhere", "carol", send("orders"), denied("carol", "Topic:orders")),
    Attempt("send as root", "root", send("other"), OK),
    Attempt(
        "retry of another group",
        "alice",
        send("%RETRY%payroll", a="payroll"),
        denied("alice", "Group:payroll"),
    ),
    Attempt(
        "end a transaction of another's",
        "alice",
        asked(37, topic="other", producerGroup="g", tranStateTableOffset="0"),
        denied("alice", "Topic:other"),
    ),
    Attempt(
        "recall of another's",
        "alice",
        asked(370, topic="other", recallHandle="x"),
        denied("alice", "Topic:other"),
    ),
    Attempt("pull", "alice", pull("orders", "billing"), OK),
    Attempt("pull another's", "alice", pull("other", "billing"), denied("alice", "Topic:other")),
    Attempt(
        "pull for another group",
        "alice",
        pull("orders", "payroll"),
        denied("alice", "Group:payroll"),
    ),
    Attempt(
        "pull what may be sent only",
        "alice",
        pull("public-1", "billing"),
        denied("alice", "Topic:public-1"),
    ),
    Attempt(
        "pull another group's retries",
        "alice",
        pull("%RETRY%payroll", "billing"),
        denied("alice", "Group:payroll"),
        java=(17, ""),
    ),
    Attempt(
        "lite pull of another's",
        "alice",
        pull("other", "billing", 361),
        denied("alice", "Topic:other"),
        java=(0, ""),
    ),
    Attempt(
        "pop another's",
        "alice",
        asked(200050, topic="other", consumerGroup="billing"),
        denied("alice", "Topic:other"),
        java=no("parse authorization context error."),
    ),
    Attempt(
        "send back for another group",
        "alice",
        asked(36, group="payroll", offset="0", delayLevel="0"),
        denied("alice", "Group:payroll"),
    ),
    Attempt(
        "query another's",
        "alice",
        asked(12, topic="other", key="k", maxNum="1", beginTimestamp="0", endTimestamp="1"),
        denied("alice", "Topic:other"),
    ),
    Attempt("pull as one of all", "hank", pull("orders", "mine"), OK),
    Attempt("pull one of all that is denied", "hank", pull("other", "mine"), DENIED_OTHER),
    # By place in the log: the record's own topic decides
    Attempt("view another's", "alice", view(topic="other"), denied("alice", "Topic:other")),
    Attempt("view by place", "alice", view(), denied("alice", "Topic:other"), java=OK),
    Attempt(
        "view under another name",
        "gina",
        view(topic="orders"),
        denied("gina", "Topic:other"),
        java=OK,
    ),
    Attempt(
        "view by no number",
        "gina",
        view("x", topic="orders"),
        denied("gina", "Topic:None"),
        java=(1, ""),
    ),
    Attempt(
        "view nowhere",
        "alice",
        view(NOWHERE),
        denied("alice", "Topic:None"),
        java=(1, ""),
    ),
    Attempt(
        "send back another's",
        "alice",
        send_back("billing"),
        denied("alice", "Topic:other"),
        java=OK,
    ),
    Attempt("send back one's own", "root", send_back("billing"), OK),
    Attempt(
        "end by place",
        "alice",
        end_transaction(),
        denied("alice", "Topic:other"),
        java=(1, ""),
    ),
    Attempt(
        "end under another name",
        "alice",
        end_transaction(topic="orders"),
        denied("alice", "Topic:other"),
        java=(1, ""),
    ),
    Attempt(
        "have another's handled",
        "alice",
        consume_directly(consumerGroup="billing"),
        denied("alice", "Topic:other"),
        java=(1, ""),
    ),
    Attempt(
        "have another's handled under another name",
        "alice",
        consume_directly(consumerGroup="billing", topic="orders"),
        denied("alice", "Topic:other"),
        java=(1, ""),
    ),
    # By another name, or none
    Attempt(
        "retry of another group under one's own name",
        "alice",
        send("%RETRY%payroll", a="billing"),
        denied("alice", "Group:payroll"),
    ),
    Attempt(
        "retry of one's own group",
        "alice",
        send("%RETRY%billing", a="CLIENT_INNER_PRODUCER"),
        OK,
    ),
    Attempt(
        "dead letters of another group",
        "alice",
        send("%DLQ%payroll", a="billing"),
        denied("alice", "Topic:%DLQ%payroll"),
    ),
    Attempt(
        "reply into another's",
        "alice",
        reply_to("other"),
        denied("alice", "Topic:other"),
        java=(1, ""),
    ),
    Attempt(
        "take back another's",
        "alice",
        take_back("orders", "other"),
        no("TIMER_DEL_UNIQKEY names a message of another topic than orders"),
        java=OK,
    ),
    Attempt("take back one's own", "alice", take_back("orders", "orders"), OK),
    Attempt(
        "queues of another group",
        "alice",
        assignment("orders", "payroll"),
        denied("alice", "Group:payroll"),
        java=(0, ""),
    ),
    Attempt(
        "try out another's",
        "alice",
        client_check("other", "billing"),
        denied("alice", "Topic:other"),
        java=(1, ""),
    ),
    Attempt(
        "copy another group's offsets",
        "gina",
        asked(314, srcGroup="payroll", destGroup="mine", offline="true"),
        denied("gina", "Group:payroll"),
        java=OK,
    ),
    Attempt(
        "reset without a topic",
        "gina",
        asked(222, group="mine", timestamp="0", isForce="true"),
        denied("gina", "Topic:None"),
        java=(1, ""),
    ),
    *(
        Attempt(name, "alice", asked(code), denied("alice", CLUSTER), java=OK)
        for name, code in LISTINGS.items()
    ),
    *(Attempt(f"{name}, allowed", "erin", asked(code), OK) for name, code in LISTINGS.items()),
    # Signatures bound to their request
    Attempt("bound send", "alice", send("orders"), OK, bound_to=310),
    Attempt("bound question", "root", asked(202, topic="orders"), OK, bound_to=202),
    Attempt(
        "a question as a deletion",
        "root",
        asked(215, topic="doomed"),
        BAD_SIGNATURE,
        java=OK,
        bound_to=202,
    ),
    Attempt(
        "a part of a value",
        "root",
        asked(215, topic="doomed-too"),
        BAD_SIGNATURE,
        lambda fields, body: (fields | {"topic": "doomed", "zz": "-too"}, body),
        java=OK,
        bound_to=215,
    ),
    Attempt(
        "without its binding",
        "root",
        asked(215, topic="doomed"),
        BAD_SIGNATURE,
        drop("!"),
        bound_to=202,
    ),
    Attempt("a question unbound as a deletion", "root", asked(215, topic="doomed"), OK),
    # Groups
    Attempt("heartbeat", "alice", heartbeat("billing", "orders", "%RETRY%billing"), OK),
    Attempt(
        "heartbeat of another group",
        "alice",
        heartbeat("payroll"),
        denied("alice", "Group:payroll"),
    ),
    Attempt(
        "heartbeat for another's topic",
        "alice",
        heartbeat("billing", "other"),
        denied("alice", "Topic:other"),
    ),
    Attempt(
        "heartbeat that is none",
        "alice",
        (34, {}, b"[1]"),
        no("parse authorization context error."),
    ),
    Attempt(
        "leave another group",
        "alice",
        asked(35, clientID="c", consumerGroup="payroll"),
        denied("alice", "Group:payroll"),
    ),
    Attempt(
        "members of another group",
        "alice",
        asked(38, consumerGroup="payroll"),
        denied("alice", "Group:payroll"),
    ),
    Attempt(
        "progress of another group",
        "alice",
        offset(14, "orders", "payroll"),
        denied("alice", "Group:payroll"),
    ),
    Attempt(
        "move another group",
        "alice",
        offset(15, "orders", "payroll"),
        denied("alice", "Group:payroll"),
    ),
    Attempt("lock another's", "alice", lock("billing", "other"), denied("alice", "Topic:other")),
    Attempt(
        "lock for another group",
        "alice",
        lock("payroll", "orders"),
        denied("alice", "Group:payroll"),
    ),
    # Operators
    Attempt("create a topic", "alice", create_topic("orders-3"), denied("alice", "Topic:orders-3")),
    Attempt("delete a topic", "alice", asked(215, topic="orders"), denied("alice", "Topic:orders")),
    Attempt("settings", "alice", UPDATE_CONFIG, denied("alice", CLUSTER), java=OK),
    Attempt("make a user", "alice", create_user("eve", password="1"), denied("alice", CLUSTER)),
    Attempt("list users", "alice", asked(3005), denied("alice", CLUSTER)),
    Attempt("give oneself more", "alice", acl("alice", "*", "All"), denied("alice", CLUSTER)),
    Attempt("make a user, allowed", "erin", create_user("frank", password="1"), OK),
    Attempt(
        "make a boss",
        "erin",
        create_user("eve", password="1", userType="Super"),
        (1, "The super user can only be create by super user"),
    ),
    Attempt(
        "become a boss",
        "erin",
        asked(3002, {"userType": "super"}, username="erin"),
        (1, "The super user can only be update by super user"),
    ),
    Attempt(
        "take the boss's password",
        "erin",
        asked(3002, {"password": "mine"}, username="root"),
        no("The super user can only be update by super user"),
    ),
    Attempt(
        "delete the boss",
        "erin",
        asked(3003, username="root"),
        no("The super user can only be update by super user"),
    ),
    Attempt("twice", "root", create_user("alice", password="1"), no("The user is existed")),
    Attempt("no password", "root", create_user("zoe"), no("password can not be blank")),
    Attempt("no name", "root", asked(3001, {"password": "1"}), (29, "The username is blank")),
    Attempt(
        "change nobody",
        "root",
        asked(3002, {"password": "1"}, username="zoe"),
        no("The user is not exist"),
    ),
    Attempt("delete nobody", "root", asked(3003, username="zoe"), OK),
    Attempt(
        "rules for nobody",
        "root",
        acl("zoe", "Topic:a", "Pub"),
        no("The subject of User:zoe is not exist."),
    ),
    Attempt("rules of no user", "root", asked(3009, subject="Role:x"), NO_SUBJECT),
    Attempt("delete rules of no user", "root", asked(3008, subject="Role:x"), NO_SUBJECT),
    Attempt(
        "give no user rules",
        "root",
        asked(3006, {"policies": rules("x", "Topic:a", "Pub")["policies"]}, subject="Role:x"),
        (1, "An system error occurred, please try again later."),
    ),
    Attempt("no rules", "root", asked(3006, {}, subject="User:dave"), NO_RULES),
    Attempt(
        "rules without entries",
        "root",
        asked(3006, {"policies": [{"policyType": "Custom"}]}, subject="User:dave"),
        no("The policies is empty."),
    ),
    Attempt("no resource", "root", acl("dave", "Thing:a", "Pub"), no("The resource is null.")),
    Attempt("no action", "root", acl("dave", "Topic:a", "Fly"), no("The actions is empty.")),
    Attempt("any action", "root", acl("dave", "Topic:a", "Any"), no("The actions can not be Any.")),
    Attempt(
        "no address",
        "root",
        acl("dave", "Topic:a", "Pub", ip="10.0.0.0/33"),
        no("The source ip is invalid."),
    ),
    Attempt(
        "no decision",
        "root",
        acl("dave", "Topic:a", "Pub", decision="Maybe"),
        no("The decision is null or illegal."),
    ),
    Attempt("rules of who has none", "root", asked(3009, subject="User:dave"), OK),
    Attempt(
        "delete rules of who has none",
        "root",
        asked(3008, subject="User:dave"),
        no("The acl is not exist."),
    ),
]

# 4.x: accounts

ACCOUNTS = {
    "rootkey1": "rootsecret",
    "alicekey": "alicesecret",
    "whitekey": "whitesecret",
    "halfadmin": "halfsecret",
}
ACCESS_FILE = f"""
globalWhiteRemoteAddresses:
- 10.10.103.*
- 192.168.0.1-9
accounts:
- accessKey: rootkey1
  secretKey: {ACCOUNTS["rootkey1"]}
  whiteRemoteAddress:
  admin: true
- accessKey: alicekey
  secretKey: {ACCOUNTS["alicekey"]}
  whiteRemoteAddress: 192.168.0.{{1,2}}
  admin: false
  defaultTopicPerm: DENY
  defaultGroupPerm: SUB
  topicPerms:
  - orders=PUB|SUB
  - inbox=PUB
  - outbox=SUB
  groupPerms:
  - payroll=DENY
  - billing=SUB
- accessKey: whitekey
  secretKey: {ACCOUNTS["whitekey"]}
  whiteRemoteAddress: 127.0.0.1
  defaultTopicPerm: DENY
- accessKey: halfadmin
  secretKey: {ACCOUNTS["halfadmin"]}
  admin: true
  topicPerms:
  - orders=PUB
"""


def acl_exception(text: str) -> Answer:
    return 1, f"org.apache.rocketmq.acl.common.AclException: {text}"


def bad(key: str) -> Answer:
    return acl_exception(f"Check signature failed for accessKey={key}")


def lacking(resource: str) -> Answer:
    return acl_exception(f"No default permission for {resource}")


def not_admin(code: int) -> Answer:
    text = f"Need admin permission for request code={code}, but accessKey=alicekey is not"
    return acl_exception(text)


ACCOUNT_SETUP = [
    *map(create_topic, ("orders", "inbox", "outbox", "other")),
    send("other"),
]
NEW_ACCOUNT = {"accessKey": "evelynkey", "secretKey": "evelynsecret", "admin": "true"}

ACCOUNT_ATTEMPTS = [
    Attempt("nobody", "", send("orders"), acl_exception("No accessKey is configured")),
    Attempt(
        "unknown account", "mallory", send("orders"), acl_exception("No acl config for mallory")
    ),
    Attempt("wrong secret", "alicekey", send("orders"), bad("alicekey"), secret="guess"),
    Attempt("no signature", "alicekey", send("orders"), bad("alicekey"), drop("Signature")),
    Attempt("other topic", "alicekey", send("orders"), bad("alicekey"), change("b", "inbox")),
    Attempt("other body", "alicekey", send("orders"), bad("alicekey"), other_body),
    Attempt("a field more", "alicekey", send("orders"), bad("alicekey"), change("zz", "1")),
    Attempt(
        "another's name", "alicekey", send("orders"), bad("rootkey1"), change("AccessKey", "rootkey1")
    ),
    Attempt("values shifted", "alicekey", send("orders"), lacking("topic:rders"), shifted),
    Attempt("from a trusted address", "whitekey", send("orders"), OK, secret="any"),
    Attempt("send", "alicekey", send("orders"), OK),
    Attempt("send again, the same", "alicekey", send("orders"), OK),
    Attempt("send to what may be read", "alicekey", send("outbox"), lacking("topic:outbox")),
    Attempt("send to another's", "alicekey", send("other"), lacking("topic:other")),
    Attempt(
        "batch to another's", "alicekey", batch("other"), lacking("topic:other"), java=OK
    ),
    Attempt("trace", "alicekey", send("RMQ_SYS_TRACE_TOPIC"), OK),
    Attempt("pull what may be sent", "alicekey", pull("inbox", "billing"), lacking("topic:inbox")),
    Attempt("pull for a denied group", "alicekey", pull("orders", "payroll"), lacking("group:payroll")),
    Attempt(
        "pull a denied group's retries",
        "alicekey",
        pull("%RETRY%payroll", "billing"),
        lacking("group:payroll"),
    ),
    Attempt(
        "pop another's",
        "alicekey",
        asked(200050, topic="other", consumerGroup="billing"),
        lacking("topic:other"),
        java=(3, " request type 200050 not supported"),
    ),
    Attempt("heartbeat", "alicekey", heartbeat("billing", "orders", "%RETRY%billing"), OK),
    Attempt("heartbeat of a denied group", "alicekey", heartbeat("payroll"), lacking("group:payroll")),
    Attempt("heartbeat for another's", "alicekey", heartbeat("g", "other"), lacking("topic:other")),
    Attempt("create a topic", "alicekey", create_topic("orders-3"), not_admin(17)),
    Attempt("delete a topic", "alicekey", asked(215, topic="orders"), not_admin(215)),
    Attempt("settings", "alicekey", UPDATE_CONFIG, not_admin(25)),
    Attempt("delete a group", "alicekey", asked(207, groupName="billing"), not_admin(207)),
    Attempt("make an admin", "alicekey", (50, NEW_ACCOUNT, b""), not_admin(50), java=OK),
    Attempt(
        "read all secrets", "alicekey", asked(54), not_admin(54), java=OK
    ),
    Attempt("view by place", "alicekey", view(), lacking("topic:other"), java=OK),
    Attempt("view under another name", "alicekey", view(topic="orders"), lacking("topic:other"), java=OK),
    Attempt("view nowhere", "alicekey", view(NOWHERE), not_admin(33), java=(1, "")),
    Attempt("view as admin", "rootkey1", view(), OK),
    Attempt("send back another's", "alicekey", send_back("billing"), lacking("topic:other"), java=OK),
    Attempt("end by place", "alicekey", end_transaction(), lacking("topic:other"), java=(1, "")),
    Attempt(
        "end by place as a trace", "alicekey", end_transaction(topic="RMQ_SYS_TRACE_TOPIC"),
        lacking("topic:RMQ_SYS_TRACE_TOPIC"), java=(1, ""),
    ),
    Attempt(
        "have another's handled", "alicekey", consume_directly(consumerGroup="billing"),
        lacking("topic:other"), java=(1, ""),
    ),
    Attempt(
        "retry of a denied group under another name", "alicekey", send("%RETRY%payroll", a="billing"),
        lacking("group:payroll"), java=OK,
    ),
    Attempt("reply into another's", "alicekey", reply_to("other"), lacking("topic:other"), java=(1, "")),
    Attempt("reset a group", "alicekey", asked(222, group="billing", topic="orders", timestamp="0", isForce="true"), not_admin(222), java=(1, "")),
    *(
        Attempt(name, "alicekey", asked(code), not_admin(code), java=OK)
        for name, code in LISTINGS.items()
    ),
    *(Attempt(f"{name} as admin", "rootkey1", asked(code), OK) for name, code in LISTINGS.items()),
    Attempt("bound send", "alicekey", send("orders"), OK, bound_to=310),
    Attempt(
        "a question as a deletion", "rootkey1", asked(215, topic="doomed"), bad("rootkey1"),
        java=OK, bound_to=202,
    ),
    Attempt("create a topic as admin", "rootkey1", create_topic("made"), OK),
    Attempt("send as admin", "rootkey1", send("made"), OK),
    Attempt("an admin with limits", "halfadmin", send("made"), lacking("topic:made")),
    Attempt("an admin within limits", "halfadmin", send("orders"), OK),
]  # fmt: skip
