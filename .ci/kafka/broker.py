"""One or three nodes of Apache Kafka (KRaft) on loopback, for tests: fetched with Maven, started, killed, stopped.

    python .ci/kafka/broker.py fetch
    python .ci/kafka/broker.py start FOLDER [--nodes 3]     prints the address of the cluster
    python .ci/kafka/broker.py kill FOLDER NODE             as kill -9 would
    python .ci/kafka/broker.py restart FOLDER NODE
    python .ci/kafka/broker.py stop FOLDER

Everything of a cluster is below FOLDER: properties, data, one log a node, and cluster.json with ports and process ids.
Beside plain text, node 1 listens with SASL (SCRAM-SHA-512 and PLAIN), and with TLS.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
# One folder a version of the pom: brokers may still run from another one.
CACHE = Path(os.environ.get("STREAMLEARN_KAFKA_CACHE", Path.home() / ".cache" / "streamlearn" / "kafka"))
LIBS = CACHE / hashlib.sha256(POM.read_bytes()).hexdigest()[:16]
READY_S = 90.0
STOP_S = 5.0
USER = "alice"
JAVA = ["java", "-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
LOG4J = """
<Configuration status="ERROR">
  <Appenders><Console name="out"><PatternLayout pattern="%d %p %c - %m%n"/></Console></Appenders>
  <Loggers><Root level="WARN"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""


class NoBroker(RuntimeError):
    """Kafka cannot be fetched or started; the message says why."""


def fetch() -> None:
    """Lay the jars into the cache, once a version of the pom."""
    stamp = LIBS / "complete"
    if stamp.is_file():
        return
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise NoBroker(f"{tool} must be installed to start Apache Kafka")
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={LIBS}", "-DincludeScope=runtime"]
    done = subprocess.run(["mvn", "-q", "-B", "-f", str(POM), *goal], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoBroker(f"mvn must fetch Apache Kafka, got:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    stamp.touch()


def free_ports(n: int) -> list[int]:
    """Return ports that are free on loopback now."""
    sockets = [socket.socket() for _ in range(n)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cluster:
    """The nodes below one folder.

    Parameters
    ----------
    folder : Path
        Of a cluster that was created, by this process or another.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about = json.loads((folder / "cluster.json").read_text())

    @classmethod
    def create(cls, folder: Path, nodes: int) -> Cluster:
        """Write properties and format the storage of `nodes` nodes; nothing runs yet."""
        fetch()
        folder.mkdir(parents=True)
        ports = free_ports(2 * nodes + 2)
        about = {
            "plain": ports[:nodes],
            "controller": ports[nodes : 2 * nodes],
            "sasl": ports[-2],
            "tls": ports[-1],
            "user": USER,
            "password": secrets.token_hex(8),
            "pids": {},
        }
        (folder / "cluster.json").write_text(json.dumps(about))
        (folder / "log4j2.xml").write_text(LOG4J)
        cluster = cls(folder)
        cluster._make_certificate()
        uuid = cluster._tool("random-uuid").strip().splitlines()[-1]
        scram = f"SCRAM-SHA-512=[name={USER},password={about['password']}]"
        for node in range(1, nodes + 1):
            cluster._properties(node).write_text(cluster._configuration(node))
            cluster._tool("format", "-t", uuid, "-c", str(cluster._properties(node)), "--add-scram", scram)
        return cluster

    @property
    def bootstrap(self) -> str:
        """The plain-text address."""
        return ",".join(f"127.0.0.1:{port}" for port in self.about["plain"])

    @property
    def nodes(self) -> list[int]:
        """The numbers of the nodes."""
        return list(range(1, len(self.about["plain"]) + 1))

    def start(self) -> None:
        """Start all nodes and wait until they answer."""
        for node in self.nodes:
            self.start_node(node)
        self.wait_ready()

    def start_node(self, node: int) -> None:
        """Start one node; returns before it answers."""
        command = [*self._java(), "kafka.Kafka", str(self._properties(node))]
        log = (os.POSIX_SPAWN_OPEN, 1, self.folder / f"node{node}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        actions = [log, (os.POSIX_SPAWN_DUP2, 1, 2), (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        # It outlives this process, and its number is all that is kept of it.
        self._note(node, os.posix_spawnp(command[0], command, os.environ, file_actions=actions, setsid=True))

    def wait_ready(self, nodes: list[int] | None = None) -> None:
        """Wait until the nodes accept connections on their plain ports.

        A broker opens its listeners after it has caught up with the metadata and is registered.
        """
        deadline = time.monotonic() + READY_S
        for node in nodes or self.nodes:
            while not self._answers(node):
                if not self._runs(node) or time.monotonic() > deadline:
                    tail = (self.folder / f"node{node}.log").read_text()[-3000:]
                    raise NoBroker(f"node {node} must answer within {READY_S:.0f} s, got:\n{tail}")
                time.sleep(0.1)

    def kill(self, node: int) -> None:
        """End one node as kill -9 would."""
        self._send(node, signal.SIGKILL)
        self._wait_ended(node)

    def stop(self) -> None:
        """End all nodes in good order; those that take longer than a moment are killed."""
        for node in self.nodes:  # all at once: the last one would wait for a quorum that is gone
            self._send(node, signal.SIGTERM)
        for node in self.nodes:
            self._wait_ended(node)

    def _send(self, node: int, number: int) -> None:
        if self._runs(node):
            os.kill(self.about["pids"][str(node)], number)

    def _wait_ended(self, node: int) -> None:
        deadline = time.monotonic() + STOP_S
        while self._runs(node):
            if time.monotonic() > deadline:
                self._send(node, signal.SIGKILL)
            time.sleep(0.05)
        self._note(node, None)

    def _note(self, node: int, pid: int | None) -> None:
        self.about["pids"][str(node)] = pid
        (self.folder / "cluster.json").write_text(json.dumps(self.about))

    def _runs(self, node: int) -> bool:
        pid = self.about["pids"].get(str(node))
        if pid is None:
            return False
        with contextlib.suppress(ChildProcessError):  # another process started it
            ended, _ = os.waitpid(pid, os.WNOHANG)
            return ended == 0
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # gone
            return b"kafka.Kafka" in Path(f"/proc/{pid}/cmdline").read_bytes()
        return False

    def _answers(self, node: int) -> bool:
        with socket.socket() as probe:
            probe.settimeout(1.0)
            return probe.connect_ex(("127.0.0.1", self.about["plain"][node - 1])) == 0

    def _properties(self, node: int) -> Path:
        return self.folder / f"node{node}.properties"

    def _java(self) -> list[str]:
        return [*JAVA, f"-Dlog4j2.configurationFile={self.folder / 'log4j2.xml'}", "-cp", f"{LIBS}/*"]

    def _tool(self, *arguments: str) -> str:
        command = [*self._java(), "kafka.tools.StorageTool", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoBroker(
                f"StorageTool {arguments[0]} must end well, got:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        return done.stdout

    def _make_certificate(self) -> None:
        """Write broker.p12 (key and certificate of 127.0.0.1) and ca.pem, which a client trusts."""
        store = ["-keystore", str(self.folder / "broker.p12"), "-storepass", self.about["password"]]
        pair = ["-genkeypair", "-alias", "broker", "-keyalg", "RSA", "-dname", "CN=localhost", "-validity", "30"]
        subject = ["-ext", "SAN=dns:localhost,ip:127.0.0.1", "-storetype", "PKCS12"]
        subprocess.run(["keytool", *pair, *subject, *store], capture_output=True, check=True)
        export = ["-exportcert", "-rfc", "-alias", "broker", "-file", str(self.folder / "ca.pem")]
        subprocess.run(["keytool", *export, *store], capture_output=True, check=True)

    def _configuration(self, node: int) -> str:
        about = self.about
        count = len(about["plain"])
        replicas, least = (3, 2) if count == 3 else (1, 1)
        listeners = {"PLAINTEXT": about["plain"][node - 1]}
        if node == 1:
            listeners |= {"SASL": about["sasl"], "TLS": about["tls"]}
        shown = ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items())
        voters = ",".join(f"{n}@127.0.0.1:{about['controller'][n - 1]}" for n in self.nodes)
        plain = (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="broker" password="{about["password"]}" user_{USER}="{about["password"]}";'
        )
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        settings = {
            "process.roles": "broker,controller",
            "node.id": node,
            "controller.quorum.voters": voters,
            "listeners": f"{shown},CONTROLLER://127.0.0.1:{about['controller'][node - 1]}",
            "advertised.listeners": shown,
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": plain,
            "listener.name.sasl.scram-sha-512.sasl.jaas.config": scram,
            "ssl.keystore.location": self.folder / "broker.p12",
            "ssl.keystore.password": about["password"],
            "ssl.keystore.type": "PKCS12",
            "log.dirs": self.folder / f"data{node}",
            "auto.create.topics.enable": "false",
            "default.replication.factor": replicas,
            "min.insync.replicas": least,
            "offsets.topic.replication.factor": replicas,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": least,
            "transaction.state.log.num.partitions": 4,
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": least,
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1000,
            "group.consumer.min.session.timeout.ms": 1000,
            "group.consumer.session.timeout.ms": 6000,
            "group.consumer.heartbeat.interval.ms": 500,
            "group.consumer.min.heartbeat.interval.ms": 100,
            # Retention and compaction are looked at often, so that tests see them work.
            "log.retention.check.interval.ms": 500,
            "log.cleaner.backoff.ms": 200,
            "log.initial.task.delay.ms": 500,
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            "num.network.threads": 2,
            "num.io.threads": 2,
            "log.segment.bytes": 64 << 20,
            "log.index.size.max.bytes": 1 << 20,
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())


def main() -> int:
    """Run one command of the module's description."""
    parser = argparse.ArgumentParser(description="Apache Kafka for tests")
    parser.add_argument("command", choices=["fetch", "start", "kill", "restart", "stop"])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("node", type=int, nargs="?")
    parser.add_argument("--nodes", type=int, choices=[1, 3], default=1)
    options = parser.parse_args()
    if options.command == "fetch":
        fetch()
        return 0
    if options.folder is None or (options.command in {"kill", "restart"} and options.node is None):
        parser.error(f"{options.command} needs a folder, and kill and restart a node")
    if options.command == "start":
        cluster = Cluster.create(options.folder.resolve(), options.nodes)
        cluster.start()
        print(cluster.bootstrap)
        return 0
    cluster = Cluster(options.folder.resolve())
    if options.command == "kill":
        cluster.kill(options.node)
    elif options.command == "restart":
        cluster.start_node(options.node)
        cluster.wait_ready([options.node])
    else:
        cluster.stop()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NoBroker as error:
        sys.exit(f"error: {error}")
