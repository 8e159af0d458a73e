"""Learns a folder of Parquet files as a stream in a process that a test may kill: FOLDER."""

import sys
from pathlib import Path

from streamlearn.adapters.spark import open_session
from streamlearn.adapters.spark_stream import StreamLearner, learn_stream

from streamlearn import AUCRO


def learn(session, folder: Path) -> str:
    """Learn what is in the folder and not learned yet; return the counts."""
    schema = session.read.parquet(str(folder / "in")).schema
    stream = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    learner = StreamLearner(AUCRO(clip=None), folder / "state", label="y", merge="mean")
    learn_stream(stream, learner, availableNow=True).awaitTermination()
    learner.learner.save(folder / "model.safetensors")
    return f"epochs {learner.epoch + 1} rows {learner.rows}"


if __name__ == "__main__":
    opened = open_session("local[2]")
    opened.sparkContext.setLogLevel("ERROR")
    print(learn(opened, Path(sys.argv[1])))
    opened.stop()
