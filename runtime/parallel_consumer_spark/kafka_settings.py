"""From librdkafka's names to the Java client's. Keeps: a setting is mapped, or left out by name, or refused; never guessed.

Secrets are references, `${env:NAME}`: the Java clients of driver and executors read the variable themselves, so that no secret is in
a plan, an option or a log of Spark's.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from parallel_consumer_spark.errors import SettingError

_PROVIDERS = {
    "config.providers": "env,dir",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "config.providers.dir.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
}
_REFERENCE = re.compile(r"^\$\{env:[A-Za-z_][A-Za-z0-9_]*\}$")
_SAME = frozenset(
    {
        *("client.rack", "client.dns.lookup", "metadata.max.age.ms", "connections.max.idle.ms", "check.crcs"),
        *("reconnect.backoff.ms", "reconnect.backoff.max.ms", "retry.backoff.ms", "retry.backoff.max.ms"),
        *("fetch.min.bytes", "fetch.max.bytes", "max.partition.fetch.bytes", "socket.connection.setup.timeout.ms"),
        *("sasl.kerberos.service.name", "sasl.login.refresh.buffer.seconds"),
    }
)
_RENAMED = {
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "socket.timeout.ms": "request.timeout.ms",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "ssl.cipher.suites": "ssl.cipher.suites",
}
_LEFT_OUT = frozenset(
    {
        *("queued.min.messages", "queued.max.messages.kbytes", "fetch.queue.backoff.ms", "fetch.error.backoff.ms"),
        *("statistics.interval.ms", "debug", "log_level", "log.connection.close", "log.thread.name", "log.queue"),
        *(
            "socket.keepalive.enable",
            "socket.nagle.disable",
            "socket.max.fails",
            "max.in.flight",
            "receive.message.max.bytes",
        ),
        *(
            "topic.metadata.refresh.interval.ms",
            "topic.metadata.refresh.sparse",
            "topic.metadata.refresh.fast.interval.ms",
        ),
        *("api.version.request", "broker.address.ttl", "allow.auto.create.topics", "heartbeat.interval.ms"),
        *("max.poll.interval.ms", "message.max.bytes", "client.id", "enable.sparse.connections"),
    }
)
"""What tunes librdkafka itself and changes nothing of what is read."""
_MECHANISMS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_SECRETS = frozenset({"sasl.password", "ssl.key.password", "ssl.key.pem"})
_REFUSED = {
    "isolation.level": "leave it out: only committed records are read, always",
    "bootstrap.servers": "set kafka.bootstrapServers",
    "metadata.broker.list": "set kafka.bootstrapServers",
    "group.id": "leave it out: Spark reads outside of the group",
    "broker.address.family": "leave it out, and give -Djava.net.preferIPv4Stack=true as a Java option",
    "enable.ssl.certificate.verification": "leave it out: the Java client always verifies; name the authority with ssl.ca.location",
    "ssl.keystore.location": "give ssl.certificate.location and ssl.key.location, both PEM",
    "plugin.library.paths": "it loads code",
    "ssl.engine.location": "it loads code",
    "ssl.providers": "it loads code",
    "sasl.kerberos.kinit.cmd": "it runs a command",
}


class JavaSettings(NamedTuple):
    """What the Java client is given."""

    settings: dict[str, str]
    left_out: tuple[str, ...]
    """Names that tune librdkafka alone."""


def java_settings(bootstrap_servers: str, config: Mapping[str, str]) -> JavaSettings:
    """Return the Java client's settings, without a prefix.

    Raises:
        SettingError: a name is unknown or cannot be mapped, or a secret is written out; says what to do.
    """
    settings = {"bootstrap.servers": bootstrap_servers, **_PROVIDERS}
    left_out: list[str] = []
    for name, value in config.items():
        if name in _SECRETS and not _REFERENCE.match(value):
            raise SettingError(
                f"kafka.config: {name} is a secret: write ${{env:NAME}}, and let the environment hold it"
            )
        if name in _SAME:
            settings[name] = value
        elif name in _RENAMED:
            settings[_RENAMED[name]] = value
        elif name in _LEFT_OUT:
            left_out.append(name)
        elif name not in _TOGETHER and name not in _MAPPED:
            raise SettingError(f"kafka.config: {name}: {_REFUSED.get(name, _unknown(name))}")
    for name, mapped in _MAPPED.items():
        if name in config:
            settings.update(mapped(config[name]))
    settings.update(_sasl(config))
    settings.update(_own_certificate(config))
    return JavaSettings(settings, tuple(left_out))


def _unknown(name: str) -> str:
    return f"this library does not know what it is called in the Java client; leave it out, or set the Spark option kafka.{name}"


def _protocol(value: str) -> dict[str, str]:
    return {"security.protocol": value.upper()}


def _authority(value: str) -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": value}


def _authority_text(value: str) -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": value}


def _host_check(value: str) -> dict[str, str]:
    return {"ssl.endpoint.identification.algorithm": "" if value == "none" else value}


_MAPPED: dict[str, Callable[[str], dict[str, str]]] = {
    "security.protocol": _protocol,
    "ssl.ca.location": _authority,
    "ssl.ca.pem": _authority_text,
    "ssl.endpoint.identification.algorithm": _host_check,
}
_TOGETHER = frozenset(
    {
        *("sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password"),
        *("ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location", "ssl.key.pem", "ssl.key.password"),
    }
)
"""Settings that mean something only beside each other."""


def _sasl(config: Mapping[str, str]) -> dict[str, str]:
    mechanism = config.get("sasl.mechanism", config.get("sasl.mechanisms"))
    if mechanism is None:
        if "sasl.username" in config or "sasl.password" in config:
            raise SettingError("kafka.config: sasl.username and sasl.password need sasl.mechanism")
        return {}
    module = _MECHANISMS.get(mechanism)
    if module is None:
        raise SettingError(
            f"kafka.config: sasl.mechanism: {mechanism} is not mapped: give one of {', '.join(_MECHANISMS)}"
        )
    username, password = config.get("sasl.username"), config.get("sasl.password")
    if username is None or password is None:
        raise SettingError(f"kafka.config: sasl.mechanism {mechanism} needs sasl.username and sasl.password")
    if re.search(r'["\\]', username):
        raise SettingError("kafka.config: sasl.username holds a quote or a backslash: write ${env:NAME}")
    jaas = f'{module} required username="{username}" password="{password}";'
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas}


def _own_certificate(config: Mapping[str, str]) -> dict[str, str]:
    chain = config.get("ssl.certificate.pem") or _content(config, "ssl.certificate.location")
    key = config.get("ssl.key.pem") or _content(config, "ssl.key.location")
    if (chain is None) != (key is None):
        raise SettingError(
            "kafka.config: a certificate and its key go together: ssl.certificate.location, ssl.key.location"
        )
    if chain is None or key is None:
        return {}
    settings = {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
    if "ssl.key.password" in config:
        settings["ssl.key.password"] = config["ssl.key.password"]
    return settings


def _content(config: Mapping[str, str], name: str) -> str | None:
    """Return a reference to a file's content, which the client reads where it runs."""
    if name not in config:
        return None
    path = PurePosixPath(config[name])
    if not path.is_absolute() or ":" in config[name]:
        raise SettingError(f"kafka.config: {name} is {config[name]!r}: give an absolute path without a colon")
    return f"${{dir:{path.parent}:{path.name}}}"
