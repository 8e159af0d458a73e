"""The array that scorers of one layout live in."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamlearn.learners.auc.arena import BLOCK, capacity
from streamlearn.learners.auc.fsauc import FSAUC


@given(st.integers(0, 100_000))
def test_room_is_whole_blocks_and_at_most_an_eighth_more_than_needed(n):
    room = capacity(n)
    assert room % BLOCK == 0
    assert n <= room < max(n * 1.125, n + BLOCK) + 1
    assert capacity(n + 1) >= room


def test_growing_keeps_every_vector_and_adds_zeros():
    rng = np.random.default_rng(0)
    model = FSAUC()
    model.learn_many(rng.normal(size=(50, 7)), rng.integers(0, 2, 50))
    before, header = model._vectors().copy(), model._arena[: model._header_size].copy()
    model._widen(100)
    after = model._vectors()
    assert after.shape[1] == capacity(100)
    assert (after[:, : before.shape[1]] == before).all()
    assert (after[:, before.shape[1] :] == 0).all()
    assert (model._arena[: model._header_size] == header).all()
