"""Ranking scores and decisions meet at one score."""

import numpy as np
import pytest

from streamlearn.learners.base import BinaryScorer
from streamlearn.learners.registry import MODULES, learner_class

ROUNDING = 1e-9
"""Of the logarithm of a probability near one half, and of the score."""

VARIANTS = [
    ("AUCRO", {"margin": "paper", "reject_cost": 0.3}),
    ("AUCRO", {"half_life": 30.0}),
    ("AUCRO", {"half_life": 30.0, "clock": "class"}),
    ("AUCRO", {"solver": "sgd"}),
    ("AUCRO", {"covariance": "diagonal", "half_life": 30.0, "margin": "paper", "reject_cost": 0.3}),
    ("AUCRO", {"covariance": "means", "half_life": 30.0, "clock": "class"}),
]


def scorers() -> list:
    plain = [(name, {}) for name in MODULES if issubclass(learner_class(name), BinaryScorer)]
    return [pytest.param(name, params, id=f"{name}-{params}") for name, params in plain + VARIANTS]


@pytest.mark.parametrize("n_rows", [0, 1, 5, 150])
@pytest.mark.parametrize(("name", "params"), scorers())
def test_decisions_change_at_the_even_score(name, params, n_rows):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + 0.7 * rng.normal(size=300) > 0.8).astype(int)  # one in five
    small = {"n_trees": 5} if "Mower" in name or "Marvin" in name else {}
    model = learner_class(name)(**params, **small).learn_many(X[:n_rows], y[:n_rows])

    tested, _ = model.forecast_columns((0, 1, 2), X)

    above = tested.scores - model.even_score()
    sure = np.abs(above) > ROUNDING
    forced = model.clone(reject_cost=0.5)._decide(tested.probabilities) if name == "AUCRO" else tested.decisions
    assert ((above > 0) == (forced == 1.0))[sure].all()
    if n_rows == 150:
        assert 0 < (forced == 1.0).mean() < 1
