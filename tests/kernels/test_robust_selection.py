"""A trimmed product is that of sorting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn.kernels.robust_selection import trimmed_product
from tests.kernels.robust_values import INTERPRETED, KINDS, N_ROWS, values
from tests.naive import robust as naive

# The sum runs over fixed lanes, the reference adds exactly: they differ by rounding, relative to the largest term.
ROUNDING = 1e-14


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.2, 0.5, 0.95])
def test_product_is_that_of_a_stable_sort(kind, share):
    a, b = values(kind, N_ROWS, 1), values(kind, N_ROWS, 2)
    n_trim = int(share * N_ROWS)
    expected = naive.trimmed_inner_product(a, b, n_trim)
    kept = np.sort(np.abs(a * b))[: N_ROWS - n_trim]
    assert abs(trimmed_product(a, b, n_trim) - expected) <= ROUNDING * kept.max()


@settings(max_examples=10 if INTERPRETED else 300, deadline=None)
@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=70), st.data())
def test_ties_are_dropped_from_the_end(pairs, data):
    a, b = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    n_trim = data.draw(st.integers(0, len(a) - 1))
    assert trimmed_product(a, b, n_trim) * (len(a) - n_trim) == pytest.approx(
        naive.trimmed_inner_product(a, b, n_trim) * (len(a) - n_trim), abs=1e-12
    )
