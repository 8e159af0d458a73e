"""Every learner keeps the promises of the public contract."""

import inspect

import pytest

from streamlearn.learners.base import BinaryScorer
from streamlearn.learners.registry import MODULES, learner_class
from tests.contract import CHECKS
from tests.naive.logistic import NaiveLogistic

# Small and seldom refitted: the promises do not depend on the size.
_MUFFLED = {"n_trees": 5, "refit_share": 0.9, "unlabelled_buffer": 40}

VARIANTS = {
    "HedgeMower1": (_MUFFLED, {**_MUFFLED, "estimator": "paper", "refit_every": 40}),
    "HedgeMower": (_MUFFLED,),
    "Marvin": ({**_MUFFLED, "n_stages": 2},),
    "MarvinC": ({**_MUFFLED, "members": "forest, logistic", "n_stages": 2},),
    "MarvinD": (
        {**_MUFFLED, "members": "forest", "n_stages": 2},
        {**_MUFFLED, "estimator": "paper", "n_rounds": 4, "refit_every": 40},
    ),
    "FSAUC": ({}, {"scale": "none", "learning_rate": 0.01}, {"scale": "range", "radius": 0.5}),
    "HingeReject": ({}, {"reject_cost": 0.3}, {"scale": "none", "l2": 0.01}),
    "LogisticReject": ({}, {"scale": "none"}, {"scale": "range", "l2": 0.01}),
    "OAMgd": ({}, {"buffer_size": 7, "scale": "range"}, {"C": 0.1, "scale": "none"}),
    "OAMseq": ({}, {"buffer_size": 7, "scale": "none"}, {"C": 0.1, "scale": "range"}),
    "AdaptiveAUCRO": (
        {},
        {"reject": "rate"},
        {"covariance": "diagonal"},
        {"covariance": "means"},
        {"covariance": "sketch", "sketch_size": 3},
    ),
    "AUCRO": (
        {},
        {"reject": "rate", "reject_rate": 0.4},
        {"solver": "sgd"},
        {"half_life": 50.0},
        {"half_life": 50.0, "clock": "class"},
        {"covariance": "diagonal"},
        {"covariance": "diagonal", "half_life": 50.0, "reject": "rate"},
        {"covariance": "diagonal", "half_life": 5.0, "clock": "class", "solve_every": 7},
        {"covariance": "means"},
        {"covariance": "means", "half_life": 50.0, "margin": "paper"},
        {"covariance": "means", "half_life": 5.0, "clock": "class", "scale": "none"},
        {"covariance": "sketch", "sketch_size": 3, "half_life": 20.0},
    ),
}

# HingeReject abstains by its score, whatever its probability; a held rate finds its cost. Both are tested elsewhere.
BY_COST = "check_abstains_below_its_cost_only"
OWN_RULES = {("HingeReject", BY_COST)}


def subjects() -> list:
    out = [pytest.param(NaiveLogistic, {}, id="NaiveLogistic")]
    for name in MODULES:
        if not issubclass(learner_class(name), BinaryScorer):
            continue  # regressors, transformers and estimators have checks of their own
        for params in VARIANTS.get(name, ({},)):
            label = name + "".join(f"-{k}={v}" for k, v in params.items())
            out.append(pytest.param(learner_class(name), params, id=label))
    return out


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize(("cls", "params"), subjects())
def test_learner(cls, params, check, tmp_path):
    if (cls.__name__, check.__name__) in OWN_RULES or (params.get("reject") == "rate" and check.__name__ == BY_COST):
        pytest.skip("abstains by a rule of its own, tested beside it")

    if getattr(cls, "learns_unlabelled", False) and check.__name__.startswith("check_unlabelled"):
        pytest.skip("semi-supervised: unlabelled events are learned, tested beside it")

    def make(**changes):
        return cls(**{**params, **changes})

    needs_path = "path" in inspect.signature(check).parameters
    check(make, tmp_path / "model.safetensors") if needs_path else check(make)
