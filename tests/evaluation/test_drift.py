"""Detectors of drift beside River's, and as parts that are saved and cut."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import drift

from streamlearn.errors import BadParameter, BadSnapshot, BadValue
from streamlearn.evaluation import DETECTORS, make_detector

PAIRS = [
    ("adwin", drift.ADWIN, {}),
    ("adwin", drift.ADWIN, {"delta": 0.2, "clock": 5, "min_window_length": 2, "max_buckets": 3}),
    ("page_hinkley", drift.PageHinkley, {"threshold": 5.0, "min_instances": 10}),
    ("page_hinkley", drift.PageHinkley, {"threshold": 8.0, "mode": "down", "alpha": 0.99}),
    ("page_hinkley", drift.PageHinkley, {"threshold": 3.0, "mode": "up"}),
    ("ddm", drift.binary.DDM, {}),
    ("ddm", drift.binary.DDM, {"warm_start": 100, "drift_threshold": 2.0}),
    ("eddm", drift.binary.EDDM, {}),
    ("eddm", drift.binary.EDDM, {"warm_start": 10, "beta": 0.7}),
    ("hddm_a", drift.binary.HDDMA, {}),
    ("hddm_a", drift.binary.HDDMA, {"drift_confidence": 0.02, "two_sided_test": True}),
]


def errors(seed, n=6000):
    """Return errors whose rate jumps, drifts slowly and falls back."""
    rng = np.random.default_rng(seed)
    rate = np.concatenate([np.full(n // 3, 0.1), np.full(n // 6, 0.5), np.linspace(0.1, 0.6, n // 2)])
    return (rng.random(n) < rate).astype(float)


def spec_of(name, parameters):
    values = {key: int(value) if value is True else value for key, value in parameters.items()}
    return f"{name}:{','.join(f'{key}={value}' for key, value in values.items())}"


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("name", "theirs", "parameters"), PAIRS, ids=lambda p: str(p)[:40])
def test_changes_are_detected_where_river_detects_them(name, theirs, parameters, seed):
    losses = errors(seed)
    if not DETECTORS[name].unit:
        losses = losses + np.random.default_rng(seed).normal(size=len(losses)) * 0.2
    reference, expected = theirs(**parameters), []
    for i, loss in enumerate(losses.tolist()):
        reference.update(loss if not DETECTORS[name].unit else bool(loss))
        if reference.drift_detected:
            expected.append(i)
    assert make_detector(spec_of(name, parameters)).update_many(losses).tolist() == expected


def test_these_streams_have_changes_to_detect():
    for name in DETECTORS:
        spec = "page_hinkley:threshold=5" if name == "page_hinkley" else name
        assert len(make_detector(spec).update_many(errors(1))) > 0, name


@pytest.mark.parametrize("name", DETECTORS)
@given(cuts=st.sets(st.integers(1, 1999), max_size=5))
def test_any_cut_and_any_restart_leave_the_same_detections(name, cuts):
    losses = errors(4, n=2400)[:2000] * (9.0 if name == "page_hinkley" else 1.0)
    losses[::17] = np.nan
    whole = make_detector(name)
    expected = whole.update_many(losses).tolist()
    part, found, start = make_detector(name), [], 0
    for stop in [*sorted(cuts), 2000]:
        found += (start + part.update_many(losses[start:stop])).tolist()
        restored = make_detector(name)
        restored.restore(part.state())
        part, start = restored, stop
    assert found == expected
    assert all(np.array_equal(a, b) for a, b in zip(part.state().values(), whole.state().values(), strict=True))


def test_a_rise_of_the_loss_is_told_from_a_fall():
    jumps = np.concatenate([np.zeros(400), np.ones(400), np.zeros(400)]) * 0.9
    for spec in ("adwin", "page_hinkley:threshold=20", "hddm_a:two_sided_test=1"):
        indexes, rose = make_detector(spec).changes(jumps)
        assert next(bool(r) for i, r in zip(indexes, rose, strict=True) if i < 800) is True, spec
        assert bool(rose[-1]) is False, spec
        assert indexes[-1] > 800, spec


def test_one_by_one_is_in_arrays():
    one, many = make_detector("adwin"), make_detector("adwin")
    losses = errors(5, n=1500)
    assert [i for i, loss in enumerate(losses) if one.update(loss)] == many.update_many(losses).tolist()


def test_missing_losses_are_passed_over():
    losses = errors(6, n=3000)
    with_gaps = np.full(2 * len(losses), np.nan)
    with_gaps[::2] = losses
    expected = make_detector("ddm").update_many(losses)
    assert make_detector("ddm").update_many(with_gaps).tolist() == (2 * expected).tolist()


def test_losses_that_a_detector_cannot_take_are_refused_and_change_nothing():
    for name, bad in (("ddm", 1.5), ("hddm_a", -0.1), ("adwin", np.inf)):
        detector = make_detector(name)
        detector.update_many([0.0, 1.0])
        before = detector.state()
        with pytest.raises(BadValue, match="losses must be"):
            detector.update_many([0.0, bad])
        assert all(np.array_equal(a, b) for a, b in zip(before.values(), detector.state().values(), strict=True))


def test_the_state_of_another_detector_is_refused():
    with pytest.raises(BadSnapshot, match=r"^DDM: state must be of 'ddm', got 'eddm'"):
        make_detector("ddm").restore(make_detector("eddm").state())
    with pytest.raises(BadSnapshot, match=r"^Adwin: state must have buckets of shape"):
        make_detector("adwin").restore(make_detector("adwin:max_buckets=3").state())


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("adwyn", "drift: the name must be one of adwin, .* got 'adwyn'"),
        ("adwin:delta=0", r"Adwin: delta must be in \(0, 1\), got 0"),
        ("adwin:clock=0", "Adwin: clock must be an integer >= 1, got 0"),
        ("adwin:dleta=0.1", "Adwin: parameters must be delta, .* got 'dleta'"),
        ("page_hinkley:mode=left", "PageHinkley: mode must be one of up, down, both, got 'left'"),
        ("page_hinkley:alpha=2", r"PageHinkley: alpha must be in \(0, 1\], got 2"),
        ("ddm:drift_threshold=nan", r"DDM: drift_threshold must be in \(0, inf\), got nan"),
    ],
)
def test_a_text_that_makes_no_detector_is_refused_with_the_reason(spec, message):
    with pytest.raises(BadParameter, match=f"^{message}"):
        make_detector(spec)
