"""The collector of cycles while a job runs."""

from __future__ import annotations

import gc

import pytest

from streamlearn.runtime.collector import YOUNG, seldom_collecting


@pytest.fixture(autouse=True)
def _as_it_was():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_it_looks_less_often_within_and_as_before_behind_it_also_when_a_job_fails():
    gc.set_threshold(700, 10, 10)
    met = []

    def fail() -> None:
        with seldom_collecting():
            met.append(gc.get_threshold())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert met == [(YOUNG, 10, 10)]
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [0, 10 * YOUNG])
def test_who_has_turned_it_off_or_lets_it_look_even_less_often_is_not_overruled(chosen):
    gc.set_threshold(chosen, 10, 10)
    with seldom_collecting():
        assert gc.get_threshold()[0] == chosen


def test_cycles_are_still_collected_within():
    class Knot:
        n_alive = 0

        def __init__(self) -> None:
            self.own = self
            Knot.n_alive += 1

        def __del__(self) -> None:
            Knot.n_alive -= 1

    with seldom_collecting():
        for _ in range(3 * YOUNG):
            Knot()
    assert Knot.n_alive < 3 * YOUNG
