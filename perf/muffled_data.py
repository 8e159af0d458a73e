"""Real data sets for the muffled benchmarks: dense features and labels 1 / -1."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t
from sklearn.datasets import load_digits, load_svmlight_file

DATA = Path(os.environ.get("STREAMLEARN_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
_MOST_ROWS = 50_000


def _libsvm(name: str, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_svmlight_file(str(DATA / f"{name}.libsvm.gz"), n_features=n_features)
    return X, y


def _csv(name: str, label=lambda v: v == 1) -> tuple[np.ndarray, np.ndarray]:
    frame = pd.read_csv(DATA / f"{name}.csv.gz")
    return frame.drop(columns="label"), np.where(label(frame["label"].to_numpy()), 1.0, -1.0)


def _thinned(X, y, most: int = _MOST_ROWS):
    """Return evenly spaced rows, at most so many."""
    step = max(1, -(-len(y) // most))
    return X[::step], y[::step]


def _one_hot(frame) -> np.ndarray:
    return pd.get_dummies(frame.astype("category")).to_numpy(dtype=float)


def coded(frame: pd.DataFrame) -> np.ndarray:
    """Return a table without a label as numbers: names of carriers, protocols and so on count as such.

    The delays of a flight are left out: they are known when its label is.
    """
    frame = frame.drop(columns=["dep_delay", "arr_delay"], errors="ignore")
    text = frame.select_dtypes(exclude="number").columns
    frame[text] = frame[text].apply(lambda column: column.astype("category").cat.codes)
    return frame.to_numpy(dtype=float)


LIBSVM_WIDTHS = {
    "a9a": 123,
    "w8a": 300,
    "phishing": 68,
    "connect4": 126,
    "ssl_text": 11960,
    "spam_stream": 39916,
}
SPAM_WORDS = 1000


def _sparse(name: str) -> tuple[np.ndarray, np.ndarray]:
    X, y = _libsvm(name, LIBSVM_WIDTHS[name])
    if name == "spam_stream":
        # The commonest words of the first tenth of the stream; nothing is known of the rest at that time.
        seen = np.asarray((X[: len(y) // 10] != 0).sum(axis=0)).ravel()
        X = X[:, np.sort(np.argsort(-seen, kind="stable")[:SPAM_WORDS])]
    X, y = _thinned(X, y)
    return X.toarray(), y


def _special(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "a1a":
        (A, a), (B, b) = _libsvm("a1a", 123), _libsvm("a1a_test", 123)
        return np.vstack([A.toarray(), B.toarray()]), np.concatenate([a, b])
    if name == "splice_letters":
        frame, y = _csv("splice")
        return _one_hot(frame), y
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X, np.where(y >= 5, 1.0, -1.0)
    frame, y = _csv("covtype", lambda v: v == 2)
    frame, y = _thinned(frame, y)
    kinds = ["wilderness", "soil"]
    return np.hstack([frame.drop(columns=kinds).to_numpy(dtype=float), _one_hot(frame[kinds])]), y


@cache
def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return X float64[n, m] and y float64[n] in {1, -1}, rows in the order of the file."""
    if name in LIBSVM_WIDTHS:
        X, y = _sparse(name)
    elif name in ("a1a", "digits", "splice_letters", "covtype"):
        X, y = _special(name)
    else:
        frame, y = _csv(name, (lambda v: v <= 13) if name == "letter" else (lambda v: v == 1))
        X = _one_hot(frame) if name == "ssl_secstr" else frame.to_numpy(dtype=float)
    return X, np.where(y > 0, 1.0, -1.0)


@cache
def splits(name: str) -> dict[int, list[np.ndarray]]:
    """Return the labelled rows of the published splits by number of labels; empty where there are none."""
    path = DATA / f"{name}_splits.csv.gz"
    if not path.exists():
        return {}
    frame = pd.read_csv(path)
    return {
        int(n): [part["row"].to_numpy() for _, part in group.groupby("split")]
        for n, group in frame.groupby("n_labeled")
    }


def trial(name: str, n_labels: int, seed: int, n_unlabelled: int = 2000, n_test: int = 3000):
    """Return labelled rows, their labels, unlabelled rows, test rows and their labels of one random trial."""
    X, y = load(name)
    own = splits(name).get(n_labels)
    rng = np.random.default_rng([seed, n_labels])
    if own is not None:
        labelled = own[seed % len(own)]
        rest = rng.permutation(np.setdiff1d(np.arange(len(y)), labelled))
    else:
        rows = rng.permutation(len(y))
        while min((y[rows[:n_labels]] > 0).sum(), (y[rows[:n_labels]] < 0).sum()) < 2:
            rows = rng.permutation(len(y))  # a sample of one class teaches no method anything
        labelled, rest = rows[:n_labels], rows[n_labels:]
    n_test = min(n_test, len(rest) * 3 // 5)
    test, unlabelled = rest[:n_test], rest[n_test : n_test + n_unlabelled]
    return X[labelled], y[labelled], X[unlabelled], X[test], y[test]


def interval(differences) -> tuple[float, float]:
    """Return mean and half width of the 95 % interval of paired differences."""
    d = np.asarray(differences, dtype=float)
    if len(d) < 2:
        return float(d.mean()), float("nan")
    return float(d.mean()), float(t.ppf(0.975, len(d) - 1) * d.std(ddof=1) / np.sqrt(len(d)))
