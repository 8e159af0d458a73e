"""AUCRO and AdaptiveAUCRO on wide sparse events, by what they keep of the covariance, beside River: AUC and events/s.

    python perf/auc_wide.py [--sets NAME ...] [--forms NAME ...] [--turns N] [--plain] [--quick]
                              [--data FOLDER] [--out FOLDER]

Every case forecasts an event before it learns it, with its defaults, and sees the same events in the same order: a9a
and spam_stream in that of their files (the latter is time), w8a, whose file is sorted by class, shuffled (seed 0). So
are two further sets that ``--sets`` may name, ssl_text and connect4 (a win against the rest, three bits a square).

Ours take the rows of a CSR matrix in batches of 1000; "by columns" are the dense blocks of at most 32 MiB in which the
reader of LIBSVM text hands its rows over, made before the clock runs. River's ``LogisticRegression`` takes them one by
one as dicts made before the clock runs: with the nonzeros alone, the same behind its ``MaxAbsScaler`` (which leaves
these zeros and ones as they are), and behind its ``StandardScaler``, which needs the zeros written out; this one not on
spam_stream, where one such dict has 39,916 entries. Ratios are to the one of River's with the best AUC.

Cases take turns; a line shows the median and the spread of events by second of the processor. The AUC must be the same
in each turn. Full covariances, and the several sketches of AdaptiveAUCRO, are left out above 500 features. What is
written to auc_wide.json is merged with what is there already, so that the slow sketches can be measured by themselves.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path

import numpy as np
from river import linear_model, preprocessing
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from streamlearn import AUCRO, AdaptiveAUCRO
from streamlearn.runtime.decode import MAX_CELLS

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
OUT = Path(__file__).parent / "out"
WIDTH = {"a9a": 123, "w8a": 300, "spam_stream": 39_916, "ssl_text": 11_960, "connect4": 126}
SETS = ("a9a", "w8a", "spam_stream")
SHUFFLED = ("w8a", "ssl_text", "connect4")
FORMS = ("full", "diagonal", "means", "sketch", "auto")
FULL_UP_TO = 500
DENSE_UP_TO = 500
BATCH = 1000
QUICK_ROWS = 600
N_WARM = 300


def read(folder, name):
    """Return the rows as CSR and the labels."""
    with gzip.open(folder / f"{name}.libsvm.gz") as file:
        X, y = load_svmlight_file(file, n_features=WIDTH[name])
    order = np.random.default_rng(0).permutation(len(y)) if name in SHUFFLED else np.arange(len(y))
    return X.tocsr()[order], y[order] > 0


class Ours:
    """One of our learners on batches of CSR rows."""

    def __init__(self, learner, covariance):
        self.learner, self.covariance = learner, covariance

    def forecasts(self, X, y):
        """Return the score of each event before it was learned, and seconds of the processor."""
        model = self.learner(covariance=self.covariance)
        batches = [(X[i : i + BATCH], y[i : i + BATCH]) for i in range(0, len(y), BATCH)]
        began = time.process_time()
        scores = [model.test_then_learn_many(rows, labels) for rows, labels in batches]
        return np.concatenate(scores), time.process_time() - began


class Columns(Ours):
    """The same learner on the dense blocks of the columns that occur, as the reader of LIBSVM text hands them over."""

    def forecasts(self, X, y):
        """Return the score of each event before it was learned, and seconds of the processor."""
        model, scores, blocks = self.learner(covariance=self.covariance), [], list(self.blocks(X, y))
        began = time.process_time()
        for names, values, labels in blocks:
            scores.append(model.test_then_learn_columns(names, values, labels).scores)
        return np.concatenate(scores), time.process_time() - began

    def blocks(self, X, y):
        """Yield names, values and labels of blocks of no more than MAX_CELLS numbers."""
        start = 0
        while start < len(y):
            n, names = BATCH, np.unique(X[start : start + BATCH].indices)
            while n > 1 and n * len(names) > MAX_CELLS:
                n //= 2
                names = np.unique(X[start : start + n].indices)
            values = np.ascontiguousarray(X[start : start + n][:, names].toarray())
            yield tuple(names.tolist()), values, y[start : start + n]
            start += n


class River:
    """River's logistic regression, on dicts of nonzeros, or of all values where `dense`, behind a scaler or none."""

    def __init__(self, scaler=None, *, dense=False):
        self.scaler, self.dense = scaler, dense

    def forecasts(self, X, y):
        """Return the score of each event before it was learned, and seconds of the processor."""
        model = linear_model.LogisticRegression()
        model = self.scaler() | model if self.scaler else model
        events, labels, scores = self.events(X), y.tolist(), np.empty(len(y))
        began = time.process_time()
        for i, (x, label) in enumerate(zip(events, labels, strict=True)):
            scores[i] = model.predict_proba_one(x).get(True, 0.5)
            model.learn_one(x, label)
        return scores, time.process_time() - began

    def events(self, X):
        """Return the rows as dicts."""
        if self.dense:
            return [dict(enumerate(row)) for row in X.toarray().tolist()]
        bounds = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        return [dict(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True)) for a, b in bounds]


def cases(name, forms, *, plain):
    """Return {title: case} of a set; River's without its StandardScaler where `plain`."""
    made = {
        f"{learner.__name__}, {form}": Ours(learner, form)
        for learner in (AUCRO, AdaptiveAUCRO)
        for form in forms
        if WIDTH[name] <= FULL_UP_TO or (form != "full" and (learner, form) != (AdaptiveAUCRO, "sketch"))
    }
    if "means" in forms:
        made["AUCRO, means, by columns"] = Columns(AUCRO, "means")
    made["River LR"] = River()
    made["River MaxAbsScaler | LR"] = River(preprocessing.MaxAbsScaler)
    if WIDTH[name] <= DENSE_UP_TO and not plain:
        made["River StandardScaler | LR"] = River(preprocessing.StandardScaler, dense=True)
    return made


def measure(X, y, runs, turns):
    """Return {title: {"auc", "events/s" by turn}}."""
    table = {title: {"auc": None, "events/s": []} for title in runs}
    for run in runs.values():
        run.forecasts(X[:N_WARM], y[:N_WARM])
    for _ in range(turns):
        for title, run in runs.items():
            scores, seconds = run.forecasts(X, y)
            auc = float(roc_auc_score(y, scores))
            if table[title]["auc"] not in {None, auc}:
                raise AssertionError(f"{title}: AUC {auc} in one turn, {table[title]['auc']} in another")
            table[title]["auc"] = auc
            table[title]["events/s"].append(len(y) / max(seconds, 1e-9))
    return table


def show(name, table):
    """Print the lines of a set, with ratios to River's better form turn by turn."""
    peer = max((title for title in table if title.startswith("River")), key=lambda title: table[title]["auc"])
    for title, row in table.items():
        rates = np.array(row["events/s"])
        ratio = rates / np.median(table[peer]["events/s"])
        print(
            f"{name:12s} {title:26s} AUC {row['auc']:.4f}  {np.median(rates):9,.0f} events/s"
            f" ({rates.min():,.0f}-{rates.max():,.0f})  {np.median(ratio):6.2f} x {peer}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=WIDTH, default=SETS)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument(
        "--quick", action="store_true", help=f"one turn of the first {QUICK_ROWS} events, no spam_stream"
    )
    parser.add_argument("--plain", action="store_true", help="River without its StandardScaler, which takes minutes")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / ("auc_wide_quick.json" if args.quick else "auc_wide.json")
    known = json.loads(path.read_text()) if path.exists() else {}
    for name in [name for name in args.sets if WIDTH[name] <= DENSE_UP_TO] if args.quick else args.sets:
        X, y = read(args.data, name)
        if args.quick:
            X, y = X[:QUICK_ROWS], y[:QUICK_ROWS]
        print(f"{name:12s} {X.shape[0]} x {X.shape[1]}, {X.nnz / len(y):.1f} nonzeros a row, {y.mean():.1%} positive")
        with threadpool_limits(1):  # one core for all
            table = measure(X, y, cases(name, args.forms, plain=args.plain), 1 if args.quick else args.turns)
        show(name, table)
        known[name] = {**known.get(name, {}), **table}
        path.write_text(json.dumps(known, indent=1))


if __name__ == "__main__":
    main()
