"""Votes of linear members on rows as they come."""

import numpy as np
import pytest

from streamlearn.kernels.lines import line_votes
from tests.naive import muffled as naive


def test_votes_are_those_of_the_log_odds():
    rng = np.random.default_rng(0)
    X, line = rng.normal(size=(30, 4)) * 3, rng.normal(size=9)
    out = np.empty(30)
    line_votes(X, line, out)
    expected = [naive.line_vote(row, line[0], line[1:5].tolist(), line[5:].tolist()) for row in X.tolist()]
    assert out == pytest.approx(expected, abs=1e-14)
    one = np.empty(1)
    for i in range(30):
        line_votes(X[i : i + 1], line, one)
        assert one[0] == out[i]


def test_rows_and_weights_of_any_size_give_a_vote():
    rows = np.array([[1e308, -1e308], [0.0, 0.0], [-1e308, 1e308]])
    out = np.empty(3)
    for w in (0.0, 1.0, 1e300, -1e300):
        with np.errstate(over="ignore", invalid="ignore"):  # an interpreted kernel warns of what it is about
            line_votes(rows, np.array([0.5, w, w, w, -w]), out)
        assert (np.abs(out) <= 1).all()
