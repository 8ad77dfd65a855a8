"""Source and sink on a cluster that wants a user and TLS."""

import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructType

from pocketmq import Admin, Cluster
from pocketmq.admin.access import rules_for
from pocketmq.embedded.settings import Setting
from pocketmq.errors import DataLost, MQError, RowsNotSent
from pocketmq.protocol.requests.access import User
from pocketmq.spark.batch_reader import batch_reader
from pocketmq.spark.connections import forget_senders
from pocketmq.spark.options import client_of
from pocketmq.spark.schema import full_schema
from pocketmq.spark.sink import batch_writer
from tests.net.certificates import make_certificates
from tests.spark.topics import bodies

USER = {"accessKey": "root", "secretKey": "secret"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Yield the options that lead to it, a user not among them."""
    certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    config: dict[str, Setting] = {
        "tls.server.mode": "enforcing",
        "tls.server.certPath": certificates.server,
        "tls.server.keyPath": certificates.server_key,
        "authenticationEnabled": True,
        "authorizationEnabled": True,
        "initAuthenticationUser": '{"username":"root","password":"secret"}',
    }
    with Cluster(config=config) as cluster:
        cluster.create_topic("orders", 2)
        yield {
            "nameServer": cluster.address,
            "tls": "true",
            "tlsCa": str(certificates.root),
            "retryTimeout": "300ms",
            "requestTimeout": "30s",
        }
        forget_senders()


def test_what_a_user_writes_over_tls_is_read_over_tls(guarded: dict[str, str]) -> None:
    """Tasks get options by pickle, as from Spark."""
    schema = StructType().add("body", BinaryType())
    to = {name: value for name, value in guarded.items() if name != "retryTimeout"} | USER
    writer = batch_writer(to | {"topic": "orders"}, schema, overwrite=False)
    batch = pa.RecordBatch.from_pydict({"body": [b"%d" % n for n in range(50)]})
    pickle.loads(pickle.dumps(writer)).write(iter([batch]))
    reader = batch_reader(guarded | USER | {"subscribe": "orders"}, full_schema())
    tasks = pickle.loads(pickle.dumps(reader.partitions()))
    read = bodies(pickle.loads(pickle.dumps(reader)), tasks)
    assert sorted(map(int, read)) == list(range(50))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"secretKey": "guessed-12"}, "authentic|signature|secret|check"),
        ({"tls": "false", "tlsCa": ""}, "closed|reset|answers"),
    ],
)
def test_who_may_not_read_is_told_so(
    guarded: dict[str, str], changes: dict[str, str], told: str
) -> None:
    options = guarded | USER | changes | {"subscribe": "orders"}
    reader = batch_reader({n: v for n, v in options.items() if v}, full_schema())
    with pytest.raises(MQError, match=f"(?i){told}") as refused:
        reader.partitions()
    assert not isinstance(refused.value, DataLost)  # it is there, and forbidden


def test_a_user_who_may_not_send_is_refused_without_waiting(guarded: dict[str, str]) -> None:
    """A permission that is missing now is missing in 10 minutes, too."""
    options = client_of("", guarded | USER)
    with Admin(options.name_servers, credentials=options.credentials, tls=options.tls) as admin:
        reader = User(username="reader", password="secret-12", user_type="Normal")
        admin.access.create_user(reader, "DefaultCluster").all()
        rules = rules_for("User:reader", ["Topic:orders"], ["Sub", "Get"], "Allow")
        admin.access.create_rules(rules, "DefaultCluster").all()
    to = guarded | {"accessKey": "reader", "secretKey": "secret-12", "topic": "orders"}
    schema = StructType().add("body", BinaryType())
    writer = batch_writer(to | {"retryTimeout": "10m"}, schema, overwrite=False)
    with pytest.raises(RowsNotSent, match=r"^row 0 .* has no permission to access Topic:orders"):
        writer.write(iter([pa.RecordBatch.from_pydict({"body": [b"x"]})]))
