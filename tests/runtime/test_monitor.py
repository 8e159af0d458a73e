"""The monitor: what it tells is what the loop did, it says when a job is stuck, and it answers nobody it should not."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import msgspec
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from streamlearn.errors import BadJob
from streamlearn.runtime import monitor as module
from streamlearn.runtime.job import read_job
from streamlearn.runtime.monitor import TOKEN, Monitor
from streamlearn.runtime.sections import MonitorSection
from streamlearn.runtime.view import MAX_SAMPLES, History, LearnerView, Rate, View

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DEMOS = Path(__file__).parent.parent.parent / "demos"
N_EVENTS, N_BAD = 3000, 3
JOB = """
name = "watched"
[source]
kind = "ndjson"
path = "events.ndjson"
follow = true
[features]
label = "y"
[[learner]]
name = "AUCRO"
title = "<b>first</b>"
reject_cost = 0.3
[[learner]]
name = "OPAUC"
[evaluate]
window = 500
metrics = ["auc", "logloss"]
drift = "adwin"
[checkpoint]
every = 500
[monitor]
port = 0
"""


def write_events(path: Path) -> None:
    rng = np.random.default_rng(5)
    rows = []
    for i in range(N_EVENTS):
        y = bool(rng.random() < 0.3)
        rows.append({"a": round(rng.normal() + y, 3), "b": "text" if i % 1000 == 500 else 1.0, "y": y})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """Start a job that follows a file, in a process of its own, and return the address of its page."""
    folder = tmp_path_factory.mktemp("watched")
    write_events(folder / "events.ndjson")
    (folder / "job.toml").write_text(JOB)
    command = [sys.executable, "-m", "streamlearn.runtime.cli", "run", str(folder / "job.toml")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = None
        while found is None:
            line = process.stderr.readline()
            assert line, "the job ended before it said where to look"
            found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        while json.loads(get(found[0] + "data.json")[2])["view"] is None or events_at(found[0]) < N_EVENTS:
            assert process.poll() is None
        yield found[0]
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
    assert process.returncode == 130


def get(address: str, **headers: str) -> tuple[int, dict[str, str], str]:
    request = urllib.request.Request(address, headers=headers)  # noqa: S310  an address of this test
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read().decode()


def events_at(address: str) -> int:
    return json.loads(get(address + "data.json")[2])["view"]["events"]


def test_the_metrics_are_what_the_job_did(url):
    status, headers, text = get(url + "metrics")

    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=")
    found = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["streamlearn_events_total",] == N_EVENTS
    assert found["streamlearn_bad_events_total", "value"] == N_BAD
    assert found["streamlearn_measured_events_total", "OPAUC"] == N_EVENTS - N_BAD
    assert 0 < found["streamlearn_abstained_events_total", "<b>first</b>"] < N_EVENTS
    assert found["streamlearn_abstained_events_total", "OPAUC"] < 20  # until both labels were seen
    assert 0.7 < found["streamlearn_metric", "OPAUC", "auc"] < 0.8
    assert found["streamlearn_checkpoint_seconds",] > 0.0
    assert found["streamlearn_healthy",] == 1.0
    assert found["streamlearn_lead", "<b>first</b>"] == 1.0
    assert found["streamlearn_lead", "OPAUC"] == 0.0
    assert found["streamlearn_drifts_total", "OPAUC"] >= 0.0


def test_the_grafana_dashboard_asks_for_metrics_that_there_are(url):
    offered = {family.name for family in text_string_to_metric_families(get(url + "metrics")[2])}
    board = json.loads((DEMOS / "grafana.json").read_text())

    asked = {
        name.removesuffix("_total")
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"streamlearn_\w+", target["expr"])
    }
    assert asked <= offered
    assert len(asked) >= 15


@pytest.mark.parametrize("probe", ["healthz", "readyz"])
def test_a_job_that_waits_for_input_is_well(url, probe):
    status, _, text = get(url + probe)

    assert status == 200
    assert json.loads(text) == {"healthy": True, "ready": True, "problems": []}


def test_the_page_may_run_its_own_script_alone_and_load_nothing_from_elsewhere(url):
    status, headers, text = get(url)

    assert status == 200
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'sha256-")
    assert not re.findall(r"(?:src|href)=\"(?!data:)", text)
    assert "innerHTML" not in text


@pytest.mark.parametrize(
    ("path", "host", "status"), [("data.json", "elsewhere.example", 403), ("nothing", "localhost", 404)]
)
def test_other_names_and_other_paths_are_refused(url, path, host, status):
    assert get(url + path, Host=host)[0] == status


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_the_page_shows_the_job_in_a_browser(url, tmp_path):
    picture = tmp_path / "page.png"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    options += ["--virtual-time-budget=4000", "--window-size=1240,1600", f"--user-data-dir={tmp_path / 'profile'}"]

    shown = subprocess.run(
        [CHROMIUM, *options, "--dump-dom", url], capture_output=True, text=True, timeout=60, check=True
    )
    subprocess.run([CHROMIUM, *options, f"--screenshot={picture}", url], capture_output=True, timeout=60, check=True)

    assert 'class="good">running' in shown.stdout
    assert f"<b>{N_EVENTS:,}</b>" in shown.stdout
    assert "&lt;b&gt;first&lt;/b&gt;<b> goes out</b>" in shown.stdout
    assert shown.stdout.count("<rect") == 160  # two classes of two learners, 40 bins each
    assert "events.ndjson, event 2500: value" in shown.stdout
    assert "CONSOLE" not in shown.stderr
    assert picture.stat().st_size > 30_000


class Clock:
    """Stands for the clock of the monitor."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    time = monotonic


class StillLoop:
    """A loop that took `events`; nothing of it is looked at but what a view needs."""


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module, "look", lambda *_: a_view(1))
    return clock


def a_view(events: int, *, time_s: float = 0.0, lag: int = 0, abstained: int = 0, trouble: str = "") -> View:
    learner = LearnerView("one", "AUCRO", events, events, abstained, 0.1, {"auc": 0.7}, None, None, [0], [0])
    return View(
        "job",
        0.0,
        time_s,
        events,
        10.0,
        {},
        [],
        trouble,
        {"p": lag} if lag else {},
        0,
        {},
        0,
        None,
        None,
        [learner],
        "one",
    )


def polled(monitor: Monitor) -> None:
    loop = StillLoop()
    loop.events = 1
    monitor.polled(loop)


def test_a_loop_that_is_not_heard_of_is_stuck(clock):
    with Monitor(MonitorSection(port=0, stuck_s=60.0), "job") as monitor:
        assert (monitor.health().healthy, monitor.health().ready) == (True, False)
        polled(monitor)
        clock.now += 59.0
        assert monitor.health().ready
        clock.now += 2.0
        assert monitor.health().problems == ["nothing was heard of the loop for 61 s"]
        assert get(monitor.url + "healthz")[0] == 503
        assert get(monitor.url + "readyz")[0] == 503
        polled(monitor)
        assert monitor.health().healthy


def test_a_job_that_takes_nothing_while_there_is_something_is_stuck(clock, monkeypatch):
    monkeypatch.setattr(module, "look", lambda *_: a_view(1, lag=1200))
    with Monitor(MonitorSection(port=0, stuck_s=60.0), "job") as monitor:
        clock.now += 61.0
        polled(monitor)
        assert monitor.health().problems == ["1,200 events are there, but none was taken for 61 s"]
        monitor.moved(StillLoop())
        assert monitor.health().healthy


def test_labels_whose_time_has_not_come_are_no_sign_of_trouble(clock, monkeypatch):
    view = msgspec.structs.replace(a_view(1), lag={"labels:arrivals/0": 9, "flights/0": 0})
    monkeypatch.setattr(module, "look", lambda *_: view)
    with Monitor(MonitorSection(port=0, stuck_s=60.0), "job") as monitor:
        clock.now += 61.0
        polled(monitor)
        assert monitor.health().healthy


def test_a_job_whose_checkpoints_do_not_come_is_stuck(clock, monkeypatch):
    monkeypatch.setattr("streamlearn.runtime.view.time", clock)
    with Monitor(MonitorSection(port=0, stuck_s=60.0), "job", checkpoint_every_s=5.0) as monitor:
        loop = StillLoop()
        loop.events = 1
        monitor.saved(loop, 0.01)
        clock.now += 74.0
        polled(monitor)
        assert monitor.health().healthy
        clock.now += 2.0
        assert monitor.health().problems == ["the newest checkpoint is 76 s old"]


def test_a_job_that_lost_its_input_is_healthy_but_not_ready(clock, monkeypatch):
    monkeypatch.setattr(module, "look", lambda *_: a_view(1, trouble="no broker answers"))
    with Monitor(MonitorSection(port=0), "job") as monitor:
        polled(monitor)
        health = monitor.health()

    assert (health.healthy, health.ready, health.problems) == (True, False, ["no broker answers"])


def test_an_open_address_needs_a_token(monkeypatch):
    monkeypatch.setenv(TOKEN, "short")
    with pytest.raises(BadJob, match=r"monitor\.host: must be a loopback address unless .* got '0\.0\.0\.0'"):
        Monitor(MonitorSection(port=0, host="0.0.0.0"), "job")  # noqa: S104  what is refused


def test_with_a_token_only_the_probes_answer_without_it(monkeypatch, capfd):
    monkeypatch.setenv(TOKEN, "0123456789abcdef-secret")
    with Monitor(MonitorSection(port=0), "job") as monitor:
        assert get(monitor.url + "data.json")[0] == 401
        assert get(monitor.url + "metrics", Authorization="Bearer wrong")[0] == 401
        assert get(monitor.url + "metrics", Authorization="Bearer 0123456789abcdef-secret")[0] == 200
        assert get(monitor.url + "?token=0123456789abcdef-secret")[0] == 200
        assert get(monitor.url + "healthz")[0] == 200

    assert "secret" not in "".join(capfd.readouterr())


def test_a_port_that_is_taken_is_named(monkeypatch):
    with Monitor(MonitorSection(port=0), "job") as monitor:
        port = int(monitor.url.rsplit(":", 1)[1].strip("/"))
        with pytest.raises(BadJob, match=f"monitor.port: must be free, got {port}"):
            Monitor(MonitorSection(port=port), "job")


def test_the_other_loopback_address_works_too():
    with Monitor(MonitorSection(port=0, host="::1"), "job") as monitor:
        assert monitor.url.startswith("http://[::1]:")
        assert get(monitor.url + "healthz")[0] == 200


def test_the_history_is_bounded_and_keeps_the_newest_and_even_distances():
    history = History(1.0)
    for second in range(2000):
        history.add(a_view(10 * second, time_s=float(second), abstained=3 * second))

    times = [sample.time_s for sample in history.samples]
    assert MAX_SAMPLES // 2 <= len(times) <= MAX_SAMPLES
    assert set(np.diff(times)) == {16.0}
    assert times[-1] > 1980
    assert history.samples[-1].learners == [([0.7], pytest.approx(0.3))]
    assert msgspec.json.encode(history.samples)


def test_the_rate_is_that_of_the_last_seconds():
    rate = Rate()

    assert rate.at(0.0, 0) == 0.0
    assert rate.at(5.0, 500) == 100.0
    assert rate.at(20.0, 500) == 0.0
    assert rate.at(25.0, 1500) == 50.0  # since the last count from before the last ten seconds


def test_the_section_is_read(tmp_path):
    write_events(tmp_path / "events.ndjson")
    path = tmp_path / "job.toml"
    path.write_text(JOB.replace("port = 0", 'port = 9100\nhost = "::1"\nstuck_s = 5'))

    assert read_job(path).monitor == MonitorSection(port=9100, host="::1", stuck_s=5.0)
