"""Rounds in worker processes."""

import numpy as np
import pytest

from streamlearn.errors import BadParameter, BadSnapshot, RoundFailed
from streamlearn.runtime.executor import LocalExecutor
from streamlearn.runtime.rounds import Part, answer, estimate_of, packed_model
from tests.runtime.round_tasks import Deadly, Failing, Summed

PARTS = [Part(k, "seed", k, 200) for k in range(5)]


@pytest.fixture(scope="module")
def executor():
    with LocalExecutor(2) as opened:
        yield opened


def test_estimates_come_in_the_order_of_the_parts_and_equal_those_of_this_process(executor):
    found = executor.run_round(Summed(), PARTS)
    here = [estimate_of(answer(Summed(), part, b"")) for part in PARTS]
    assert [one["sum"] for one in found] == [one["sum"] for one in here]
    assert all(np.array_equal(a["values"], b["values"]) for a, b in zip(found, here, strict=True))


def test_the_model_reaches_every_part(executor):
    model = {"factor": 2.0, "array": np.arange(3.0)}
    twice, once = executor.run_round(Summed(), PARTS, model), executor.run_round(Summed(), PARTS)
    assert [one["sum"] for one in twice] == [2.0 * one["sum"] for one in once]


def test_a_lost_worker_means_the_same_task_again(executor, tmp_path):
    assert [one["part"] for one in executor.run_round(Deadly(str(tmp_path)), PARTS)] == [0, 1, 2, 3, 4]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_part_that_loses_every_worker_ends_the_round(tmp_path):
    with (
        LocalExecutor(1) as executor,
        pytest.raises(RoundFailed, match="must live through part 1 of seed, got 4 lost ones"),
    ):
        executor.run_round(Deadly(str(tmp_path), times=99), PARTS[:3])


def test_what_a_part_raises_comes_through_and_the_workers_stay(executor):
    with pytest.raises(ValueError, match="part 2 is not to be had"):
        executor.run_round(Failing(), PARTS)
    assert len(executor.run_round(Summed(10), PARTS)) == 5


def test_an_estimate_altered_on_its_way_is_refused():
    data = bytearray(answer(Summed(10), PARTS[0], packed_model(None)))
    data[-3] ^= 1
    with pytest.raises(BadSnapshot, match="checksum"):
        estimate_of(bytes(data))


@pytest.mark.parametrize("n_workers", [0, -1, True, 1.5])
def test_workers_are_counted(n_workers):
    with pytest.raises(BadParameter, match="n_workers must be"):
        LocalExecutor(n_workers)
