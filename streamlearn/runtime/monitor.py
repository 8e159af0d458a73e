"""Looking at a running job over HTTP: a live page, Prometheus metrics, and whether the job gets on.

The loop's thread makes a view of the job once a second; the server's threads only read the newest one. Nothing that
comes in over the network changes anything.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import os
import re
import socket
import threading
import time
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Self
from urllib.parse import parse_qs, urlsplit

import msgspec

from streamlearn.errors import BadJob
from streamlearn.runtime.due import LABELS
from streamlearn.runtime.exposition import CONTENT_TYPE, metrics_text
from streamlearn.runtime.loop import Loop
from streamlearn.runtime.sections import MonitorSection
from streamlearn.runtime.view import Checkpoints, History, Rate, View, look

VIEW_EVERY_S = 1.0
TOKEN = "STREAMLEARN_MONITOR_TOKEN"  # noqa: S105  the name of the variable, not what is in it
MIN_TOKEN = 16


class Health(msgspec.Struct, frozen=True):
    """Whether the job gets on.

    Attributes
    ----------
    healthy, ready : bool
        Ready is healthy, behind the start, where a resumed job finds its place, and in touch with its input. A job that
        is not in touch tries again by itself: it is healthy.
    problems : list of str
    """

    healthy: bool
    ready: bool
    problems: list[str]


class Monitor:
    """A watch of the loop that answers over HTTP.

    Parameters
    ----------
    section : MonitorSection
    job : str
        Name of the job.
    checkpoint_every_s : float
        Seconds between two checkpoints; infinite where there are none.

    Raises
    ------
    BadJob
        The address cannot be listened on, or is open to others and there is no token.
    """

    def __init__(self, section: MonitorSection, job: str, checkpoint_every_s: float = float("inf")) -> None:
        self._section = section
        self._job = job
        self._checkpoint_every_s = checkpoint_every_s
        self._started_s = time.time()
        self._beat_s = self._moved_s = self._viewed_s = time.monotonic()
        self._begun = False
        self._checkpoints = Checkpoints()
        self._rate = Rate()
        self.history = History(VIEW_EVERY_S)
        self.view: View | None = None
        self._server = _listen(section, self)
        self._thread = threading.Thread(target=self._server.serve_forever, name="streamlearn-monitor", daemon=True)

    @property
    def url(self) -> str:
        """Address of the page."""
        host, port = self._section.host, self._server.server_address[1]
        return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    # What the loop tells

    def resumed(self, events: int) -> None:
        """Do nothing: the first view tells."""

    def moved(self, loop: Loop) -> None:
        """Take note that the job gets on."""
        self._moved_s = time.monotonic()

    def polled(self, loop: Loop) -> None:
        """Take note that the job is alive; look at it once a second."""
        self._beat_s = now = time.monotonic()
        self._begun = True
        if self.view is None or now - self._viewed_s >= VIEW_EVERY_S:
            self._viewed_s = now
            self._look(loop, now)

    def saved(self, loop: Loop, seconds: float) -> None:
        """Take note of a checkpoint."""
        self._checkpoints.saved(seconds)
        self._look(loop, time.monotonic())

    def _look(self, loop: Loop, now_s: float) -> None:
        rate = self._rate.at(now_s, loop.events)
        self.view = look(loop, self._job, self._started_s, rate, self._checkpoints)
        self.history.add(self.view)

    # What the server asks

    def health(self) -> Health:
        """Return whether the job gets on; a job that is alive but stuck is not healthy."""
        now, limit, view = time.monotonic(), self._section.stuck_s, self.view
        problems = []
        if now - self._beat_s > limit:
            problems.append(f"nothing was heard of the loop for {now - self._beat_s:.0f} s")
        lag = 0
        if view is not None:  # labels may rightly wait for their time
            lag = sum(n for partition, n in view.lag.items() if not partition.startswith(LABELS))
        if lag and now - self._moved_s > limit:
            problems.append(f"{lag:,} events are there, but none was taken for {now - self._moved_s:.0f} s")
        if overdue := self._overdue_s(limit):
            problems.append(f"the newest checkpoint is {overdue:.0f} s old")
        healthy = not problems
        if view is not None and view.trouble:
            problems.append(view.trouble)
        return Health(healthy, self._begun and not problems, problems)

    def _overdue_s(self, limit: float) -> float:
        """Return the age of the newest checkpoint where one should have been made long ago, else 0."""
        at_s = self._checkpoints.at_s
        age = time.time() - (self._started_s if at_s is None else at_s)
        return age if self._begun and age > 3.0 * self._checkpoint_every_s + limit else 0.0

    def page_data(self) -> bytes:
        """Return view, history and health as JSON, for the page."""
        document = {"view": self.view, "history": self.history.samples, "health": self.health()}
        return msgspec.json.encode(document)

    def metrics(self) -> bytes:
        """Return the metrics; nothing before the first view."""
        view = self.view
        return b"" if view is None else metrics_text(view, healthy=self.health().healthy)


class _Server(ThreadingHTTPServer):
    daemon_threads = True


class _Server6(_Server):
    address_family = socket.AF_INET6


def _listen(section: MonitorSection, monitor: Monitor) -> ThreadingHTTPServer:
    token = os.environ.get(TOKEN, "")
    if not _is_loopback(section.host) and len(token) < MIN_TOKEN:
        raise BadJob(
            f"monitor.host: must be a loopback address unless the environment variable {TOKEN} holds a token of "
            f"{MIN_TOKEN} or more characters, got {section.host!r}"
        )
    handler = type("Handler", (_Handler,), {"monitor": monitor, "token": token, "names": _names(section.host)})
    try:
        server = (_Server6 if ":" in section.host else _Server)((section.host, section.port), handler)
    except OSError as error:
        raise BadJob(f"monitor.port: must be free, got {section.port}: {error}") from error
    return server


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _names(host: str) -> frozenset[str]:
    """Return what the header Host may say: else a page elsewhere could read this one under a name of its own."""
    return frozenset({"localhost", "127.0.0.1", "[::1]", host}) if _is_loopback(host) else frozenset()


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    monitor: Monitor
    token: str
    names: frozenset[str]
    server_version = "streamlearn"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 10

    def do_GET(self) -> None:
        """Answer one request."""
        path = urlsplit(self.path).path
        if self.names and re.sub(r":\d+$", "", self.headers.get("Host", "")) not in self.names:
            self._answer(HTTPStatus.FORBIDDEN, b"unknown host\n", "text/plain")
        elif path in _PROBES:
            self._probe(_PROBES[path])
        elif not self._is_allowed():
            self._answer(HTTPStatus.UNAUTHORIZED, b"a token is needed\n", "text/plain")
        elif path == "/":
            self._answer(HTTPStatus.OK, *_page())
        elif path == "/data.json":
            self._answer(HTTPStatus.OK, self.monitor.page_data(), "application/json")
        elif path == "/metrics":
            self._answer(HTTPStatus.OK, self.monitor.metrics(), CONTENT_TYPE)
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"not found\n", "text/plain")

    def _is_allowed(self) -> bool:
        if not self.token:
            return True
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        given = given or parse_qs(urlsplit(self.path).query).get("token", [""])[0]
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _probe(self, good: Callable[[Health], bool]) -> None:
        health = self.monitor.health()
        status = HTTPStatus.OK if good(health) else HTTPStatus.SERVICE_UNAVAILABLE
        self._answer(status, msgspec.json.encode(health) + b"\n", "application/json")

    def _answer(self, status: HTTPStatus, body: bytes, kind: str, policy: str = "default-src 'none'") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent: a request line may hold the token."""


_PROBES: dict[str, Callable[[Health], bool]] = {
    "/healthz": lambda health: health.healthy,
    "/readyz": lambda health: health.ready,
}


@cache
def _page() -> tuple[bytes, str, str]:
    """Return the page, its type, and a policy under which nothing but its own script and style runs."""
    text = files("streamlearn.runtime").joinpath("page/index.html").read_text(encoding="utf-8")
    script, style = (_hash(text, tag) for tag in ("script", "style"))
    policy = f"default-src 'none'; script-src '{script}'; style-src '{style}'; connect-src 'self'; img-src data:"
    return text.encode(), "text/html; charset=utf-8", policy


def _hash(text: str, tag: str) -> str:
    found = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    assert found is not None  # noqa: S101  the page is ours
    return "sha256-" + base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
