"""Trajectories: bounded, at event counts of their own, and continued exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlearn.errors import BadSnapshot
from streamlearn.runtime.trajectory import FIRST_STEP, MAX_SAMPLES, Trajectory


def run(trajectory: Trajectory, start: int, stop: int) -> None:
    """Sample the event count itself at every count that the trajectory asks for."""
    while (at := trajectory.next_after(start)) <= stop:
        trajectory.add(np.array([float(at), -float(at)]))
        start = at


@given(n_events=st.integers(0, FIRST_STEP * MAX_SAMPLES * 9))
def test_samples_stand_at_the_event_counts_they_were_taken_at(n_events):
    trajectory = Trajectory(2)

    run(trajectory, 0, n_events)

    assert trajectory.samples[:, 0].tolist() == [float(at) for at in trajectory.events]
    assert len(trajectory.events) <= MAX_SAMPLES
    assert not trajectory.events or n_events - trajectory.events[-1] < 2 * (trajectory.events[0])


@given(n_events=st.integers(0, FIRST_STEP * MAX_SAMPLES * 5), share=st.floats(0, 1))
def test_saved_and_continued_equals_never_stopped(n_events, share):
    whole = Trajectory(2)
    run(whole, 0, n_events)
    middle = int(share * n_events)
    first = Trajectory(2)
    run(first, 0, middle)

    second = Trajectory(2)
    second.restore(first.state())
    run(second, middle, n_events)

    assert second.events == whole.events
    assert second.samples.tobytes() == whole.samples.tobytes()


def test_the_samples_of_another_job_are_refused():
    with pytest.raises(BadSnapshot, match="samples must have 3 columns"):
        Trajectory(3).restore(Trajectory(2).state())
