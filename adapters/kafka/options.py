"""Options of the Kafka clients: passed through, checked, with secrets that come from the environment alone.

A secret stands in the job file as ``"${NAME}"``. The variable is looked up when a client is made and goes nowhere else:
not into the job, a checkpoint, the report, a message or a log.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from streamlearn.errors import BadJob

Options = dict[str, Any]

SECRETS = frozenset({
    "sasl.password", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config", "ssl.key.password", "ssl.key.pem",
    "ssl.keystore.password", "basic.auth.user.info", "bearer.auth.token", "bearer.auth.client.secret",
})  # fmt: skip
"""Options that may only be written as the name of an environment variable."""

CONNECTION = (
    "bootstrap.servers", "security.", "sasl.", "ssl.", "client.id", "socket.", "broker.address.", "broker.version.",
    "reconnect.", "api.version.", "enable.ssl.", "enable.sasl.", "https.", "client.dns.", "debug", "log_level",
    "metadata.broker.list",
)  # fmt: skip
"""Beginnings of the options that every kind of client knows."""

_OWN_SOURCE = {
    "group.id": "source.group",
    "enable.auto.commit": "nothing: the job commits behind its checkpoints",
    "enable.auto.offset.store": "nothing: the job commits behind its checkpoints",
    "auto.offset.reset": "source.out_of_range",
    "enable.partition.eof": "nothing: the job uses it",
}
_OWN_SINK = {"enable.idempotence": "nothing: transactions need it"}
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def flat(table: Mapping[str, Any], prefix: str = "") -> Options:
    """Return the options of a table, in which TOML reads unquoted dots as tables.

    Examples
    --------
    >>> flat({"sasl": {"username": "alice"}, "client.id": "me"})
    {'sasl.username': 'alice', 'client.id': 'me'}
    """
    found: Options = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def check_options(path: str, table: Mapping[str, Any]) -> Options:
    """Return the options of one table of the job, secrets still as names of variables.

    Raises
    ------
    BadJob
        A secret is written out, a variable is not set, or the option is not the job file's to set. No value is shown.
    """
    options = flat(table)
    own = _OWN_SINK if path == "sink.kafka" else _OWN_SOURCE
    for name, value in options.items():
        if name in own:
            raise BadJob(f"{path}.{name}: must be absent, as it is set by {own[name]}")
        if name in SECRETS and not (isinstance(value, str) and _VARIABLE.fullmatch(value)):
            raise BadJob(f"{path}.{name}: must be '${{NAME}}', the name of an environment variable, got something else")
        if not isinstance(value, str | int | float | bool):
            raise BadJob(f"{path}.{name}: must be a text, number or boolean, got {type(value).__name__}")
        for variable in _variables(value):
            if variable not in os.environ:
                raise BadJob(f"{path}.{name}: must name a set variable of the environment, got ${{{variable}}}")
    return options


def _variables(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from _VARIABLE.findall(value)


def resolved(options: Mapping[str, Any]) -> Options:
    """Return the options with the variables' values, for a client and for nobody else."""
    return {
        name: _VARIABLE.sub(lambda found: os.environ[found[1]], value) if isinstance(value, str) else value
        for name, value in options.items()
    }


def connection(options: Mapping[str, Any]) -> Options:
    """Return the options that say where the brokers are and who asks."""
    return {name: value for name, value in options.items() if name.startswith(CONNECTION)}
