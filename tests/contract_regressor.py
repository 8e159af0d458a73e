"""The promises of every regressor as functions over a factory of untrained ones."""

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
from streamlearn.learners.registry import load
from streamlearn.learners.regressor import Regressor
from tests.contract import dicts, same

Factory = Callable[..., Regressor]


def stream(seed: int, n: int = 160, m: int = 5, zeros: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Return X float64[n, m] with some zeros and targets, every tenth of them gross."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * [1.0, 10.0, 0.1, 1.0, 3.0][:m] + rng.normal(size=m)
    X[rng.random((n, m)) < zeros] = 0.0
    y = X @ rng.normal(size=m) + 0.1 * rng.normal(size=n)
    y[::10] += 1000.0
    return X, y


def check_many_equals_one_by_one(make: Factory) -> None:
    X, y = stream(1)
    one = make()
    for x, target in zip(X, y, strict=True):
        one.learn_one(x, target)
    rng = np.random.default_rng(2)
    for _ in range(3):
        many = make()
        for part in np.split(np.arange(len(X)), np.sort(rng.choice(len(X), size=6))):
            many.learn_many(X[part], y[part])
        assert same(one.state(), many.state())


def check_dicts_arrays_and_frames_agree(make: Factory) -> None:
    X, y = stream(3)
    events = dicts(X)
    one = make()
    for x, target in zip(events, y, strict=True):
        one.learn_one(x, target)
    for form in (events, pd.DataFrame(events), pl.DataFrame(events), pa.Table.from_pylist(events)):
        assert same(one.state(), make().learn_many(form, y).state())


def check_column_order_is_irrelevant(make: Factory) -> None:
    X, y = stream(4)
    frame = pd.DataFrame(dicts(X))
    straight, turned = make().learn_many(frame, y), make().learn_many(frame[list(frame.columns[::-1])], y)
    assert same(straight.state(), turned.state())


def check_zeros_may_be_left_out(make: Factory) -> None:
    X, y = stream(5, zeros=0.6)
    dense, sparse = make(), make()
    for x, target in zip(dicts(X), y, strict=True):
        dense.learn_one(x, target)
        sparse.learn_one({k: v for k, v in x.items() if v != 0}, target)
        assert dense.predict_one(x) == sparse.predict_one({k: v for k, v in x.items() if v != 0})
    assert same(dense.state(), sparse.state())


def check_new_features_widen_and_absent_ones_are_zero(make: Factory) -> None:
    late, y = stream(19)
    for start in (40, 100):
        X = late.copy()
        X[:start, 3:] = 0.0
        full, growing = make().learn_many(X, y), make()
        for k, (x, target) in enumerate(zip(X, y, strict=True)):
            growing.learn_one({j: v for j, v in enumerate(x) if k >= start or j < 3}, target)
        assert same(full.state(), growing.state())
        assert growing.predict_one({0: 1.0, 99: 5.0}) == growing.predict_one({0: 1.0})


def check_test_then_learn_is_predict_then_learn(make: Factory) -> None:
    X, y = stream(6)
    one, many, columns = make(), make(), make()
    expected = []
    for x, target in zip(X, y, strict=True):
        expected.append(one.predict_one(x))
        one.learn_one(x, target)
    actual = np.concatenate([many.test_then_learn_many(X[:50], y[:50]), many.test_then_learn_many(X[50:], y[50:])])
    tested = columns.test_then_learn_columns(tuple(range(X.shape[1])), X, y)
    assert actual.tolist() == expected
    assert tested.scores.tolist() == expected
    assert tested.predictions.tolist() == expected
    assert (tested.codes == -1).all()
    assert same(one.state(), many.state())
    assert same(one.state(), columns.state())


def check_restored_equals_never_stopped(make: Factory, path: Any) -> None:
    X, y = stream(8)
    straight = make().learn_many(X, y)
    for k in (0, 1, 17, 61, 62, 63, 120):
        first = make().learn_many(X[:k], y[:k])
        first.save(path)
        again = load(path)
        assert same(first.state(), again.state())
        assert again.predict_many(X).tolist() == first.predict_many(X).tolist()
        assert same(straight.state(), again.learn_many(X[k:], y[k:]).state())
        other = make().learn_many(*stream(9))
        other.restore(first.state())
        assert same(straight.state(), other.learn_many(X[k:], y[k:]).state())


def check_predictions_change_nothing(make: Factory) -> None:
    X, y = stream(10)
    model = make().learn_many(X[:100], y[:100])
    before, given = model.state(), X.copy()
    assert model.predict_many(X).tolist() == [model.predict_one(x) for x in X]
    assert same(before, model.state())
    model.test_then_learn_many(X, y)
    assert (given == X).all()


def check_output_comes_in_the_kind_that_went_in(make: Factory) -> None:
    X, y = stream(13)
    frame = pd.DataFrame(dicts(X), index=[f"row{i}" for i in range(len(X))])
    model = make().learn_many(frame, pd.Series(y, index=frame.index))
    assert model.predict_many(frame).index.equals(frame.index)
    assert isinstance(model.predict_many(pl.DataFrame(dicts(X))), pl.Series)
    assert isinstance(model.predict_many(dicts(X)), np.ndarray)


def check_bad_values_are_refused_and_leave_no_trace(make: Factory) -> None:
    X, y = stream(16)
    model = make().learn_many(pd.DataFrame(dicts(X)), y)
    before, good = model.state(), dicts(X)[0]
    for bad in (float("nan"), float("inf"), None, "5", 10**400, [1.0], 1j):
        for name in (*good, "new"):
            for call in (model.predict_one, lambda e: model.learn_one(e, 1.0)):
                with pytest.raises(BadValue, match=rf"{name!r}.*row 0"):
                    call({**good, name: bad})
    broken = X.copy()
    broken[33, 2] = np.nan
    frame = pd.DataFrame(broken, columns=list(good))
    for call in (model.predict_many, lambda f: model.learn_many(f, y), lambda f: model.test_then_learn_many(f, y)):
        with pytest.raises(BadValue, match=r"'f2'.*row 33"):
            call(frame)
    for bad, kind in ((np.inf, BadValue), (10**400, BadValue), ("1.5", BadLabel), ([1.0], BadLabel), (1j, BadLabel)):
        with pytest.raises(kind, match="target"):
            model.learn_one(good, bad)
        with pytest.raises(kind, match="row 2"):
            model.learn_many([good] * 3, [1.0, 2.0, bad])
    for call in (
        lambda: model.learn_many(frame, y[:-1]),
        lambda: model.learn_many(X, y),
        lambda: model.learn_one(X[0], 1),
    ):
        with pytest.raises((BadShape, BadValue)):
            call()
    assert same(before, model.state())


def check_rows_without_a_target_are_predicted_and_teach_nothing(make: Factory) -> None:
    X, y = stream(23)
    model = make().learn_many(X, y)
    before = model.state()
    model.learn_one(X[0], None).learn_one(X[1]).learn_one(X[2], float("nan")).learn_many(X)
    assert same(before, model.state())
    mixed = make().learn_many(np.repeat(X, 2, axis=0), [v for target in y for v in (target, None)])
    assert same(mixed.state(), before)


def check_max_features_bounds_the_width(make: Factory) -> None:
    X, y = stream(20)
    model = make(max_features=5).learn_many(X, y)
    before = model.state()
    with pytest.raises(TooManyFeatures, match="max_features=5"):
        model.learn_many([dict(enumerate(X[0])), {9: 1.0}], [0.0, 1.0])
    assert same(before, model.state())


def check_defined_from_the_first_event(make: Factory) -> None:
    X, y = stream(21)
    model = make()
    assert model.predict_one(X[0]) == 0.0
    model.learn_many(X[:0], y[:0]).learn_one({}, 3.0)
    assert model.predict_one(X[0]) == 3.0
    constant = make().learn_many(np.ones((200, 4)), np.full(200, 7.0))
    assert constant.predict_one(np.ones(4)) == pytest.approx(7.0)
    constant.learn_many(X[:, :4], y)
    assert np.isfinite(constant.predict_many(X[:, :4])).all()


def check_events_with_nothing_but_zeros_are_learned(make: Factory) -> None:
    targets = np.arange(700.0) % 5
    model = make().learn_many(np.zeros((700, 3)), targets)
    assert 0.0 <= model.predict_one({}) <= 4.0
    X, y = stream(9)
    assert np.isfinite(model.learn_many(X, y).predict_many(X)).all()


def check_never_nan(make: Factory) -> None:
    rng = np.random.default_rng(22)
    n = 400
    X = np.column_stack(
        [
            1e9 + rng.normal(size=n),
            np.full(n, 7.0),
            np.where(np.arange(n) == 50, 1.0, 0.0),
            np.where(np.arange(n) == 0, 5e19, rng.normal(size=n)),
            rng.normal(size=n) * 1e150,
            rng.normal(size=n) * 1e-150,
            np.where(np.arange(n) < 300, 0.0, rng.normal(size=n) * 1e200),
            np.where(np.arange(n) == 350, 1e308, rng.normal(size=n)),
            *((np.arange(n) % 3 == k).astype(float) for k in range(3)),
        ]
    )
    y = np.where(np.arange(n) % 40 == 39, 1e300, X[:, 3])
    for targets in (y, y * 0.0, np.where(np.arange(n) < 200, 5.0, y), y * 1e-150):
        model = make()
        assert np.isfinite(model.test_then_learn_many(X, targets)).all()
        for key, value in model.state().items():
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                assert np.isfinite(value).all(), key


def check_clone_is_untrained(make: Factory) -> None:
    model = make().learn_many(*stream(0))
    assert same(model.clone().state(), make().state())
    with pytest.raises(ValueError, match="nonsense"):
        model.clone(nonsense=1)
    assert same(copy.deepcopy(model).state(), model.state())


def check_checking_a_block_changes_nothing(make: Factory) -> None:
    X, y = stream(24)
    model = make().learn_many(X[:80], y[:80])
    before = model.state()
    model.check((*range(5), 77), np.column_stack([X, np.ones(len(X))]), y)
    with pytest.raises(BadValue):
        model.check(tuple(range(5)), X, np.where(np.arange(len(y)) == 3, np.inf, y))
    assert same(before, model.state())


CHECKS = [check for name, check in sorted(globals().items()) if name.startswith("check_")]
