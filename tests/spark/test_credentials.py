"""A broker that asks who is there: the password is in the environment, and nowhere else."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import pytest

from parallel_consumer_spark import SettingError, Window, read
from parallel_consumer_spark.window import PartitionRange, TopicRange
from tests.support.kafka import KafkaBroker, ProxiedListener
from tests.support.ports import free_ports
from tests.support.spark_session import SECRET, SECRET_ENV
from tests.support.spark_windows import Sent, send, topic_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture
def guarded(kafka: KafkaBroker) -> Iterator[tuple[KafkaBroker, str]]:
    """Run a broker with a second listener, for those who know the password."""
    assert kafka.bootstrap
    (port,) = free_ports(1)
    properties = {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.proxied.plain.sasl.jaas.config": f'{LOGIN} required user_flights="{SECRET}";',
    }
    with KafkaBroker(proxied=ProxiedListener(port, port), properties=properties) as broker:
        yield broker, f"127.0.0.1:{port}"


def test_a_password_is_read_where_it_is_used(guarded: tuple[KafkaBroker, str], spark: "SparkSession") -> None:
    """Reading works with a reference to it; no plan has it, and an error of a wrong one does not either."""
    broker, address = guarded
    broker.create_topic("orders", 1)
    send(broker.bootstrap, "orders", [Sent(0, "k", b"v", {})] * 3)
    topics = (TopicRange("orders", topic_id(broker.bootstrap, "orders"), (PartitionRange(0, 0, 3),)),)

    def window(password: str) -> Window:
        config = {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "flights",
            "sasl.password": password,
        }
        return Window("flights", "archive", 1, "Results", topics, address, config)

    records = read(spark, window(f"${{env:{SECRET_ENV}}}"))
    assert records.count() == 3
    plan = str(cast("Any", records)._jdf.queryExecution().toString())
    assert SECRET not in plan
    with pytest.raises(SettingError, match=r"cannot be asked: .*SaslAuthenticationException") as caught:
        read(spark, window("${env:HOME}"))
    assert SECRET not in str(caught.value)
