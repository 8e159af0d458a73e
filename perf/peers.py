"""The peers of AUCRO: prequential AUC beside River's logistic regression, and microseconds an event by width.

    python perf/peers.py [folder of data sets]

Every learner runs with its defaults on raw values; River's is ``StandardScaler | LogisticRegression`` with its own.
"""

import gzip
import sys
import time
from pathlib import Path

import numpy as np
from river import linear_model, preprocessing
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import log_loss, roc_auc_score

from streamlearn import FSAUC, HingeReject, LogisticReject, OAMgd, OAMseq

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
LEARNERS = (LogisticReject, HingeReject, FSAUC, OAMseq, OAMgd)
MAX_ROWS = 20_000
WIDTHS = (8, 54, 123, 300, 1000)


def read_csv(path, positive):
    with gzip.open(path, "rt") as file:
        table = np.genfromtxt(file, delimiter=",", skip_header=1, max_rows=MAX_ROWS)
    return np.ascontiguousarray(table[:, :-1]), positive(table[:, -1])


def read_libsvm(path, n_features, *, shuffle=False):
    with gzip.open(path) as file:
        X, y = load_svmlight_file(file, n_features=n_features)
    order = np.random.default_rng(0).permutation(len(y))[:MAX_ROWS] if shuffle else slice(MAX_ROWS)
    return X[order].toarray(), y[order] > 0


def data_sets(folder):
    yield "diabetes", *read_csv(folder / "diabetes.csv.gz", lambda y: y > 0)
    yield "german_numer", *read_csv(folder / "german_numer.csv.gz", lambda y: y > 0)
    yield "fourclass", *read_csv(folder / "fourclass.csv.gz", lambda y: y > 0)
    yield "splice", *read_csv(folder / "splice.csv.gz", lambda y: y > 0)
    yield "letter", *read_csv(folder / "letter.csv.gz", lambda y: y <= 13)
    yield "a9a", *read_libsvm(folder / "a9a.libsvm.gz", 123)
    # The file comes in blocks of rows of one class.
    yield "w8a shuffled", *read_libsvm(folder / "w8a.libsvm.gz", 300, shuffle=True)
    yield "electricity", *read_csv(folder / "electricity.csv.gz", lambda y: y > 0)
    yield "noaa_weather", *read_csv(folder / "noaa_weather.csv.gz", lambda y: y > 0)


def river_forecasts(X, y):
    """Return P(positive) of each row before it was learned, and seconds."""
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    p = np.empty(len(X))
    began = time.perf_counter()
    for i, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        x = dict(enumerate(row))
        p[i] = model.predict_proba_one(x).get(True, 0.5)
        model.learn_one(x, label)
    return p, time.perf_counter() - began


def our_forecasts(learner, X, y):
    """Return scores and P(positive) of each row before it was learned, and seconds."""
    names = tuple(range(X.shape[1]))
    began = time.perf_counter()
    tested = learner.test_then_learn_columns(names, X, y)
    return tested.scores, tested.probabilities, time.perf_counter() - began


def compile_all():
    X, y = np.arange(8.0).reshape(4, 2), np.array([True, False, True, False])
    for make in LEARNERS:
        our_forecasts(make(), X, y)


def accuracy(folder):
    print(f"prequential AUC / log-loss, first {MAX_ROWS} rows at most, defaults, raw values")
    print(f"{'set':14s}{'rows':>7s}{'width':>6s}{'River LR':>16s}" + "".join(f"{m.__name__:>16s}" for m in LEARNERS))
    for name, X, y in data_sets(folder):
        p, _ = river_forecasts(X, y)
        cells = [f"{roc_auc_score(y, p):.4f} / {log_loss(y, p):.3f}"]
        for make in LEARNERS:
            scores, chances, _ = our_forecasts(make(), X, y)
            cells.append(f"{roc_auc_score(y, scores):.4f} / {log_loss(y, chances):.3f}")
        print(f"{name:14s}{len(X):7d}{X.shape[1]:6d}" + "".join(f"{cell:>16s}" for cell in cells), flush=True)


def speed():
    print(
        "\nmicroseconds an event, forecast and learn: River one by one; ours in one batch, then one by one from dicts"
    )
    print(f"{'width':14s}{'River LR':>16s}" + "".join(f"{m.__name__:>16s}" for m in LEARNERS))
    for m in WIDTHS:
        rng = np.random.default_rng(m)
        n = max(500, min(20_000, 400_000 // m))
        X = rng.normal(size=(n, m))
        y = rng.random(n) < 1 / (1 + np.exp(-X[:, : min(m, 8)].sum(axis=1)))
        few = max(100, 20_000 // m)
        cells = [f"{river_forecasts(X[:few], y[:few])[1] / few * 1e6:.1f}"]
        for make in LEARNERS:
            batch = our_forecasts(make(), X, y)[2] / n * 1e6
            cells.append(f"{batch:.2f} {one_by_one(make(), X[:few], y[:few]) / few * 1e6:.1f}")
        print(f"{m:<14d}" + "".join(f"{cell:>16s}" for cell in cells), flush=True)


def one_by_one(learner, X, y):
    events = [
        ({f"f{j}": v for j, v in enumerate(row)}, label) for row, label in zip(X.tolist(), y.tolist(), strict=True)
    ]
    learner.learn_one(*events[0])
    began = time.perf_counter()
    for x, label in events:
        learner.score_one(x)
        learner.learn_one(x, label)
    return time.perf_counter() - began


if __name__ == "__main__":
    compile_all()
    accuracy(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA)
    speed()
