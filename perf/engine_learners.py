"""Learners in memory: one event at a time from dicts, and in batches, beside River and Vowpal Wabbit's dicts."""

from __future__ import annotations

import gzip
import importlib.util
import statistics
import time

import numpy as np
import polars as pl
from engine_row import SEED, Row, ratios, turns
from river import compose, linear_model, preprocessing
from sklearn.metrics import roc_auc_score

from streamlearn import AUCRO, AdaptiveAUCRO

BATCH = 1000
GROUP = 50
RIVER = "River StandardScaler | LR"
VW_TWO = "VW, predict and learn a dict"
VW_ONE = "VW, learn alone"


# Events


def made_up(m, n, *, drift=False):
    """Two Gaussian classes of unequal, correlated spread; with `drift` their difference turns by a right angle."""
    rng = np.random.default_rng(SEED + m)
    y = rng.random(n) < 0.4
    mix = np.eye(m) + 0.3 * rng.normal(size=(m, m)) / np.sqrt(m)
    angle = np.linspace(0.0, np.pi / 2 if drift else 0.0, n)[:, None]
    first, second = (rng.normal(size=m) / np.sqrt(m) for _ in range(2))
    shift = 1.2 * (np.cos(angle) * first + np.sin(angle) * second)
    return rng.normal(size=(n, m)) * np.where(y, 1.2, 1.0)[:, None] @ mix + np.where(y[:, None], shift, 0.0) + 3.0, y


def bank(settings, m, n):
    with gzip.open(settings.data / "bank_campaign.csv.gz") as file:
        frame = pl.read_csv(file.read(), n_rows=n)
    return frame.drop("label").to_numpy().astype(np.float64)[:, :m], frame["label"].to_numpy() > 0


def covtype(settings, m, n):
    with gzip.open(settings.data / "covtype.csv.gz") as file:
        frame = pl.read_csv(file.read(), n_rows=n)
    bits = [frame[c].to_numpy()[:, None] == np.arange(1, k + 1) for c, k in (("wilderness", 4), ("soil", 40))]
    numbers = frame.drop("label", "wilderness", "soil").to_numpy().astype(np.float64)
    return np.hstack([numbers, *bits]).astype(np.float64)[:, :m], frame["label"].to_numpy() == 2


def streams(settings, m, real, *, drift=False):
    """Give (title, X, y) of made-up events and of real ones."""
    n = settings.block * (settings.repeats + 1)
    yield f"{m} made up", *made_up(m, n, drift=drift)
    if settings.data.is_dir():
        yield f"{m} {real.__name__}", *real(settings, m, n)


# Runs: each is a function from the number of a turn to the seconds of its block; block 0 is learned before


class Stream:
    def __init__(self, settings, X, y):
        self.n, self.X, self.y = settings.block, np.ascontiguousarray(X), y
        # The names are the same objects in every event, as where they come from one header.
        self.names = [f"x{j}" for j in range(X.shape[1])]

    def block(self, turn):
        return slice((turn + 1) * self.n, (turn + 2) * self.n)

    def timed(self, turn, go):
        """Return the seconds that `go(events, labels)` takes for the block of a turn, and what it returned.

        Dicts are made a few at a time, just before: what a decoder hands over is still in the cache.
        """
        part = self.block(turn)
        spent, found = 0.0, []
        for i in range(part.start, part.stop, GROUP):
            end = min(i + GROUP, part.stop)
            events = [dict(zip(self.names, row, strict=True)) for row in self.X[i:end].tolist()]
            labels = self.y[i:end].tolist()
            began = time.process_time()
            made = go(events, labels)
            spent += time.process_time() - began
            found.extend(made)
        return spent, found


def one_by_one(start):
    """Turn a function that makes a learner's loop over events into one that makes a run."""

    def begin(stream, forecasts):
        go = start()

        def run(turn):
            spent, found = stream.timed(turn, go)
            forecasts.extend(found)
            return spent

        run(-1)
        return run

    return begin


@one_by_one
def ours():
    model = AUCRO()

    def go(events, labels):
        predict, learn = model.predict_one, model.learn_one
        for x, y in zip(events, labels, strict=True):
            predict(x)
            learn(x, y)
        return ()

    return go


@one_by_one
def river():
    model = compose.Pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())

    def go(events, labels):
        predict, learn = model.predict_proba_one, model.learn_one
        found = []
        for x, y in zip(events, labels, strict=True):
            found.append(predict(x))
            learn(x, y)
        return [p.get(True, 0.5) for p in found]

    return go


def vw_workspace():
    from vowpalwabbit import Workspace  # noqa: PLC0415 - a peer that may be absent

    return Workspace("--loss_function logistic --quiet")


@one_by_one
def vw_two_calls():
    """The calls that ours are: a forecast from a dict, and a lesson from a dict when the label has come."""
    model = vw_workspace()

    def go(events, labels):
        found = []
        for x, y in zip(events, labels, strict=True):
            example = model.example({"f": x})
            found.append(model.predict(example))
            model.finish_example(example)
            example = model.example({"f": x})
            example.set_label_string("1" if y else "-1")
            model.learn(example)
            model.finish_example(example)
        return found

    return go


@one_by_one
def vw_one_call():
    """Its quickest way, where the label is there already: learning keeps the forecast that it began with."""
    model = vw_workspace()

    def go(events, labels):
        found = []
        for x, y in zip(events, labels, strict=True):
            example = model.example({"f": x})
            example.set_label_string("1" if y else "-1")
            model.learn(example)
            found.append(example.get_simplelabel_prediction())
            model.finish_example(example)
        return found

    return go


def ours_in_batches(stream, make):
    model = make()

    def run(turn):
        X, y = stream.X[stream.block(turn)], stream.y[stream.block(turn)]
        began = time.process_time()
        for i in range(0, len(X), BATCH):
            model.test_then_learn_many(X[i : i + BATCH], y[i : i + BATCH])
        return time.process_time() - began

    run(-1)
    return run


# Cases


def rows_of(settings, title, stream, make, run, targets):
    installed = importlib.util.find_spec("vowpalwabbit") is not None
    peers = {peer: PEERS[peer] for peer in targets if installed or peer == RIVER}
    found = {peer: [] for peer in peers}
    mine, theirs = turns(settings.repeats, run, {p: go(stream, found[p]) for p, go in peers.items()})
    scores = make().test_then_learn_many(stream.X, stream.y)
    for peer, seconds in theirs.items():
        yield Row(
            title, peer, each(mine, stream), each(seconds, stream), ratios(mine, seconds), targets[peer],
            auc=roc_auc_score(stream.y, scores), peer_auc=roc_auc_score(stream.y, found[peer]),
        )  # fmt: skip


PEERS = {RIVER: river, VW_TWO: vw_two_calls, VW_ONE: vw_one_call}


def each(seconds, stream):
    return f"{statistics.median(seconds) / stream.n * 1e6:.2f} us/event"


def dicts(settings):
    """AUCRO predict_one + learn_one."""
    for title, X, y in streams(settings, 50, bank):
        stream = Stream(settings, X, y)
        targets = {RIVER: 10.0, VW_TWO: 4.0, VW_ONE: 4.0}
        yield from rows_of(settings, f"AUCRO dicts, {title}", stream, AUCRO, ours(stream, []), targets)


def batches(settings):
    """AUCRO test_then_learn_many."""
    for title, X, y in streams(settings, 50, bank):
        stream = Stream(settings, X, y)
        yield from rows_of(
            settings, f"AUCRO batches, {title}", stream, AUCRO, ours_in_batches(stream, AUCRO), {RIVER: 25.0}
        )


def adaptive(settings):
    """AdaptiveAUCRO test_then_learn_many."""
    for m, real in ((20, bank), (54, covtype)):
        for title, X, y in streams(settings, m, real, drift=True):
            stream = Stream(settings, X, y)
            case = f"AdaptiveAUCRO batches, {title}"
            run = ours_in_batches(stream, AdaptiveAUCRO)
            yield from rows_of(settings, case, stream, AdaptiveAUCRO, run, {RIVER: 3.0})


CASES = {"dicts": dicts, "batches": batches, "adaptive": adaptive}
