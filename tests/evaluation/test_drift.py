"""Detectors of drift beside River's, and as parts that are saved and cut."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import drift
from scipy import stats

from streamlearn.errors import BadParameter, BadSnapshot, BadValue
from streamlearn.evaluation import DETECTORS, make_detector
from streamlearn.evaluation.drift_windows import critical_distance
from streamlearn.kernels.drift_windows import drawn

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
    ("hddm_w", drift.binary.HDDMW, {}),
    ("hddm_w", drift.binary.HDDMW, {"drift_confidence": 0.01, "lambda_val": 0.02, "two_sided_test": True}),
    ("fhddm", drift.binary.FHDDM, {}),
    ("fhddm", drift.binary.FHDDM, {"sliding_window_size": 60, "confidence_level": 0.001, "short_window_size": 15}),
    ("kswin", drift.KSWIN, {}),
    ("kswin", drift.KSWIN, {"alpha": 0.0001, "window_size": 300, "stat_size": 50, "seed": 7}),
]


class Draws:
    """Our draws where River's window asks its own generator for some."""

    def __init__(self, seed):
        self.seed, self.count = np.uint64(seed), 0

    def sample(self, places, k):
        out = np.empty(len(places), np.int64)
        self.count = drawn(out, self.seed, self.count)
        return [places[i] for i in out[:k].tolist()]


class WindowWithOurDraws(drift.KSWIN):
    """River's, with a generator that does not begin anew behind a detection."""

    def __init__(self, seed=0, **parameters):
        self.draws = Draws(seed)
        super().__init__(seed=seed, **parameters)

    def _reset(self):
        super()._reset()
        self._rng = self.draws


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
    losses = errors(seed, n=1500 if name == "kswin" else 6000)  # each test of River's takes 0.3 ms
    if not DETECTORS[name].unit:
        losses = losses + np.random.default_rng(seed).normal(size=len(losses)) * 0.2
    reference, expected = (WindowWithOurDraws if theirs is drift.KSWIN else theirs)(**parameters), []
    for i, loss in enumerate(losses.tolist()):
        # One of River's detectors is told what was right, the others what was wrong.
        reference.update(loss if not DETECTORS[name].unit else bool(loss) != (name == "fhddm"))
        if reference.drift_detected:
            expected.append(i)
    assert expected or name != "kswin"
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
    for spec in ("adwin", "page_hinkley:threshold=20", "hddm_a:two_sided_test=1", "hddm_w:two_sided_test=1", "kswin"):
        indexes, rose = make_detector(spec).changes(jumps)
        assert next(bool(r) for i, r in zip(indexes, rose, strict=True) if i < 800) is True, spec
        assert bool(rose[-1]) is False, spec
        assert indexes[-1] > 800, spec


@pytest.mark.parametrize("n", [12, 30, 100])
@pytest.mark.parametrize("alpha", [0.2, 0.005, 1e-6])
def test_the_least_distance_that_is_a_change_is_where_scipys_exact_p_value_is_small(n, alpha):
    def p_value(distance):
        return stats.ks_2samp(range(n), [v + distance - 0.5 for v in range(n)], method="exact").pvalue

    small = [h for h in range(1, n + 1) if h / n > 0.1 and p_value(h) <= alpha]
    assert critical_distance(n, alpha) == min(small, default=n + 1)


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_draws_are_without_replacement_and_every_place_is_drawn_alike():
    seen, out, count = np.zeros((7, 7)), np.empty(7, np.int64), 0
    for _ in range(7000):
        count = drawn(out, np.uint64(3), count)
        assert sorted(out.tolist()) == list(range(7))
        seen[np.arange(7), out] += 1
    # Each cell is Binomial(7000, 1/7), of mean 1000 and deviation 29.3: 49 cells stay within five deviations.
    assert np.abs(seen - 1000).max() < 150


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
        ("hddm_w:lambda_val=1", r"HDDMW: lambda_val must be in \(0, 1\), got 1"),
        ("kswin:stat_size=60", "KSWIN: window_size must be at least twice stat_size, 60, got 100"),
        ("kswin:seed=-1", "KSWIN: seed must be an integer >= 0, got -1"),
        ("fhddm:short_window_size=101", "FHDDM: short_window_size must be at most sliding_window_size, 100, got 101"),
        ("ddm:drift_threshold=nan", r"DDM: drift_threshold must be in \(0, inf\), got nan"),
    ],
)
def test_a_text_that_makes_no_detector_is_refused_with_the_reason(spec, message):
    with pytest.raises(BadParameter, match=f"^{message}"):
        make_detector(spec)
