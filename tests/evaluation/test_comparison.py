"""Two learners and k learners on one stream."""

import math

import numpy as np
import pytest
from scipy import stats

from streamlearn.errors import BadParameter
from streamlearn.evaluation import BlockBootstrap, McNemar, compare, prequential_folds
from tests.naive.logistic import NaiveLogistic


def events(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] - X[:, 1] + rng.normal(size=n) > 0.0


class Blind(NaiveLogistic):
    """Sees only the last feature, which is noise."""

    @staticmethod
    def _squash(row):
        return np.where(np.arange(len(row)) == 2, np.sign(row), 0.0)


def test_the_test_is_mcnemars():
    rng = np.random.default_rng(1)
    a, b = rng.random(400) < 0.8, rng.random(400) < 0.7
    test = McNemar()
    for part in np.array_split(np.arange(400), [3, 100]):
        test.update_many(a[part], b[part])
    n10, n01 = int((a & ~b).sum()), int((b & ~a).sum())
    assert test.counts == (n10, n01)
    assert test.statistic == pytest.approx((n10 - n01) ** 2 / (n10 + n01), rel=1e-12)
    assert test.p_value == pytest.approx(stats.chi2.sf(test.statistic, 1), rel=1e-12)


def test_the_faded_test_is_its_definition_and_survives_a_restart():
    rng = np.random.default_rng(2)
    a, b = rng.random(300) < 0.8, rng.random(300) < 0.7
    whole, first, second = McNemar(fading=0.97), McNemar(fading=0.97), McNemar(fading=0.97)
    whole.update_many(a, b)
    first.update_many(a[:99], b[:99])
    second.restore(first.state())
    second.update_many(a[99:], b[99:])
    weights = 0.97 ** np.arange(299, -1, -1)
    signed = (a.astype(int) - b.astype(int)) * weights
    assert whole.statistic == pytest.approx(signed.sum() ** 2 / (signed**2).sum(), rel=1e-12)
    assert second.p_value == whole.p_value


def test_the_faded_test_keeps_its_level_where_the_one_of_the_faded_counts_does_not():
    rng = np.random.default_rng(3)
    found, naive = [], []
    for _ in range(2000):
        test = McNemar(fading=0.98)
        a, b = rng.random(600) < 0.7, rng.random(600) < 0.7
        test.update_many(a, b)
        found.append(test.p_value < 0.05)
        n10, n01 = test.counts
        naive.append(stats.chi2.sf((n10 - n01) ** 2 / (n10 + n01), 1) < 0.05)
    deviation = math.sqrt(0.05 * 0.95 / 2000)
    assert abs(np.mean(found) - 0.05) < 4.0 * deviation
    assert np.mean(naive) < 0.05 - 4.0 * deviation


def test_learners_that_never_differ_have_no_p_value():
    test = McNemar()
    test.update_many([True, False], [True, False])
    assert math.isnan(test.p_value)


@pytest.mark.parametrize("delay", [0, 30])
def test_a_better_learner_is_found_and_equal_ones_are_not_told_apart(delay):
    better = compare(events(), Blind(), NaiveLogistic(), delay=delay)
    assert better.p_value < 1e-6
    low, high = better.differences["auc_exact_events_16384"]
    first, second = better.values["auc_exact_events_16384"]
    assert 0.0 < low < second - first < high
    same = compare(events(), NaiveLogistic(), NaiveLogistic(), delay=delay)
    assert math.isnan(same.p_value)
    assert same.differences["accuracy"] == (0.0, 0.0)
    assert same.n_events > 1400


def test_batches_change_no_comparison():
    whole, cut = (compare(events(), Blind(), NaiveLogistic(), batch_size=size) for size in (1024, 37))
    assert cut == whole


def test_a_band_holds_the_deviation_of_the_mean():
    from streamlearn.contracts import Tested

    rng = np.random.default_rng(5)
    right = rng.random(4000) < 0.8
    boot = BlockBootstrap(["accuracy"], replicas=200, block=10)
    codes, ones = np.ones(4000, np.int8), np.ones(4000)
    boot.take(Tested(codes, ones, ones, ones.astype(object), right.astype(float)), codes)
    low, high = boot.band(0)
    assert low < right.mean() < high
    assert (high - low) / (2 * 1.96) == pytest.approx(math.sqrt(0.16 / 4000), rel=0.25)


@pytest.mark.parametrize("spec", ["kappa_t", "auc:window=100", "accuracy:fading=0.9"])
def test_metrics_that_look_back_have_no_band(spec):
    with pytest.raises(BadParameter, match="must count all events alike"):
        BlockBootstrap([spec])


@pytest.mark.parametrize("form", ["cross-validation", "split", "bootstrap"])
def test_each_fold_is_tested_and_trained_on_its_share(form):
    report = prequential_folds(events(), NaiveLogistic, ["auc", "accuracy"], k=5, form=form)
    cut = prequential_folds(events(), NaiveLogistic, ["auc", "accuracy"], k=5, form=form, batch_size=41)
    assert report.values["auc"].tolist() == cut.values["auc"].tolist()
    assert len(set(report.values["auc"].tolist())) == 5
    assert 0.7 < report.mean("auc") < 0.95
    assert 0.0 < report.deviation("auc") < 0.1


@pytest.mark.parametrize(("form", "tested"), [("cross-validation", 0.2), ("split", 0.8), ("bootstrap", math.exp(-1))])
def test_the_shares_are_those_of_the_form(form, tested):
    from streamlearn.evaluation.folds import _times

    times = _times(np.random.default_rng(0), 20_000, 5, form)
    assert (times == 0).mean() == pytest.approx(tested, abs=0.01)
    if form == "bootstrap":
        assert times.mean() == pytest.approx(1.0, abs=0.02)
    else:
        assert (times == 0).sum(axis=1).max() == (times == 0).sum(axis=1).min()


def test_text_labels_need_the_positive_one():
    X, y = events(100)
    with pytest.raises(BadParameter, match=r"^prequential_folds: positive must be given"):
        prequential_folds((X, np.where(y, "a", "b")), NaiveLogistic, k=2)
    named = prequential_folds((X, np.where(y, "a", "b")), lambda: NaiveLogistic(positive="a"), k=2, positive="a")
    plain = prequential_folds((X, y), NaiveLogistic, k=2)
    assert named.values["auc"].tolist() == plain.values["auc"].tolist()
