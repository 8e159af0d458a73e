"""RejectAUC as a River metric: the pairs counted one by one, cumulative, in a window, and after reverting."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import evaluate, linear_model, metrics, preprocessing, utils
from streamlearn.adapters import river_metric
from streamlearn.adapters.river import AdaptiveAUCRO, RejectAUC

from streamlearn.errors import BadParameter, BadValue
from tests.adapters.river_streams import events

# Few different values, so that ties and differences of exactly the threshold come up.
PROBABILITIES = st.sampled_from([0.0, 0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9, 1.0])
EVENTS = st.lists(st.tuples(st.booleans(), PROBABILITIES), max_size=30)
COSTS = st.sampled_from([0.1, 0.3, 0.4, 0.5])


def naive(seen, d):
    """Return AUC and reject rate from all pairs, by the definition."""

    def log_odds(p):
        return math.log(p) - math.log1p(-p) if 0 < p < 1 else math.inf * (p - 0.5)

    tau = math.log1p(-d) - math.log(d) if d != 0.5 else 0.0
    right = wrong = pairs = 0
    for p in (p for y, p in seen if y):
        for q in (q for y, q in seen if not y):
            pairs += 1
            right += log_odds(p) - log_odds(q) > tau
            wrong += log_odds(q) - log_odds(p) > tau
    rejected = (pairs - right - wrong) / pairs if pairs else math.nan
    if d == 0.5 and pairs:
        return (right + (pairs - right - wrong) / 2) / pairs, rejected
    return right / (right + wrong) if right + wrong else math.nan, rejected


def fed(seen, d):
    metric = RejectAUC(d=d)
    for y, p in seen:
        metric.update(y, {False: 1 - p, True: p})
    return metric


def check(metric, seen, d):
    auc, rejected = naive(seen, d)
    assert metric.get() == pytest.approx(auc, abs=1e-12, nan_ok=True)
    assert metric.reject_rate == pytest.approx(rejected, abs=1e-12, nan_ok=True)


@given(seen=EVENTS, d=COSTS)
def test_it_counts_every_pair(seen, d):
    check(fed(seen, d), seen, d)


@given(seen=EVENTS, d=COSTS, order=st.randoms(use_true_random=False))
def test_reverting_any_events_leaves_the_others(seen, d, order):
    metric, left = fed(seen, d), list(seen)
    for _ in range(len(seen) // 2):
        y, p = left.pop(order.randrange(len(left)))
        metric.revert(y, {False: 1 - p, True: p})

    check(metric, left, d)
    metric.update(True, 0.7)
    check(metric, [*left, (True, 0.7)], d)


@settings(max_examples=30)
@given(seen=EVENTS, d=COSTS, window=st.integers(1, 12))
def test_in_a_rolling_window_it_is_that_of_the_last_events(seen, d, window):
    rolling = utils.Rolling(RejectAUC, window_size=window, d=d)
    for y, p in seen:
        rolling.update(y, {False: 1 - p, True: p})

    check(rolling, seen[-window:], d)


def test_more_events_than_one_block_are_counted_the_same():
    rng = np.random.default_rng(0)
    n = 2 * river_metric.BLOCK + 77
    seen = list(zip((rng.random(n) < 0.3).tolist(), rng.random(n).round(3).tolist(), strict=True))
    metric = fed(seen, 0.3777)  # a threshold that no difference hits, whatever the rounding of the logarithm
    y, p = np.array(seen).T
    with np.errstate(divide="ignore", invalid="ignore"):  # at 0 and 1, and of equal infinities
        odds = np.log(p) - np.log1p(-p)
        differences = odds[y == 1][:, None] - odds[y == 0][None]
    tau = np.log(0.6223 / 0.3777)
    right, wrong = (differences > tau).sum(), (differences < -tau).sum()

    assert metric.get() == right / (right + wrong)


def test_a_positive_label_of_any_kind():
    metric = RejectAUC(d=0.3, pos_val="rain")
    for y, p in (("rain", 0.9), ("dry", 0.1), ("rain", 0.2), ("dry", 0.6)):
        metric.update(y, {"dry": 1 - p, "rain": p})

    check(metric, [(True, 0.9), (False, 0.1), (True, 0.2), (False, 0.6)], 0.3)


def test_in_progressive_validation_rejecting_pairs_raises_the_auc():
    stream = events(1000, noise=2.0)

    def score(metric):
        return evaluate.progressive_val_score(stream, AdaptiveAUCRO(), metric).get()

    plain = score(RejectAUC(d=0.5))
    assert plain == pytest.approx(score(metrics.RollingROCAUC(window_size=1000)), abs=1e-12)
    assert score(RejectAUC(d=0.3)) > plain + 0.03
    scaled = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    assert evaluate.progressive_val_score(stream, scaled, RejectAUC()).get() > 0.5


def test_it_goes_with_other_metrics():
    both = metrics.Accuracy() + RejectAUC(d=0.3)
    evaluate.progressive_val_score(events(300), AdaptiveAUCRO(), both)

    assert both.get()[1] == both[1].get() > 0.8
    assert repr(RejectAUC()) == "RejectAUC: nan%"
    assert RejectAUC(d=0.2).clone().d == 0.2
    assert RejectAUC().bigger_is_better


def test_what_it_cannot_take_is_refused():
    metric = RejectAUC()
    with pytest.raises(BadParameter, match=r"d must be in \(0, 0.5\]"):
        RejectAUC(d=0.7)
    with pytest.raises(BadParameter, match="w must be 1, got 2"):
        metric.update(True, {True: 0.5}, 2)
    with pytest.raises(BadValue, match=r"must be a probability, got 1\.5"):
        metric.update(True, 1.5)
    with pytest.raises(BadValue, match="of an event that was taken"):
        metric.revert(True, 0.5)
    assert math.isnan(metric.get())


def test_reverting_cannot_begin_where_scores_were_rounded(monkeypatch):
    monkeypatch.setattr(river_metric, "DEFAULT_EXACT_EVENTS", 64)
    metric = RejectAUC()
    for k in range(3 * river_metric.BLOCK):
        metric.update(k % 2 == 0, (k % 997) / 997)

    assert 0.0 <= metric.get() <= 1.0
    with pytest.raises(BadValue, match="at most 64 distinct"):
        metric.revert(True, 0.0)
