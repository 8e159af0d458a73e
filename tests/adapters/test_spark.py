"""Rounds, data frames and streams on a real Spark cluster of two executors; all tests share it."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="needs pyspark: pip install 'streamlearn[spark]'")
if shutil.which("java") is None:
    pytest.skip("needs Java 17 or newer on the path", allow_module_level=True)

from confluent_kafka.admin import OffsetSpec
from streamlearn.adapters.spark import SparkExecutor, fit, open_session

from streamlearn import AUCRO, ORLPCA, ORLRegressor
from streamlearn.errors import BadParameter, SourceError
from streamlearn.learners.merging import merge_learners
from streamlearn.learners.registry import from_state
from streamlearn.runtime.executor import LocalExecutor
from streamlearn.runtime.rounds import Part
from tests.adapters import spark_kafka_killed, spark_killed
from tests.runtime.round_tasks import Deadly, Failing, Learned, Muffled, Summed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),  # pyspark's own
]
ROOT = Path(__file__).parents[2]
LONGEST_S = 600  # of a process that takes half a minute where nothing else runs
PARTS = [Part(k, "seed", k, 300) for k in range(5)]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    # Workers need the tasks of these tests, but not the sources beside them, which lack the adapters.
    path = tmp_path_factory.mktemp("path")
    (path / "tests").symlink_to(ROOT / "tests")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(path), os.environ.get("PYTHONPATH", "")])
    with contextlib.chdir(path):  # the driver's own workers look where it was started first
        opened = open_session("local-cluster[2,1,1024]", {"spark.sql.shuffle.partitions": "2"})
    opened.sparkContext.setLogLevel("ERROR")
    yield opened
    opened.stop()


@pytest.fixture(scope="module")
def local():
    with LocalExecutor(2) as executor:
        yield executor


def rows(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ [1.0, -1.0, 0.5] + rng.normal(size=n)


def frame(session, X, y, n_parts):
    data = [(*map(float, x), label) for x, label in zip(X, y, strict=True)]
    return session.createDataFrame(data, ["a", "b", "c", "y"]).repartition(n_parts)


def same(one, other):
    assert one.keys() == other.keys()
    for key, value in one.items():
        equal = np.array_equal(value, other[key]) if isinstance(value, np.ndarray) else value == other[key]
        assert equal, key


def test_models_equal_those_of_the_process_pool_bit_for_bit(session, local):
    spark = SparkExecutor(session)
    for task, model in ((Learned(), None), (Summed(), {"factor": 2.0})):
        for a, b in zip(spark.run_round(task, PARTS, model), local.run_round(task, PARTS, model), strict=True):
            same(a, b)
    merged = [
        merge_learners([from_state(state) for state in executor.run_round(Learned(), PARTS)]).model
        for executor in (spark, local)
    ]
    same(merged[0].state(), merged[1].state())


def test_muffled_learners_are_merged_into_the_same_model_as_in_the_process_pool(session, local):
    merged = [
        merge_learners([from_state(state) for state in executor.run_round(Muffled(), PARTS[:3])]).model
        for executor in (SparkExecutor(session), local)
    ]
    assert merged[0].vote_names == ("part 1", "part 2", "part 3")
    same(merged[0].state(), merged[1].state())


def test_a_lost_python_worker_means_the_same_part_again(session, tmp_path):
    found = SparkExecutor(session).run_round(Deadly(str(tmp_path)), PARTS)
    assert [one["part"] for one in found] == [0, 1, 2, 3, 4]
    assert len(list(tmp_path.iterdir())) == 1


def test_an_executor_killed_in_the_middle_of_a_round_means_its_parts_again(session, local, tmp_path):
    found = SparkExecutor(session).run_round(Deadly(str(tmp_path), executor=True), PARTS)
    assert [one["part"] for one in found] == [0, 1, 2, 3, 4]
    assert len(list(tmp_path.iterdir())) == 1
    again = SparkExecutor(session).run_round(Learned(), PARTS)
    for a, b in zip(again, local.run_round(Learned(), PARTS), strict=True):
        same(a, b)


def test_what_a_part_raises_is_told(session):
    with pytest.raises(Exception, match="part 2 is not to be had"):
        SparkExecutor(session).run_round(Failing(), PARTS)


def test_a_data_frame_gives_the_model_of_one_process(session):
    X, y = rows()
    labels = (y > 0).tolist()
    found = fit(AUCRO(clip=None), frame(session, X, labels, 4), label="y", merge="mean")
    assert len(found.found.shares) == 4
    whole = AUCRO(clip=None, solve_every=1)
    whole.begin(["a", "b", "c"])
    whole.learn_many([dict(zip("abc", x, strict=True)) for x in X.tolist()], labels)
    events = [dict(zip("abc", x, strict=True)) for x in X[:50].tolist()]
    scores = [found.model.score_one(event) for event in events]
    assert scores == pytest.approx([whole.score_one(event) for event in events], rel=1e-8)
    more = fit(found.model, frame(session, X, labels, 2), label="y", merge="mean").model
    assert more._moments.F[0] == 2 * len(X)


def test_poisoned_partitions_are_outvoted(session):
    X, y = rows(3600)
    part = np.arange(3600) % 9
    y[part < 4] = -20.0 * y[part < 4] + 500.0
    data = [(*map(float, x), float(t), int(p)) for x, t, p in zip(X, y, part, strict=True)]
    frames = (
        session.createDataFrame(data, ["a", "b", "c", "y", "part"]).repartitionByRange(9, "part").drop("part").cache()
    )
    learner = ORLRegressor(mode="batches", batch_size=100)
    found = fit(learner, frames, label="y")
    assert found.model.coef_ == pytest.approx([1.0, -1.0, 0.5], abs=0.2)
    assert np.count_nonzero(~found.found.trusted) == 4
    assert np.abs(fit(learner, frames, label="y", merge="mean").model.coef_ - [1.0, -1.0, 0.5]).max() > 1.0


def test_learners_without_labels_take_all_columns(session):
    X, _ = rows(2000)
    X[:, 0] *= 20.0
    data = session.createDataFrame([tuple(map(float, x)) for x in X], ["a", "b", "c"]).repartition(3)
    assert abs(fit(ORLPCA(n_components=1, batch_size=200), data).model.components_[0, 0]) > 0.99


def test_columns_that_do_not_fit_are_refused(session):
    data = session.createDataFrame([(1.0, "x", 1)], ["a", "b", "y"])
    with pytest.raises(BadParameter, match="column 'b' must be numeric, got string"):
        fit(AUCRO(), data, label="y")
    with pytest.raises(BadParameter, match="label must be one of"):
        fit(AUCRO(), data)
    with pytest.raises(BadParameter, match="label 'b' must be numeric for ORLRegressor"):
        fit(ORLRegressor(mode="batches"), data, label="b")


def kill_stream(helper, folder, *arguments, crash):
    """Learn a stream in a process of its own, which kills itself at a place."""
    environment = {**os.environ, "STREAMLEARN_CRASH_AT": crash}
    with (folder / "log").open("w") as log:
        done = subprocess.run(
            [sys.executable, helper.__file__, str(folder), *arguments],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=folder,
            check=False,
            timeout=LONGEST_S,
        )
    assert done.returncode == -signal.SIGKILL, (folder / "log").read_text()


# A start of Spark takes longer than these streams: those that nobody kills are learned in the session of all tests.


def test_a_stream_is_learned_exactly_once_though_the_driver_is_killed_around_its_checkpoint(session, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    plain, killed = tmp_path / "plain", tmp_path / "killed"
    for folder in (plain, killed):
        (folder / "in").mkdir(parents=True)
        for k in range(4):
            X, y = rows(200, seed=k)
            path = folder / "in" / f"{k}.parquet"
            pq.write_table(pa.table({**{n: X[:, j] for j, n in enumerate("abc")}, "y": (y > 0).astype(int)}), path)
            os.utime(path, (time.time() - 100 + k, time.time() - 100 + k))  # the order in which Spark takes them
    assert spark_killed.learn(session, plain) == "epochs 4 rows 800"
    # Learned and saved, not committed by Spark; then learned, not saved.
    kill_stream(spark_killed, killed, crash="before_commit:2")
    kill_stream(spark_killed, killed, crash="after_write:2")
    assert spark_killed.learn(session, killed) == "epochs 4 rows 800"
    assert (killed / "model.safetensors").read_bytes() == (plain / "model.safetensors").read_bytes()


def test_a_job_with_the_spark_engine_writes_the_model_of_the_process_pool(tmp_path):
    X, y = rows(900)
    lines = [f'{{"a": {a!r}, "b": {b!r}, "y": {int(t > 0)}}}' for (a, b, _), t in zip(X.tolist(), y, strict=True)]
    (tmp_path / "rows.ndjson").write_text("\n".join(lines) + "\n")
    (tmp_path / "job.toml").write_text(
        '[source]\nkind = "ndjson"\npath = "rows.ndjson"\n[features]\nlabel = "y"\n[[learner]]\nname = "aucro"\n'
        "[evaluate]\npicture = false\n[engine]\nparts = 4\n"
    )
    command = [sys.executable, "-m", "streamlearn.runtime.cli", "run", str(tmp_path / "job.toml"), "--fresh"]
    models = []
    for sets in (["engine.workers=1"], ["engine.kind=spark", "engine.master=local[2]"]):
        arguments = [part for one in sets for part in ("--set", one)]
        done = subprocess.run(
            [*command, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=LONGEST_S
        )
        assert done.returncode == 0, done.stderr
        models.append((tmp_path / "out" / "job.aucro.safetensors").read_bytes())
    assert models[0] == models[1]


def produce(broker, n, n_partitions=2):
    topic, producer = broker.topic(n_partitions), broker.producer()
    X, y = rows(n)
    for k, ((a, b, c), t) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        producer.produce(
            topic, f'{{"a": {a!r}, "b": {b!r}, "c": {c!r}, "y": {int(t > 0)}}}', partition=k % n_partitions
        )
    assert producer.flush(60.0) == 0
    return topic


@pytest.mark.kafka
@pytest.mark.crash
def test_topics_are_learned_exactly_once_though_executor_and_driver_are_killed(session, tmp_path, real_broker):
    topic = produce(real_broker, 600)
    plain, killed = tmp_path / "plain", tmp_path / "killed"
    for folder in (plain, killed):
        folder.mkdir()
    given = (real_broker.bootstrap, topic)
    assert spark_kafka_killed.learn(session, plain, *given) == "epochs 3 rows 600"
    # An executor in the middle of the first micro-batch, then the driver between saving the second and Spark's commit.
    (killed / "kill").touch()
    kill_stream(spark_kafka_killed, killed, *given, crash="before_commit:2")
    assert not (killed / "kill").exists()
    assert spark_kafka_killed.learn(session, killed, *given) == "epochs 3 rows 600"
    assert (killed / "model.safetensors").read_bytes() == (plain / "model.safetensors").read_bytes()


@pytest.mark.kafka
def test_a_range_of_a_topic_is_read_as_it_stands_however_often(real_broker):
    from streamlearn.adapters.spark_kafka import Range, TopicReader

    topic = produce(real_broker, 50)
    reader = TopicReader({"topics": topic, "kafka.bootstrap.servers": real_broker.bootstrap, "max_messages": "21"})
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert sum(end["next"].values()) == 21
    ranges = reader.partitions(start, end)
    first, again = ([batch.to_pylist() for part in ranges for batch in reader.read(part)] for _ in range(2))
    assert sum(map(len, first)) == 21
    assert first == again
    assert reader.partitions(end, end) == []
    with pytest.raises(SourceError, match="must be there"):
        list(reader.read(Range(topic, 0, 1000, 1001)))


@pytest.mark.kafka
def test_messages_of_aborted_transactions_and_markers_are_passed_over(real_broker):
    from streamlearn.adapters.spark_kafka import TopicReader

    topic = real_broker.topic(1)
    producer = real_broker.producer(**{"transactional.id": topic})
    producer.init_transactions(60.0)
    for value, end in (("kept", producer.commit_transaction), ("aborted", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(60.0)
        end(60.0)
    reader = TopicReader({"topics": topic, "kafka.bootstrap.servers": real_broker.bootstrap})
    (part,) = reader.partitions(reader.initialOffset(), reader._offsets(OffsetSpec.latest()))
    assert (part.begin, part.end) == (0, 4)
    assert [row["value"] for batch in reader.read(part) for row in batch.to_pylist()] == [b"kept"]


@pytest.mark.kafka
def test_a_topic_that_was_made_anew_is_refused(real_broker):
    from streamlearn.adapters.spark_kafka import TopicReader

    topic = produce(real_broker, 4)
    reader = TopicReader({"topics": topic, "kafka.bootstrap.servers": real_broker.bootstrap})
    end = reader._offsets(OffsetSpec.latest())
    with pytest.raises(SourceError, match="it is another"):
        reader.partitions({"ids": {topic: "else"}, "next": {}}, end)
    with pytest.raises(SourceError, match="messages were lost"):
        reader.partitions({**end, "next": {f"{topic}/0": 9}}, end)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "topics must be names of topics"),
        ({"topics": "t", "start": "middle"}, "start must be 'earliest' or 'latest', got 'middle'"),
        ({"topics": "t", "max_messages": "0"}, "max_messages must be a whole number >= 1, got '0'"),
        ({"topics": "t", "bootstrap.servers": "x"}, "options must be of"),
    ],
)
def test_options_of_the_stream_that_mean_nothing_are_refused(options, message):
    from streamlearn.adapters.spark_kafka import TopicReader

    with pytest.raises(BadParameter, match=message):
        TopicReader(options)


def test_a_limit_is_shared_out_as_the_partitions_are_behind():
    from streamlearn.adapters.spark_kafka import limited

    start, end = {"t/0": 10, "t/1": 0}, {"t/0": 40, "t/1": 10, "t/2": 0}
    assert limited(start, end, None) == limited(start, end, 40) == end
    assert limited(start, end, 8) == {"t/0": 16, "t/1": 2, "t/2": 0}
    assert limited(start, end, 1) == {"t/0": 11, "t/1": 0, "t/2": 0}
