"""The promises of learners without a target as functions over a factory of untrained ones."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamlearn.errors import BadShape, BadValue, TooManyFeatures
from streamlearn.learners.registry import load
from streamlearn.learners.transformer import Estimator
from tests.contract import dicts, same

Factory = Callable[..., Estimator]


def rows(seed: int, n: int = 120, m: int = 5, zeros: float = 0.2) -> np.ndarray:
    """Return float64[n, m]: two strong directions, some zeros, every ninth row far away."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, m)) * 3 + rng.normal(size=(n, m))
    X[::9] *= 50
    X[rng.random((n, m)) < zeros] = 0.0
    return X


def check_many_equals_one_by_one(make: Factory) -> None:
    X = rows(1)
    one = make()
    for x in X:
        one.learn_one(x)
    rng = np.random.default_rng(2)
    for _ in range(3):
        many = make()
        for part in np.split(X, np.sort(rng.choice(len(X), size=6))):
            many.learn_many(part)
        assert same(one.state(), many.state())


def check_dicts_arrays_and_frames_agree(make: Factory) -> None:
    events = dicts(rows(3))
    one = make()
    for x in events:
        one.learn_one(x)
    for form in (events, pd.DataFrame(events), pl.DataFrame(events), pa.Table.from_pylist(events)):
        assert same(one.state(), make().learn_many(form).state())


def check_column_order_is_irrelevant(make: Factory) -> None:
    frame = pd.DataFrame(dicts(rows(4)))
    assert same(make().learn_many(frame).state(), make().learn_many(frame[list(frame.columns[::-1])]).state())


def check_zeros_may_be_left_out(make: Factory) -> None:
    X = rows(5, zeros=0.6)
    dense, sparse = make(), make()
    for x in dicts(X):
        dense.learn_one(x)
        sparse.learn_one({k: v for k, v in x.items() if v != 0})
    assert same(dense.state(), sparse.state())


def check_new_features_widen_and_absent_ones_are_zero(make: Factory) -> None:
    late = rows(19)
    late[:60, 3:] = 0.0
    full, growing = make().learn_many(late), make()
    for k, x in enumerate(late):
        growing.learn_one({j: v for j, v in enumerate(x) if k >= 60 or j < 3})
    assert same(full.state(), growing.state())
    assert growing.n_features == late.shape[1]


def check_test_then_learn_is_error_then_learn(make: Factory) -> None:
    X = rows(6)
    one, many, columns = make(), make(), make()
    expected = [one.test_then_learn_many(x.reshape(1, -1))[0] for x in X]
    actual = np.concatenate([many.test_then_learn_many(X[:50]), many.test_then_learn_many(X[50:])])
    tested = columns.test_then_learn_columns(tuple(range(X.shape[1])), X, np.full(len(X), None))
    assert actual.tolist() == expected
    assert tested.scores.tolist() == expected
    assert same(one.state(), many.state())
    assert same(one.state(), columns.state())
    assert same(one.state(), make().learn_many(X).state())


def check_restored_equals_never_stopped(make: Factory, path: Any) -> None:
    X = rows(8)
    straight = make().learn_many(X)
    for k in (0, 1, 17, 30, 60, 113):
        first = make().learn_many(X[:k])
        first.save(path)
        again = load(path)
        assert same(first.state(), again.state())
        assert same(straight.state(), again.learn_many(X[k:]).state())
        other = make().learn_many(rows(9))
        other.restore(first.state())
        assert same(other.state(), first.state())
        assert same(straight.state(), other.learn_many(X[k:]).state())


def check_errors_change_nothing(make: Factory) -> None:
    X = rows(10)
    model = make().learn_many(X[:80])
    before, given = model.state(), X.copy()
    model.clone().test_then_learn_many(X)
    errors = model.error_many(X)
    assert [model.error_one(x) for x in X] == errors.tolist()
    assert same(before, model.state())
    assert (given == X).all()


def check_bad_values_are_refused_and_leave_no_trace(make: Factory) -> None:
    X = rows(16)
    model = make().learn_many(pd.DataFrame(dicts(X)))
    before, good = model.state(), dicts(X)[0]
    for bad in (float("inf"), -float("inf"), "5", 10**400, [1.0], 1j):
        for name in (*good, "new"):
            with pytest.raises(BadValue, match=rf"{name!r}.*row 0"):
                model.learn_one({**good, name: bad})
    broken = X.copy()
    broken[33, 2] = np.inf
    frame = pd.DataFrame(broken, columns=list(good))
    for call in (model.learn_many, model.test_then_learn_many):
        with pytest.raises(BadValue, match=r"'f2'.*row 33"):
            call(frame)
    with pytest.raises(BadShape):
        model.learn_many(X)  # by position after names
    assert same(before, model.state())


def check_max_features_bounds_the_width(make: Factory) -> None:
    X = rows(20)
    model = make(max_features=5).learn_many(X)
    before = model.state()
    with pytest.raises(TooManyFeatures, match="max_features=5"):
        model.learn_many([dict(enumerate(X[0])), {9: 1.0}])
    assert same(before, model.state())


def check_defined_from_the_first_event(make: Factory) -> None:
    X = rows(21)
    model = make()
    model.learn_many(X[:0]).learn_one({})
    assert np.isfinite(model.test_then_learn_many(X[:1])).all()
    constant = make().learn_many(np.ones((90, 4)))
    assert np.isfinite(constant.test_then_learn_many(X[:, :4])).all()


def check_events_with_nothing_but_zeros_are_learned(make: Factory) -> None:
    zeros = np.zeros((700, 3))
    assert np.isfinite(make().learn_many(zeros).test_then_learn_many(rows(9))).all()
    one = make()
    for row in zeros:
        one.learn_one(row)
    assert same(one.state(), make().learn_many(zeros).state())


def check_never_nan(make: Factory) -> None:
    rng = np.random.default_rng(22)
    n = 300
    X = np.column_stack(
        [
            1e9 + rng.normal(size=n),
            np.full(n, 7.0),
            np.where(np.arange(n) == 50, 1.0, 0.0),
            np.where(np.arange(n) == 0, 5e19, rng.normal(size=n)),
            rng.normal(size=n) * 1e150,
            rng.normal(size=n) * 1e-150,
            np.where(np.arange(n) < 200, 0.0, rng.normal(size=n)),
            *((np.arange(n) % 3 == k).astype(float) for k in range(3)),
        ]
    )
    model = make()
    assert np.isfinite(model.test_then_learn_many(X)).all()
    for key, value in model.state().items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            assert np.isfinite(value).all(), key


def check_clone_is_untrained(make: Factory) -> None:
    model = make().learn_many(rows(0))
    assert same(model.clone().state(), make().state())
    with pytest.raises(ValueError, match="nonsense"):
        model.clone(nonsense=1)
    assert same(copy.deepcopy(model).state(), model.state())


def check_checking_a_block_changes_nothing(make: Factory) -> None:
    X = rows(24)
    model = make().learn_many(X[:50])
    before = model.state()
    model.check((*range(5), 77), np.column_stack([X, np.ones(len(X))]), np.full(len(X), None))
    assert same(before, model.state())


CHECKS = [check for name, check in sorted(globals().items()) if name.startswith("check_")]
