import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlearn.kernels.rank import HIGHER, LOWER, N_NEGATIVE, N_POSITIVE, ROOT, empty_window, window_add
from tests.naive.evaluation import pair_counts

# Interpreted kernels are some hundred times slower.
N_EVENTS = 300 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 3000

events = st.lists(
    st.tuples(st.integers(0, 1), st.one_of(st.integers(-3, 3).map(float), st.floats(allow_nan=False))), max_size=40
)


def arrays(pairs):
    return np.array([y for y, _ in pairs], np.int8), np.array([s for _, s in pairs], np.float64)


@given(events, st.integers(1, 12), st.sampled_from([0.0, 0.5, 2.0]))
def test_a_window_counts_pairs_as_a_loop_over_its_last_events_does(pairs, window, tau):
    codes, scores = arrays(pairs)
    tree = empty_window(window)
    window_add(*tree, codes, scores, tau)
    with np.errstate(invalid="ignore", over="ignore"):
        expected = pair_counts(codes[-window:].tolist(), scores[-window:].tolist(), tau)
    counters = tree[0]
    actual = (counters[HIGHER], counters[LOWER], counters[N_NEGATIVE] * counters[N_POSITIVE])
    assert actual == expected


@given(events, st.integers(1, 12), st.integers(0, 40))
def test_a_window_fed_in_two_parts_holds_the_same_arrays(pairs, window, cut):
    codes, scores = arrays(pairs)
    one, two = empty_window(window), empty_window(window)
    window_add(*one, codes, scores, 0.5)
    window_add(*two, codes[:cut], scores[:cut], 0.5)
    window_add(*two, codes[cut:], scores[cut:], 0.5)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def depth(links, root):
    deepest, level = 0, [int(root)]
    while level:
        deepest += 1
        level = [int(child) for node in level for child in links[node] if child]
    return deepest


@pytest.mark.parametrize("order", ["random", "ascending", "descending", "tied", "zigzag"])
def test_the_tree_stays_ordered_complete_and_shallow_in_any_order_of_scores(order):
    window = N_EVENTS // 3
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 2, N_EVENTS).astype(np.int8)
    scores = {
        "random": rng.normal(size=N_EVENTS),
        "ascending": np.arange(N_EVENTS, dtype=float),
        "descending": -np.arange(N_EVENTS, dtype=float),
        "tied": np.zeros(N_EVENTS),
        "zigzag": np.arange(N_EVENTS) * (-1.0) ** np.arange(N_EVENTS),
    }[order]
    tree = empty_window(window)
    window_add(*tree, codes, scores, 0.0)
    counters, keys, links, below = tree[:4]
    found, stack, node = [], [], int(counters[ROOT])
    while stack or node:
        while node:
            stack.append(node)
            node = int(links[node, 0])
        node = stack.pop()
        found.append(float(keys[node]))
        node = int(links[node, 1])
    assert found == sorted(scores[-window:].tolist())
    assert below[counters[ROOT]].tolist() == np.bincount(codes[-window:], minlength=2).tolist()
    # A treap of n nodes is about 2 ln n deep on average and 4.3 ln n at its deepest leaf.
    assert depth(links, counters[ROOT]) <= 5 * np.log(window)
