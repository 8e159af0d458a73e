"""Rounds some of whose parts an adversary wrote: what the ways of merging make of them."""

import numpy as np
import pytest

from streamlearn.learners.merging import merge_learners
from streamlearn.learners.registry import from_state
from streamlearn.runtime.executor import LocalExecutor
from streamlearn.runtime.rounds import Part
from tests.runtime.round_tasks import Regressed

N_PARTS, N_POISONED = 20, 9  # 45 %
PARTS = [Part(k, "seed", k, 400) for k in range(N_PARTS)]


@pytest.fixture(scope="module")
def learned():
    """Models of the parts: clean, with the signs turned, and with coefficients of another order."""
    with LocalExecutor(2) as executor:
        tasks = {"clean": Regressed(0, 1.0), "turned": Regressed(N_POISONED, -1.0), "far": Regressed(N_POISONED, 1e4)}
        return {name: [from_state(state) for state in executor.run_round(task, PARTS)] for name, task in tasks.items()}


def error(models, how):
    return float(np.linalg.norm(merge_learners(models, how=how).model.coef_ - Regressed.truth))


@pytest.mark.parametrize("kind", ["turned", "far"])
def test_poisoned_parts_do_not_move_the_trimmed_merge_beyond_twice_its_clean_error(learned, kind):
    assert error(learned[kind], "trimmed") < 2.0 * error(learned["clean"], "trimmed")
    assert error(learned[kind], "trimmed") < 2.0 * error(learned["clean"], "mean")
    assert np.count_nonzero(~merge_learners(learned[kind], how="trimmed").found.trusted[:N_POISONED]) == N_POISONED


def test_the_merge_that_nobody_chose_is_the_trimmed_one_and_costs_little_where_all_parts_are_sound(learned):
    found = merge_learners(learned["clean"])
    assert np.array_equal(found.model.coef_, merge_learners(learned["clean"], how="trimmed").model.coef_)
    assert np.count_nonzero(found.found.trusted) >= N_PARTS - 1
    assert error(learned["clean"], "trimmed") < 1.5 * error(learned["clean"], "mean")


@pytest.mark.parametrize("kind", ["turned", "far"])
def test_the_median_moves_no_further_than_one_sound_part_errs(learned, kind):
    parts = [np.linalg.norm(model.coef_ - Regressed.truth) for model in learned["clean"]]

    # The pull of 9 parts in one direction is held by 11 others: up to 9 / sqrt(11^2 - 9^2) = 1.4 of their spread.
    assert error(learned[kind], "median") < 1.5 * np.median(parts)


@pytest.mark.parametrize("kind", ["turned", "far"])
def test_the_mean_fails(learned, kind):
    assert error(learned[kind], "mean") > 20.0 * error(learned["clean"], "mean")
