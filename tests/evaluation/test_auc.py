import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from streamlearn.errors import BadLabel, BadParameter, BadShape, BadSnapshot
from streamlearn.evaluation import AUC, RejectAUC
from streamlearn.evaluation.scores import CHUNK
from tests.naive import evaluation as naive

ULPS = 1e-12  # what the contract promises against scikit-learn

events = st.lists(
    st.tuples(st.integers(0, 1), st.one_of(st.integers(-2, 2).map(float), st.floats(-1e300, 1e300))), max_size=60
)


def stream(n, seed, shift=1.0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(np.int8)
    return y, rng.normal(size=n) + shift * y


def streams_with_ties(rng):
    n = int(rng.integers(2, 400))
    y = (rng.random(n) < rng.choice([0.05, 0.3, 0.5])).astype(np.int8)
    y[:2] = [0, 1]
    scores = rng.normal(size=n) + rng.choice([0.0, 1.0]) * y
    scale = rng.choice([0.01, 1.0, 1e300])
    return y, np.round(scores, int(rng.integers(0, 4))) * scale / 10.0


def sklearn_auc(y, scores):
    return roc_auc_score(y, scores) if 0 < y.sum() < len(y) else math.nan


def test_cumulative_and_windowed_values_are_scikit_learns_on_a_thousand_streams_with_ties():
    rng = np.random.default_rng(11)
    worst = 0.0
    for _ in range(1000):
        y, scores = streams_with_ties(rng)
        window = int(rng.integers(1, 300))
        total, recent = AUC(), AUC(window=window)
        total.update_many(y, scores)
        recent.update_many(y, scores)
        worst = max(worst, abs(total.get() - sklearn_auc(y, scores)))
        expected = sklearn_auc(y[-window:], scores[-window:])
        assert math.isnan(expected) == math.isnan(recent.get())
        if not math.isnan(expected):
            worst = max(worst, abs(recent.get() - expected))
    assert worst <= ULPS


def test_every_value_along_a_sliding_window_is_scikit_learns():
    y, scores = stream(400, 1)
    scores = np.round(scores, 1)
    auc = AUC(window=50)
    for i in range(len(y)):
        auc.update(int(y[i]), float(scores[i]))
        expected = sklearn_auc(y[max(0, i - 49) : i + 1], scores[max(0, i - 49) : i + 1])
        np.testing.assert_allclose(auc.get(), expected, rtol=ULPS)


@given(events, st.floats(0.05, 0.999))
def test_fading_value_is_that_of_all_pairs_weighted_by_both_ages(pairs, fading):
    y, scores = [a for a, _ in pairs], [s for _, s in pairs]
    auc = AUC(fading=fading, exact_events=64)
    auc.update_many(np.array(y, np.int8), np.array(scores, np.float64))
    expected = naive.auc(y, scores, naive.event_weights(len(y), fading=fading))
    low, high = auc.interval()
    np.testing.assert_array_equal(low, high)
    np.testing.assert_allclose(auc.get(), expected, atol=ULPS)


def test_fading_value_over_many_chunks_and_roundings_keeps_the_true_one_between_its_bounds():
    y, scores = stream(3000, 2)
    weights = np.array(naive.event_weights(len(y), fading=0.999))
    auc = AUC(fading=0.999, exact_events=128)
    auc.update_many(y, scores)
    low, high = auc.interval()
    expected = roc_auc_score(y, scores, sample_weight=weights)
    assert low - ULPS <= expected <= high + ULPS
    assert 0.0 < high - low < 0.1


def drifting(kind, y, scores):
    n, t = len(y), np.arange(len(y))
    return {
        "normal": scores,
        "small": 0.02 / (1.0 + np.exp(-scores)),
        "huge": np.array([1e300, -1e300])[t % 2] * np.random.default_rng(5).random(n),
        "margins of 3": np.clip(3.0 * scores, -3.0, 3.0),
        "tied": np.full(n, 0.5),
        "moving": scores + np.linspace(0.0, 30.0, n),
        "collapsing": np.where(t < n // 3, scores, 0.3 + 1e-7 * scores),
        "new tie at an old score": np.where((t > n // 3) & (scores > 0.0), scores[5], scores),
        "ascending": np.sort(scores),
        "descending": -np.sort(scores),
        "waves": scores + 8.0 * np.sin(t / 3000.0),
    }[kind]


KINDS = [
    "normal", "small", "huge", "margins of 3", "tied", "moving", "collapsing", "new tie at an old score", "ascending",
    "descending", "waves",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_after_the_exact_phase_the_true_value_lies_in_a_narrow_certified_interval(kind):
    y, scores = stream(60_000, 3)
    scores = drifting(kind, y, scores)
    auc = AUC(exact_events=4000)
    for part in np.array_split(np.arange(len(y)), 17):
        auc.update_many(y[part], scores[part])
    low, high = auc.interval()
    expected = roc_auc_score(y, scores)
    assert low - ULPS <= expected <= high + ULPS
    assert high - low <= 0.01  # at a twentieth of the default memory
    assert low <= auc.get() <= high


@pytest.mark.parametrize("kind", ["normal", "collapsing", "waves"])
def test_with_the_default_memory_the_interval_is_narrower_than_one_in_a_thousand(kind):
    y, scores = stream(300_000, 4)
    scores = drifting(kind, y, scores)
    auc = AUC()
    auc.update_many(y, scores)
    low, high = auc.interval()
    assert low - ULPS <= roc_auc_score(y, scores) <= high + ULPS
    assert 0.0 < high - low <= 1e-3


def test_the_interval_stays_narrow_however_often_the_lists_are_rounded():
    y, scores = stream(300_000, 9)
    auc = AUC(exact_events=1000)
    auc.update_many(y, scores)
    low, high = auc.interval()
    assert low - ULPS <= roc_auc_score(y, scores) <= high + ULPS
    assert high - low <= 0.01  # a little more than one group of 8 in 1000 events


def test_few_distinct_scores_stay_exact_however_many_events_come():
    y, scores = stream(50_000, 6)
    scores = np.round(scores, 1)
    auc = AUC(exact_events=256)
    auc.update_many(y, scores)
    low, high = auc.interval()
    assert low == high
    np.testing.assert_allclose(low, roc_auc_score(y, scores), rtol=ULPS)


@pytest.mark.parametrize("limit", [{"window": 1000}, {"exact_events": 2000}, {"fading": 0.99, "exact_events": 2000}])
def test_memory_does_not_grow_in_a_metric_that_is_never_read(limit):
    def size(auc):
        return sum(getattr(value, "nbytes", 0) for value in auc.state().values())

    rng = np.random.default_rng(8)
    auc = AUC(**limit)
    sizes = []
    for _ in range(40):
        y = rng.integers(0, 2, 5000).astype(np.int8)
        auc.update_many(y, rng.normal(size=len(y)))
        sizes.append(size(auc))
    n = limit.get("window", limit.get("exact_events"))
    assert max(sizes) <= 25 * n + 9 * CHUNK


@pytest.mark.parametrize("memory", [{}, {"window": 7}, {"fading": 0.9}])
def test_one_class_or_nothing_gives_nan_and_the_other_class_ends_it(memory):
    auc = AUC(**memory)
    assert math.isnan(auc.get())
    auc.update_many([1, 1, 1], [0.1, 0.2, 0.3])
    assert math.isnan(auc.get())
    assert all(math.isnan(bound) for bound in auc.interval())
    auc.update(0, 0.15)
    np.testing.assert_allclose(auc.get(), naive.auc([1, 1, 1, 0], [0.1, 0.2, 0.3, 0.15], _fade(4, memory)), rtol=1e-12)


def _fade(n, memory):
    return naive.event_weights(n, fading=memory.get("fading"))


def test_infinite_scores_are_ordered_like_others_and_equal_ones_are_ties():
    for memory in ({}, {"window": 10}):
        auc = AUC(**memory)
        auc.update_many([1, 0, 1, 0, 1, 0], [np.inf, np.inf, -np.inf, -np.inf, 0.0, 0.0])
        assert auc.get() == 0.5


def test_unlabelled_and_unscored_events_are_skipped_and_take_no_place_in_the_window():
    auc, plain = AUC(window=3), AUC(window=3)
    auc.update_many(np.array([1, -1, 0, 1, 1], np.int8), np.array([0.3, 0.9, 0.2, np.nan, 0.1]))
    auc.update(None, 0.4)
    auc.update(1, None)
    plain.update_many([1, 0, 1], [0.3, 0.2, 0.1])
    assert auc.get() == plain.get()


def test_labels_may_be_bools_numbers_or_objects():
    expected = AUC()
    expected.update_many(np.array([1, 0, -1], np.int8), [0.5, 0.1, 0.9])
    for y in ([True, False, None], [1.0, 0.0, np.nan], np.array([1, 0, None], object)):
        auc = AUC()
        auc.update_many(y, [0.5, 0.1, 0.9])
        assert auc.state().keys() == expected.state().keys()
        assert auc.get() == expected.get() == 1.0


@pytest.mark.parametrize("label", [True, 1, 1.0, np.bool_(True), np.int8(1), np.int64(1), np.float32(1.0)])
def test_one_label_may_be_any_kind_of_one(label):
    one, many = AUC(), AUC()
    one.update(0, 0.1)
    one.update(label, np.float32(0.5))
    labels = np.array([None, 0], object)
    labels[0] = label
    many.update_many(labels, [0.5, 0.1])
    assert one.get() == many.get() == 1.0


def test_one_label_that_is_no_code_is_refused():
    with pytest.raises(BadLabel, match=r"^AUC: y must be True, False, 1, 0 or -1 \(no label\), got 'yes'"):
        AUC().update("yes", 0.5)


@pytest.mark.parametrize("y", [[2], ["a"], [0.5], [(1, 2)]])
def test_a_label_that_is_no_code_is_refused_and_changes_nothing(y):
    auc = AUC()
    auc.update_many([1, 0], [0.5, 0.1])
    labels = np.empty(1, object)
    labels[:] = y
    with pytest.raises(BadLabel, match=r"^AUC: y must be True, False, 1, 0 or -1"):
        auc.update_many(labels, [0.0])
    assert auc.get() == 1.0


def test_lengths_that_differ_are_refused():
    with pytest.raises(BadShape, match=r"^AUC: y and forecasts must be"):
        AUC().update_many([1, 0], [0.5])


@pytest.mark.parametrize(
    "parameters",
    [
        {"window": 0}, {"window": 2.5}, {"window": True}, {"window": 2**31}, {"fading": 0.0}, {"fading": 1.0},
        {"fading": math.nan}, {"window": 5, "fading": 0.5}, {"exact_events": 63}, {"exact_events": "many"},
    ],
)  # fmt: skip
def test_parameters_that_break_their_rule_are_refused_by_name(parameters):
    with pytest.raises(BadParameter, match=f"^AUC: .*{next(reversed(parameters))}.* got "):
        AUC(**parameters)


def test_the_state_of_another_window_is_refused():
    with pytest.raises(BadSnapshot, match=r"^AUC: state must be of 'auc_window_5', got 'auc'"):
        AUC(window=5).restore(AUC().state())


@pytest.mark.parametrize("kind", ["normal", "new tie at an old score", "tied"])
@pytest.mark.parametrize("make", [AUC, lambda **kind: RejectAUC(0.3, **kind), lambda **kind: AUC(fading=0.999, **kind)])
def test_how_often_a_value_is_read_changes_neither_the_values_nor_the_state(kind, make):
    y, scores = stream(9000, 13)
    scores = drifting(kind, y, scores)
    often, never = make(exact_events=640), make(exact_events=640)  # chunks of 80, rounded from 641 distinct ones on
    for start in range(0, len(y), 150):
        part = slice(start, start + 150)
        often.update_many(y[part], scores[part])
        never.update_many(y[part], scores[part])
        often.interval()
    assert often.interval() == never.interval()
    expected, found = never.state(), often.state()
    assert list(expected) == list(found)
    for key, value in expected.items():
        np.testing.assert_array_equal(found[key], value)


def test_a_counter_goes_on_from_a_state_saved_amid_a_chunk_that_was_read():
    y, scores = stream(9000, 14)
    auc = AUC(exact_events=640)
    auc.update_many(y[:4321], scores[:4321])
    auc.get()
    auc.update_many(y[4321:4330], scores[4321:4330])
    again = AUC(exact_events=640)
    again.restore(auc.state())
    for metric in (auc, again):
        metric.update_many(y[4330:], scores[4330:])
    assert again.interval() == auc.interval()
