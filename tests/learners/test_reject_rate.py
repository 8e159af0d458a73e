"""A reject rate held on real streams: single events and pairs, one by one, in batches, with late labels."""

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from streamlearn import AUCRO, AdaptiveAUCRO
from streamlearn.errors import BadParameter

DEMOS = Path(__file__).parent.parent.parent / "demos" / "data"
DATA = Path(__file__).parent.parent.parent.parent / "shared" / "data"
LEARNERS = [AUCRO, AdaptiveAUCRO]
N_ROWS = 4000
WITHIN = 0.02
SETTLED = 500
LAST = 8


def stream(name):
    path = (DEMOS if name == "noaa_weather" else DATA) / f"{name}.csv.gz"
    if not path.is_file():
        pytest.skip(f"{name} is not beside the project")
    with gzip.open(path) as file:
        frame = pl.read_csv(file.read()).head(N_ROWS)
    return frame.drop("label").to_numpy().astype(float), (frame["label"].to_numpy() == 1).astype(int)


def columns(X):
    return tuple(range(X.shape[1]))


@pytest.mark.parametrize("name", ["noaa_weather", "electricity", "splice"])  # slow drift, hard drift, none
@pytest.mark.parametrize("cls", LEARNERS)
@pytest.mark.parametrize("rate", [0.1, 0.2, 0.4])
def test_the_rate_of_single_events_is_held(cls, name, rate):
    X, y = stream(name)

    tested = cls(reject="rate", reject_rate=rate).test_then_learn_columns(columns(X), X, y)

    assert np.isnan(tested.decisions).mean() == pytest.approx(rate, abs=WITHIN)
    late = np.isnan(tested.decisions[len(y) // 2 :])
    assert late.mean() == pytest.approx(rate, abs=WITHIN)


@pytest.mark.parametrize("name", ["noaa_weather", "electricity", "splice"])
@pytest.mark.parametrize("rate", [0.1, 0.2, 0.4])
def test_the_rate_of_pairs_of_an_event_and_the_last_of_the_other_class_is_held(name, rate):
    X, y = (part[:3000] for part in stream(name))
    model = AUCRO(reject="rate", reject_rate=rate)
    rejected, last = [], ([], [])
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        others = last[1 - label][-LAST:]
        if t >= SETTLED:
            ranks = model.rank_many(np.tile(x, (len(others), 1)), np.array(others))
            rejected += [rank is None for rank in ranks]
        model.learn_one(x, int(label))
        last[label].append(x)

    assert np.mean(rejected) == pytest.approx(rate, abs=WITHIN)


@pytest.mark.parametrize("cls", LEARNERS)
def test_one_by_one_and_in_batches_the_same_events_are_rejected(cls):
    X, y = (part[:400] for part in stream("noaa_weather"))
    single, batched = cls(reject="rate"), cls(reject="rate")
    expected = []
    for x, label in zip(X, y, strict=True):
        expected.append(single.predict_one(x))
        single.learn_one(x, label)

    cuts = np.split(np.arange(400), [1, 50, 57, 300])
    found = [batched.test_then_learn_columns(columns(X), X[rows], y[rows]) for rows in cuts]

    assert [p for part in found for p in part.predictions] == expected
    assert 40 < sum(p is None for p in expected[50:]) < 110  # a fifth of 350, in the middle of changing its mind
    assert all(np.array_equal(a, b) for a, b in zip(single.state().values(), batched.state().values(), strict=True))


@pytest.mark.parametrize("cls", LEARNERS)
def test_with_late_labels_the_rate_is_held_and_batches_do_not_matter(cls):
    X, y = (part[:3000] for part in stream("noaa_weather"))
    delay, outcomes = 48, []
    for step in (48, 7):
        model, decisions = cls(reject="rate", reject_rate=0.3), []
        _, waiting = model.forecast_columns(columns(X), X[:delay])
        for start in range(delay, len(y), step):
            now = slice(start, start + step)
            n = len(y[now])
            late = slice(start - delay, start - delay + n)
            tested, made = model.test_then_learn_late(columns(X), X[now], X[late], y[late], waiting[:n])
            waiting = np.concatenate([waiting[n:], made])
            decisions.append(tested.decisions)
        outcomes.append((np.concatenate(decisions), model.state()))

    assert np.isnan(outcomes[0][0]).mean() == pytest.approx(0.3, abs=WITHIN)
    assert np.array_equal(outcomes[0][0], outcomes[1][0], equal_nan=True)
    for key, value in outcomes[0][1].items():
        assert np.array_equal(value, outcomes[1][1][key])


@pytest.mark.parametrize("cls", LEARNERS)
def test_the_cost_is_a_reading_and_parameters_stay_as_given(cls):
    X, y = (part[:1000] for part in stream("noaa_weather"))
    model = cls(reject="rate", reject_rate=0.4).learn_many(X, y)

    again = cls.from_state(model.state())

    assert model.reject_cost < 0.5
    assert again.reject_cost == model.reject_cost
    assert model.params()["reject_cost"] == 0.5
    assert model.clone().reject_cost == 0.5
    assert [again.rank_one(a, b) for a, b in zip(X[:50], X[50:100], strict=True)] == [
        model.rank_one(a, b) for a, b in zip(X[:50], X[50:100], strict=True)
    ]


@pytest.mark.parametrize(("changes", "rule"), [({"reject": "never"}, "reject must"), ({"reject_rate": 0.0}, "in ")])
def test_bad_parameters_are_refused(changes, rule):
    with pytest.raises(BadParameter, match=rule):
        AUCRO(**changes)
