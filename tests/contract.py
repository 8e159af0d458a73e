"""The promises of every binary scorer as functions over a factory of untrained learners."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamlearn.errors import BadLabel, BadShape, BadValue, TooManyFeatures
from streamlearn.learners.base import BinaryScorer

Factory = Callable[..., BinaryScorer]


def stream(seed: int = 0, n: int = 120, m: int = 5, zeros: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Return X float64[n, m] with some exact zeros and labels 0/1 that depend on it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * [1.0, 10.0, 0.1, 1.0, 3.0][:m] + rng.normal(size=m)
    X[rng.random((n, m)) < zeros] = 0.0
    y = (X[:, 0] + X[:, 2] * 10 + rng.normal(size=n) > 0.5).astype(int)
    return X, y


def dicts(X: np.ndarray) -> list[dict[str, float]]:
    return [{f"f{j}": float(v) for j, v in enumerate(row)} for row in X]


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Tell whether two states are equal, arrays bit for bit."""
    if list(a) != list(b):
        return False
    for key, value in a.items():
        if isinstance(value, np.ndarray):
            if value.dtype != b[key].dtype or value.shape != b[key].shape or value.tobytes() != b[key].tobytes():
                return False
        elif value != b[key] and not (value != value and b[key] != b[key]):  # noqa: PLR0124 - NaN numbers
            return False
    return True


def trained(make: Factory, seed: int = 0, **changes: Any) -> BinaryScorer:
    X, y = stream(seed)
    return make(**changes).learn_many(X, y)


def check_many_equals_one_by_one(make: Factory) -> None:
    X, y = stream(1)
    one = make()
    for x, label in zip(X, y, strict=True):
        one.learn_one(x, label)
    rng = np.random.default_rng(2)
    for _ in range(3):
        cuts = np.sort(rng.choice(len(X), size=6, replace=True))
        many = make()
        for part in np.split(np.arange(len(X)), cuts):
            many.learn_many(X[part], y[part])
        assert same(one.state(), many.state())


def check_dicts_arrays_and_frames_agree(make: Factory) -> None:
    X, y = stream(3)
    events = dicts(X)
    one, listed = make(), make()
    for x, label in zip(events, y, strict=True):
        one.learn_one(x, label)
    listed.learn_many(events, y)
    assert same(one.state(), listed.state())
    for frame in (pd.DataFrame(events), pl.DataFrame(events), pa.Table.from_pylist(events)):
        assert same(one.state(), make().learn_many(frame, y).state())


def check_column_order_is_irrelevant(make: Factory) -> None:
    X, y = stream(4)
    frame = pd.DataFrame(dicts(X))
    straight = make().learn_many(frame, y)
    turned = make().learn_many(frame[list(frame.columns[::-1])], y)
    assert same(straight.state(), turned.state())
    shuffled = make()
    rng = np.random.default_rng(0)
    for x, label in zip(dicts(X), y, strict=True):
        keys = list(x)
        rng.shuffle(keys)
        shuffled.learn_one({k: x[k] for k in keys}, label)
    assert same(straight.state(), shuffled.state())


def check_zeros_may_be_left_out(make: Factory) -> None:
    X, y = stream(5, zeros=0.6)
    dense, sparse, sparse_many = make(), make(), make()
    thin = [{k: v for k, v in x.items() if v != 0} for x in dicts(X)]
    for full, x, label in zip(dicts(X), thin, y, strict=True):
        dense.learn_one(full, label)
        sparse.learn_one(x, label)
        assert dense.score_one(full) == sparse.score_one(x)
    sparse_many.learn_many(thin, y)
    assert same(dense.state(), sparse.state())
    assert same(dense.state(), sparse_many.state())


def check_test_then_learn_is_score_then_learn(make: Factory) -> None:
    X, y = stream(6)
    one, many = make(), make()
    expected = []
    for x, label in zip(X, y, strict=True):
        expected.append(one.score_one(x))
        one.learn_one(x, label)
    actual = np.concatenate([many.test_then_learn_many(X[:50], y[:50]), many.test_then_learn_many(X[50:], y[50:])])
    assert actual.tolist() == expected
    assert same(one.state(), many.state())


def check_a_forecast_does_not_know_which_way_round_its_label_shows_the_classes_to_be(make: Factory) -> None:
    X, y = stream(6, n=30)
    words = np.where(np.r_[1, 1, 0, y[3:]] == 1, "yes", "no").astype(object)
    one, many = make(), make()
    expected = []
    for x, label in zip(X, words, strict=True):
        expected.append(one.score_one(x))
        one.learn_one(x, label)
    assert many.test_then_learn_many(X, words).tolist() == expected
    assert same(one.state(), many.state())


def check_columns_give_what_the_verbs_give(make: Factory) -> None:
    X, y = stream(7)
    names = tuple(f"f{j}" for j in range(X.shape[1]))
    one, many = make(), make()
    tested = many.test_then_learn_columns(names, X, y)
    for i, (x, label) in enumerate(zip(dicts(X), y, strict=True)):
        assert tested.predictions[i] == one.predict_one(x)
        assert tested.scores[i] == one.score_one(x)
        if i and 1 in y[:i] and 0 in y[:i]:
            assert tested.probabilities[i] == one.predict_proba_one(x)[1]
        one.learn_one(x, label)
    assert same(one.state(), many.state())
    assert tested.codes.tolist() == y.tolist()


def check_restored_equals_never_stopped(make: Factory, path: Any) -> None:
    X, y = stream(8)
    straight = make().learn_many(X, y)
    for k in (0, 1, 17, 60):
        first = make().learn_many(X[:k], y[:k])
        again = type(first).from_state(first.state())
        assert same(straight.state(), again.learn_many(X[k:], y[k:]).state())
        first.save(path)
        from streamlearn.learners.registry import MODULES, load

        if first.name in MODULES:
            assert same(straight.state(), load(path).learn_many(X[k:], y[k:]).state())
        other = trained(make, seed=9)
        other.restore(first.state())
        assert same(other.state(), first.state())


def late_run(model: BinaryScorer, X: np.ndarray, y: np.ndarray, delay: int, block: int) -> list[float]:
    """Return the scores of a stream whose labels come `delay` events late, in blocks of at most `block` rows."""
    names = tuple(range(X.shape[1]))
    tested, memo = model.forecast_columns(names, X[:delay])
    scores, memos = tested.scores.tolist(), memo
    for start in range(delay, len(X), min(block, delay)):
        stop = min(start + min(block, delay), len(X))
        late = slice(start - delay, stop - delay)
        tested, memo = model.test_then_learn_late(names, X[start:stop], X[late], y[late], memos[late])
        scores += tested.scores.tolist()
        memos = np.concatenate([memos, memo])
        assert tested.codes.tolist() == y[late].tolist()
    return scores


def check_late_labels_give_the_same_whatever_the_blocks(make: Factory) -> None:
    X, y = stream(26)
    y[:2] = 0, 1
    first, second = make(), make()
    assert late_run(first, X, y, 13, 1) == late_run(second, X, y, 13, 13)
    assert same(first.state(), second.state())
    if not make().memo_width:
        third = make()
        names = tuple(range(X.shape[1]))
        for i in range(len(X)):
            if i >= 13:
                assert third.forecast_columns(names, X[i : i + 1])[0].scores.tolist()
                third.learn_one(X[i - 13], y[i - 13])
        assert same(first.state(), third.state())


def check_forecasts_change_nothing(make: Factory) -> None:
    X, y = stream(10)
    model = make().learn_many(X[:80], y[:80])
    before = model.state()
    given = X.copy()
    for x in X[80:]:
        model.score_one(x), model.predict_one(x), model.predict_proba_one(x)
    model.score_many(X), model.predict_many(X), model.predict_proba_many(X)
    assert same(before, model.state())
    model.test_then_learn_many(X, y)
    assert (given == X).all()


def check_many_forecasts_equal_single_ones(make: Factory) -> None:
    X, _ = stream(11)
    model = trained(make, seed=12)
    assert model.score_many(X).tolist() == [model.score_one(x) for x in X]
    assert list(model.predict_many(X)) == [model.predict_one(x) for x in X]
    assert model.predict_proba_many(X)[:, 1].tolist() == [model.predict_proba_one(x)[1] for x in X]


def check_output_comes_in_the_kind_that_went_in(make: Factory) -> None:
    X, y = stream(13)
    frame = pd.DataFrame(dicts(X), index=[f"row{i}" for i in range(len(X))])
    model = make().learn_many(frame, pd.Series(y, index=frame.index))
    for out in (model.score_many(frame), model.predict_many(frame), model.predict_proba_many(frame)):
        assert out.index.equals(frame.index)
    assert list(model.predict_proba_many(frame).columns) == [0, 1]
    assert isinstance(model.score_many(pl.DataFrame(dicts(X))), pl.Series)
    assert isinstance(model.predict_proba_many(pl.DataFrame(dicts(X))), pl.DataFrame)
    assert isinstance(model.score_many(dicts(X)), np.ndarray)


def check_labels_of_any_two_kinds(make: Factory) -> None:
    X, y = stream(14)
    base = make().learn_many(X, y).score_many(X)
    for negative, positive in ((False, True), (-1, 1), (0.0, 1.0), ("no", "yes"), (np.int8(3), np.int8(7)), (5, 1)):
        labels = [positive if label else negative for label in y]
        model = make()
        for x, label in zip(X, labels, strict=True):
            model.learn_one(x, label)
        assert model.score_many(X).tolist() == base.tolist()
        predicted = [p for p in (model.predict_one(x) for x in X) if p is not None]
        assert {type(p) for p in predicted} == {type(positive)}
        assert set(predicted) <= {negative, positive}


def check_the_positive_label_may_come_first_or_be_named(make: Factory) -> None:
    X, y = stream(15)
    first_positive = np.concatenate([np.flatnonzero(y == 1)[:7], np.flatnonzero(y == 0)[:9]])
    X, y = np.concatenate([X[first_positive], X]), np.concatenate([y[first_positive], y])
    words = np.where(y == 1, "yes", "no")
    plain = make().learn_many(X, y)
    late, one = make().learn_many(X, words), make()
    for x, label in zip(X, words, strict=True):
        one.learn_one(x, str(label))
    arrays = [{k: v for k, v in m.state().items() if k.startswith(("array", "number"))} for m in (plain, late, one)]
    assert same(arrays[0], arrays[1])
    assert same(arrays[0], arrays[2])
    named = make(positive="no").learn_many(X, words)
    assert np.corrcoef(named.score_many(X), plain.score_many(X))[0, 1] < -0.99


def check_bad_values_are_refused_and_leave_no_trace(make: Factory) -> None:
    X, y = stream(16)
    model = make().learn_many(pd.DataFrame(dicts(X)), y)
    before = model.state()
    good = dicts(X)[0]
    for bad in (float("nan"), float("inf"), -float("inf"), None, "5", "text", 10**400, [1.0], 1j):
        for name in (*good, "new"):
            event = {**good, name: bad}
            for call in (model.score_one, model.predict_one, model.predict_proba_one, lambda e: model.learn_one(e, 1)):
                with pytest.raises(BadValue, match=rf"{name!r}.*row 0"):
                    call(event)
        if not isinstance(bad, (list, complex)):
            with pytest.raises(BadValue, match=r"'f1'.*row 2"):
                model.learn_many([good, good, {**good, "f1": bad}, good], [0, 1, 0, 1])
    for bad in (np.nan, np.inf):
        rows = X.copy()
        rows[33, 2] = bad
        frame = pd.DataFrame(rows, columns=list(good))
        for call in (model.score_many, lambda f: model.learn_many(f, y), lambda f: model.test_then_learn_many(f, y)):
            with pytest.raises(BadValue, match=r"'f2'.*row 33"):
                call(frame)
    with pytest.raises(BadValue):
        model.learn_many(pd.DataFrame({**{k: [v] for k, v in good.items()}, "f3": ["a"]}), [1])
    assert same(before, model.state())


def check_a_third_label_is_refused_and_leaves_no_trace(make: Factory) -> None:
    X, y = stream(17)
    model = make().learn_many(X, y)
    before = model.state()
    for bad in (2, "1", (1,), [1], 0.5):
        with pytest.raises(BadLabel):
            model.learn_one(X[0], bad)
    with pytest.raises(BadLabel):
        model.learn_many(X, np.where(np.arange(len(y)) == 40, 2, y))
    assert same(before, model.state())
    fresh = make()
    with pytest.raises(BadLabel):
        fresh.learn_many(X[:3], [0, 1, 2])
    assert same(make().state(), fresh.state())


def check_batches_that_do_not_fit_are_refused(make: Factory) -> None:
    X, y = stream(18)
    model = make().learn_many(pd.DataFrame(dicts(X)), y)
    before = model.state()
    for call in (
        lambda: model.learn_many(pd.DataFrame(dicts(X)), y[:-1]),
        lambda: model.learn_many(X, y),  # by position after names
        lambda: model.learn_one(X, 1),
        lambda: model.score_one(3.0),
        lambda: model.learn_many(pd.DataFrame(X[:, [0, 0]], columns=["a", "a"]), y),
        lambda: model.learn_many(pd.DataFrame(dicts(X)), pd.Series(y, index=np.arange(len(y)) + 1)),
    ):
        with pytest.raises(BadShape):
            call()
    assert same(before, model.state())


def check_new_features_widen_and_absent_ones_are_zero(make: Factory) -> None:
    X, y = stream(19)
    late = X.copy()
    late[:60, 3:] = 0.0
    full, growing = make(), make()
    full.learn_many(late, y)
    for k, (x, label) in enumerate(zip(late, y, strict=True)):
        growing.learn_one({j: v for j, v in enumerate(x) if k >= 60 or j < 3}, label)
    assert same(full.state(), growing.state())
    assert growing.n_features == X.shape[1]
    narrow = {0: 1.0}
    assert growing.score_one(narrow) == growing.score_one({j: float(j == 0) for j in range(X.shape[1])})
    assert growing.score_one({**narrow, 99: 5.0}) == growing.score_one(narrow)


def check_max_features_bounds_the_width(make: Factory) -> None:
    X, y = stream(20)
    model = make(max_features=5)
    model.learn_many(pd.DataFrame(dicts(X)), y)
    before = model.state()
    for k in range(50):
        with pytest.raises(TooManyFeatures, match="max_features=5"):
            model.learn_one({**dicts(X)[0], f"once{k}": 1.0}, 1)
    with pytest.raises(TooManyFeatures, match="row 2"):
        model.learn_many([dicts(X)[0], dicts(X)[1], {"once": 1.0}], [0, 1, 1])
    assert same(before, model.state())


def check_defined_from_the_first_event(make: Factory) -> None:
    X, y = stream(21)
    model = make()
    assert model.predict_one(X[0]) is None
    assert np.isfinite(model.score_one(X[0]))
    assert model.predict_proba_one(X[0]) == {}
    assert list(model.predict_many(X[:3])) == [None] * 3
    model.learn_many(X[:0], y[:0])
    model.learn_one({}, 1)
    ones = make()
    for x in X:
        ones.learn_one(x, 1)
        assert np.isfinite(ones.score_one(x))
    assert ones.predict_one(X[0]) == 1
    assert ones.predict_proba_one(X[0]) == {1: 1.0}
    ones.learn_many(X, y)
    assert np.isfinite(ones.score_many(X)).all()


def check_events_with_nothing_but_zeros_are_learned(make: Factory) -> None:
    zeros, y = np.zeros((40, 3)), np.arange(40) % 2
    one, many = make(), make().learn_many(zeros, y)
    for x, label in zip(zeros, y, strict=True):
        one.learn_one(x, label)
    assert same(one.state(), many.state())
    assert np.isfinite(many.score_many(zeros)).all()
    X, y = stream(24, n=40)
    assert np.isfinite(many.learn_many(X, y).score_many(X)).all()


def check_never_nan(make: Factory) -> None:
    rng = np.random.default_rng(22)
    n = 400
    y = rng.integers(0, 2, n)
    columns = {
        "huge_mean": 1e9 + rng.normal(size=n),
        "constant": np.full(n, 7.0),
        "twin": np.repeat(rng.normal(size=n // 2), 2),
        "once": np.where(np.arange(n) == 50, 1.0, 0.0),
        "first": np.where(np.arange(n) == 0, 5e19, rng.normal(size=n) + y),
        "big": rng.normal(size=n) * 1e150,
        "tiny": rng.normal(size=n) * 1e-150,
        "late": np.where(np.arange(n) < 300, 0.0, rng.normal(size=n)),
    }
    columns["copy"] = columns["twin"].copy()
    for k in range(4):
        columns[f"hot{k}"] = (np.arange(n) % 4 == k).astype(float)
    X = np.column_stack([columns[name] for name in sorted(columns)])
    model = make()
    scores = model.test_then_learn_many(X, y)
    assert np.isfinite(scores).all()
    p = model.predict_proba_many(X)
    assert ((p >= 0) & (p <= 1)).all()
    for key, value in model.state().items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            assert np.isfinite(value).all(), key


def check_unlabelled_events_teach_a_supervised_learner_nothing(make: Factory) -> None:
    X, y = stream(23)
    model = make().learn_many(X, y)
    before = model.state()
    model.learn_one(X[0], None).learn_one(X[1]).learn_one(X[2], float("nan"))
    model.learn_many(X, [None] * len(X)).learn_many(X)
    assert same(before, model.state())
    mixed = make().learn_many(np.repeat(X, 2, axis=0), [v for label in y for v in (label, None)])
    assert same(mixed.state(), make().learn_many(X, y.astype(object)).state()) or mixed.score_one(
        X[0]
    ) == model.score_one(X[0])


def check_clone_is_untrained(make: Factory) -> None:
    model = trained(make)
    assert same(model.clone().state(), make().state())
    assert model.clone(positive=0).positive == 0
    with pytest.raises(ValueError, match="nonsense"):
        model.clone(nonsense=1)
    assert copy.deepcopy(model).score_one([1.0] * 5) == model.score_one([1.0] * 5)


def check_checking_a_block_changes_nothing(make: Factory) -> None:
    X, y = stream(24)
    model = make().learn_many(X[:50], y[:50])
    before = model.state()
    model.check((0, 1, 2, 3, 4, 77), np.column_stack([X, np.ones(len(X))]), y)
    with pytest.raises(BadLabel):
        model.check((0, 1, 2, 3, 4), X, np.where(y == 1, 9, y))
    assert same(before, model.state())


def check_abstains_below_its_cost_only(make: Factory) -> None:
    X, y = stream(25)
    model = make().learn_many(X, y)
    assert None not in list(model.predict_many(X))
    model.reject_cost = 0.2
    p = model.predict_proba_many(X)
    for x, row, label in zip(X, p, model.predict_many(X), strict=True):
        assert (label is None) == (row.max() < 0.8)
        assert model.predict_one(x) == label


CHECKS = [check for name, check in sorted(globals().items()) if name.startswith("check_")]
