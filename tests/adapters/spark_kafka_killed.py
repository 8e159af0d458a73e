"""Learns a topic as a Spark stream in a process that a test may kill: FOLDER BOOTSTRAP TOPIC.

While FOLDER/kill is there, the first task that reads kills the executor it runs in.
"""

import os
import signal
import sys
import time
from pathlib import Path

from pyspark.sql.functions import col, from_json
from streamlearn.adapters.spark import open_session
from streamlearn.adapters.spark_kafka import register_topics
from streamlearn.adapters.spark_stream import StreamLearner, learn_stream

from streamlearn import AUCRO


def passing(flag: str):
    def work(batches):
        from tests.runtime.round_tasks import spark_executor

        for batch in batches:
            try:
                Path(flag).unlink()  # one task is the first
            except FileNotFoundError:
                yield batch
            else:
                os.kill(spark_executor(), signal.SIGKILL)
                time.sleep(60.0)  # it dies meanwhile

    return work


def learn(session, folder: Path, bootstrap: str, topic: str) -> str:
    """Learn the messages that are there and not learned yet; return the counts."""
    register_topics(session)
    given = {"topics": topic, "kafka.bootstrap.servers": bootstrap, "max_messages": "200"}
    messages = session.readStream.format("streamlearn-kafka").options(**given).load()
    fields = "a double, b double, c double, y int"
    rows = messages.select(from_json(col("value").cast("string"), fields).alias("row")).select("row.*")
    rows = rows.mapInArrow(passing(str(folder / "kill")), fields)
    learner = StreamLearner(AUCRO(clip=None), folder / "state", label="y", merge="mean")
    learn_stream(rows, learner, availableNow=True).awaitTermination()
    learner.learner.save(folder / "model.safetensors")
    return f"epochs {learner.epoch + 1} rows {learner.rows}"


if __name__ == "__main__":
    opened = open_session("local-cluster[2,1,1024]")
    opened.sparkContext.setLogLevel("ERROR")
    print(learn(opened, Path(sys.argv[1]), *sys.argv[2:]))
    opened.stop()
