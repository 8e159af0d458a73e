"""scikit-learn's own conformance suite over every estimator."""

from __future__ import annotations

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks
from streamlearn.adapters import sklearn as adapters

# Small and seldom refitted; mini-batches as small as the suite's sets of rows.
PARAMS: dict[str, dict] = {
    "HedgeMower1": {"n_trees": 5},
    "HedgeMower": {"n_trees": 5},
    "Marvin": {"n_trees": 5, "n_stages": 1},
    "MarvinC": {"n_trees": 5, "n_stages": 1},
    "MarvinD": {"n_trees": 5, "n_stages": 1},
    "ORL": {"batch_size": 20},
    "ORLPCA": {"batch_size": 20},
}

EXPECTED_FAILURES = {
    "HingeReject": {
        "check_classifiers_train": "decides by the sign of its score; probabilities are a calibrated map of it, whose "
        "1/2 lies elsewhere, as with other support vector machines",
    },
}


def estimators() -> list[BaseEstimator]:
    return [getattr(adapters, name)(**PARAMS.get(name, {})) for name in adapters.__all__]


def expected_failures(estimator: BaseEstimator) -> dict[str, str]:
    return EXPECTED_FAILURES.get(type(estimator).__name__, {})


# Sets of fewer rows than a mini-batch are part of the suite.
@pytest.mark.filterwarnings("ignore:ORL.*fit must get batch_size:UserWarning")
@parametrize_with_checks(estimators(), expected_failed_checks=expected_failures)
def test_the_suite_of_scikit_learn_passes(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")  # array API, which needs a switch of SciPy's
@pytest.mark.parametrize("name", EXPECTED_FAILURES)
def test_what_is_expected_to_fail_does(name):
    estimator = getattr(adapters, name)()

    results = check_estimator(estimator, expected_failed_checks=expected_failures(estimator), on_fail=None)

    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(EXPECTED_FAILURES[name])
    assert not [r for r in results if r["status"] == "failed"]
