"""Buffers of a semi-supervised stream."""

import math
import os

import numpy as np
import pytest

from streamlearn.kernels import muffled as kernels

# Interpreted, products of 64-bit seeds warn where compiled ones wrap around.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"


class Buffers:
    def __init__(self, size=5, reservoir=4, kind=kernels.UNIFORM, least=3, share=0.5, seed=1):
        self.labelled, self.labels = np.zeros((size, 1)), np.zeros(size, dtype=np.int8)
        self.unlabelled = np.zeros((reservoir, 1))
        self.counters = np.zeros(kernels.N_COUNTERS, dtype=np.int64)
        self.sizes, self.share = np.array([size, reservoir, kind, least, seed]), share

    def absorb(self, values, codes, first=0, stop_at_label=False):
        X = np.asarray(values, dtype=float).reshape(-1, 1)
        return kernels.absorb(
            X,
            np.asarray(codes, dtype=np.int8),
            first,
            stop_at_label,
            self.labelled,
            self.labels,
            self.unlabelled,
            self.counters,
            self.sizes,
            self.share,
        )


def test_the_ring_keeps_the_last_labelled_rows_and_counts_their_classes():
    b = Buffers(size=3, least=100)
    b.absorb(range(7), [1, 0, -1, 1, 1, 0, 1])
    assert sorted(b.labelled[:, 0].tolist()) == [4.0, 5.0, 6.0]
    assert b.counters[[kernels.POSITIVE, kernels.NEGATIVE]].tolist() == [2, 1]
    assert b.counters[[kernels.EVENTS, kernels.LABELLED, kernels.UNLABELLED]].tolist() == [7, 6, 1]


def test_a_refit_is_due_after_enough_labels_with_two_of_either_class():
    b = Buffers(size=100, least=3, share=0.0)
    assert b.absorb(range(6), [1, 1, 1, 1, 0, 0]) == 6
    assert b.counters[kernels.DUE] == 1
    b.counters[kernels.NEW] = b.counters[kernels.DUE] = 0
    assert b.absorb(range(6), [-1, 1, -1, 1, -1, 1], first=1) == 6
    assert b.counters[kernels.DUE] == 1
    b = Buffers(size=100, least=2, share=0.5)
    stops = []
    at = 0
    codes = [k % 2 for k in range(60)]
    while at < 60:
        at = b.absorb(range(60), codes, first=at)
        if b.counters[kernels.DUE]:
            stops.append(at)
            b.counters[kernels.NEW] = b.counters[kernels.DUE] = 0
    assert stops == [4, 8, 16, 32]  # half of the labels in the buffer are new each time


def test_it_stops_behind_each_label_where_asked():
    b = Buffers(least=100)
    assert b.absorb(range(5), [-1, -1, 1, -1, 0], stop_at_label=True) == 3
    assert b.absorb(range(5), [-1, -1, 1, -1, 0], first=3, stop_at_label=True) == 5


@pytest.mark.parametrize("kind", [kernels.UNIFORM, kernels.BIASED, kernels.SLIDING])
def test_one_by_one_and_many_fill_the_reservoir_alike(kind):
    one, many = Buffers(kind=kind), Buffers(kind=kind)
    values = np.arange(50.0)
    for v in values:
        one.absorb([v], [-1])
    many.absorb(values[:20], [-1] * 20)
    many.absorb(values[20:], [-1] * 30)
    assert one.unlabelled.tolist() == many.unlabelled.tolist()


def test_the_uniform_reservoir_keeps_every_row_with_the_same_chance():
    n, size, runs = 40, 8, 60 if INTERPRETED else 3000
    kept = np.zeros(n)
    for seed in range(runs):
        b = Buffers(reservoir=size, seed=seed)
        b.absorb(range(n), [-1] * n)
        kept[b.unlabelled[:, 0].astype(int)] += 1
    assert kept.sum() == runs * size
    p = size / n
    deviations = (kept - runs * p) / math.sqrt(runs * p * (1 - p))
    assert np.abs(deviations).max() < 4.5  # forty standard normals


def test_ages_in_the_biased_reservoir_are_geometric_with_mean_b_minus_one():
    size, n, runs = 50, 600, 2 if INTERPRETED else 60
    ages = []
    for seed in range(runs):
        b = Buffers(reservoir=size, kind=kernels.BIASED, seed=seed)
        b.absorb(range(n), [-1] * n)
        ages.append(n - 1 - b.unlabelled[:, 0])
    standard_error = size / math.sqrt(size * runs)
    assert np.mean(ages) == pytest.approx(size - 1, abs=4.5 * standard_error)


def test_the_sliding_reservoir_keeps_the_last_rows():
    b = Buffers(reservoir=4, kind=kernels.SLIDING)
    b.absorb(range(11), [-1] * 11)
    assert sorted(b.unlabelled[:, 0].tolist()) == [7.0, 8.0, 9.0, 10.0]


def test_without_a_reservoir_unlabelled_rows_are_only_counted_as_events():
    b = Buffers()
    b.sizes[1] = 0
    b.absorb(range(3), [-1, -1, -1])
    assert b.counters[kernels.EVENTS] == 3
    assert not b.unlabelled.any()
