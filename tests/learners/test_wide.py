"""AUCRO on parts of the covariance: against their definitions, in sparse matrices, and as the width grows."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn import AUCRO, AdaptiveAUCRO
from streamlearn.errors import BadLabel, BadParameter, BadShape, BadSnapshot, BadValue, TooManyFeatures
from streamlearn.kernels import auc_means
from streamlearn.learners.auc.records import Records
from streamlearn.learners.auc.wide import FULL_UP_TO
from tests.contract import late_run, same
from tests.naive import wide as naive

CLOSE = 1e-9  # sums of 120 terms, brought up to date in another order than they are summed anew
FORMS = ("diagonal", "means")


def stream(seed: int, n: int = 120, m: int = 6, share: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with that share of nonzeros, of several units, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, m)) + 0.3) * np.resize([1.0, 10.0, 0.1, 1.0, 3.0, 1.0], m)
    X[rng.random((n, m)) > share] = 0.0
    X[:, m - 1] = X[:, m - 1] != 0.0  # a feature of two values
    return X, (X[:, 0] + X[:, 2] * 10 + rng.normal(size=n) > 0.5).astype(int)


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize(("half_life", "clock"), [(None, "time"), (30.0, "time"), (30.0, "class")])
@pytest.mark.parametrize("form", FORMS)
def test_scores_and_ratios_are_those_of_the_definitions(form, half_life, clock, share):
    X, y = stream(1, share=share)
    scorer = AUCRO(covariance=form, half_life=half_life, clock=clock, solve_every=1)
    raw, events = scorer.clone(margin="paper"), naive.Events(half_life, clock)
    steps = naive.Steps(X.shape[1], events)
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        expected = (steps.score(x) if form == "means" else naive.diagonal(events, x)) if t else 0.0
        assert raw.score_one(x) == pytest.approx(expected, rel=CLOSE, abs=CLOSE)
        if t:
            assert scorer.score_one(x) == pytest.approx(expected * events.slope(), rel=CLOSE, abs=CLOSE)
        if form == "means":
            steps.learn(x, int(label))
        else:
            events.add(x, int(label), expected if events.both() else None)
        for model in (raw, scorer):
            model.learn_one(x, label)


def test_steps_are_lazy_and_yet_those_of_dense_weights():
    X, y = stream(2, share=0.3)
    seldom, always = (AUCRO(covariance="means", half_life=40.0, solve_every=every) for every in (1000, 1))
    np.testing.assert_allclose(seldom.test_then_learn_many(X, y), always.test_then_learn_many(X, y), rtol=1e-7)


def test_the_steps_lead_to_the_direction_of_the_exact_minimiser():
    rng = np.random.default_rng(3)
    n = 60_000
    y = rng.random(n) < 0.3
    X = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.8, 0.0], [0.0, 0.6, 0.3], [0.0, 0.0, 1.0]]) + 0.5 * y[:, None]
    ours = AUCRO(covariance="means", clip=None, scale="none").learn_many(X, y)
    G = np.cov(X[y].T) + np.cov(X[~y].T)
    delta = X[y].mean(axis=0) - X[~y].mean(axis=0)
    best = np.linalg.solve(G, delta)
    steps = np.array([ours.score_one(x) for x in np.eye(3)]) - ours.score_one(np.zeros(3))

    def cosine(a: np.ndarray) -> float:
        return float(a @ best / np.linalg.norm(a) / np.linalg.norm(best))

    # The last of all weights, not their average: they wander by a tenth of their length.
    assert cosine(steps) > 0.98 > cosine(delta)


@pytest.mark.parametrize("form", FORMS)
def test_features_of_other_units_say_the_same_in_the_long_run(form):
    X, y = stream(4, n=2000)
    units = np.array([1.0, 1e3, 1e-3, 7.0, 1.0, 1.0])
    plain, scaled = (AUCRO(covariance=form).learn_many(Z, y).score_many(Z) for Z in (X, X * units))
    if form == "diagonal":
        np.testing.assert_allclose(scaled, plain, rtol=1e-6, atol=1e-9)
    else:  # units matter until a feature came more often than the prior of its scale counts
        assert np.corrcoef(scaled, plain)[0, 1] > 0.98


def test_a_mean_of_a_billion_moves_no_score_of_the_diagonal():
    X, y = stream(5, share=1.0)
    far = X + np.array([1e9, 0, 0, 0, 0, 0])
    plain = AUCRO(covariance="diagonal").learn_many(X, y).score_many(X)
    np.testing.assert_allclose(AUCRO(covariance="diagonal").learn_many(far, y).score_many(far), plain, atol=1e-5)


# Sparse matrices


def learners() -> list:
    wide = [AUCRO(covariance=form) for form in FORMS] + [AdaptiveAUCRO(covariance=form) for form in FORMS]
    return [*wide, AUCRO(covariance="means", reject="rate"), AUCRO(), AdaptiveAUCRO(), AUCRO(solver="sgd")]


@pytest.mark.parametrize("model", learners(), ids=repr)
def test_sparse_matrices_are_learned_and_forecast_bit_for_bit_like_dense_rows(model):
    X, y = stream(6, m=9, share=0.3)
    X[:, 4] = 0.0
    X[-3:, 4] = 1.0  # a feature that comes late
    dense, sparse = model.clone(), model.clone()
    cut = 70
    assert sparse.test_then_learn_many(sp.csr_matrix(X[:cut]), y[:cut]).tolist() == [
        *dense.test_then_learn_many(X[:cut], y[:cut])
    ]
    dense.learn_many(X[cut:], y[cut:])
    sparse.learn_many(sp.csc_array(X[cut:]), y[cut:])
    assert same(dense.state(), sparse.state())
    assert sparse.score_many(sp.coo_matrix(X)).tolist() == dense.score_many(X).tolist()
    assert list(sparse.predict_many(sp.csr_array(X))) == list(dense.predict_many(X))
    assert sparse.predict_proba_many(sp.csr_array(X)).tolist() == dense.predict_proba_many(X).tolist()


@given(st.integers(0, 1000), st.integers(1, 12), st.floats(0.0, 1.0))
@settings(max_examples=25, deadline=None)
def test_any_sparse_matrix_gives_the_bits_of_its_dense_form(seed, m, share):
    X, y = stream(seed, n=40, m=max(m, 3), share=share)
    for form in FORMS:
        dense, sparse = AUCRO(covariance=form), AUCRO(covariance=form)
        assert dense.test_then_learn_many(X, y).tolist() == sparse.test_then_learn_many(sp.csr_array(X), y).tolist()
        assert same(dense.state(), sparse.state())


def test_entries_of_one_place_add_up_and_written_zeros_are_none():
    data = np.array([1.0, 2.0, 0.0, 5.0, -5.0, 4.0])
    rows, columns = np.array([0, 0, 0, 1, 1, 1]), np.array([2, 2, 1, 0, 0, 2])
    X = sp.csr_matrix((data, columns, np.array([0, 3, 6])), shape=(2, 3))
    dense = np.zeros((2, 3))
    np.add.at(dense, (rows, columns), data)
    a, b = (AUCRO(covariance="diagonal").learn_many(Z, [0, 1]) for Z in (X, dense))
    assert same(a.state(), b.state())
    assert X.nnz == 6  # what was given is left alone


def test_an_unsorted_matrix_is_left_alone():
    X = sp.csr_matrix((np.array([1.0, 2.0]), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    AUCRO(covariance="means").learn_many(X, [1])
    assert X.indices.tolist() == [2, 0]


@pytest.mark.parametrize("form", FORMS)
def test_what_is_refused_leaves_no_trace(form):
    X, y = stream(7)
    model = AUCRO(covariance=form, max_features=8).learn_many(sp.csr_array(X), y)
    before = model.state()
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(BadValue, match="feature 1 must be a finite number, got nan in row 3"):
        model.learn_many(sp.csr_array(bad), y)
    with pytest.raises(TooManyFeatures, match="max_features=8"):
        model.learn_many(sp.csr_array(np.ones((2, 20))), [0, 1])
    with pytest.raises(BadLabel):
        model.learn_many(sp.csr_array(X), np.where(y == 1, 9, y))
    with pytest.raises(BadShape, match="sparse matrix of real numbers"):
        model.learn_many(sp.csr_array(X.astype(complex)), y)
    with pytest.raises(BadShape, match="by position"):
        AUCRO(covariance=form).learn_one({"a": 1.0}, 1).learn_many(sp.csr_array(X), y)
    assert same(before, model.state())


@pytest.mark.parametrize("form", FORMS)
def test_late_labels_of_wide_events_give_the_same_whatever_the_blocks(form):
    X, y = stream(8, m=12, share=0.3)
    first, second = AUCRO(covariance=form), AUCRO(covariance=form)
    assert late_run(first, X, y, 13, 1) == late_run(second, X, y, 13, 13)
    assert same(first.state(), second.state())


# Width


@pytest.mark.parametrize("cls", [AUCRO, AdaptiveAUCRO])
def test_auto_turns_to_class_means_with_the_event_that_is_too_wide_however_batches_are_cut(cls):
    rng = np.random.default_rng(9)
    n, m, turn = 60, FULL_UP_TO + 40, 30
    X = np.zeros((n, m))
    X[:, :6], y = stream(9, n=n)
    X[turn:, 6:] = rng.random((n - turn, m - 6)) < 0.3
    sparse, whole = sp.csr_array(X), cls().learn_many(X, y)
    assert whole.takes_entries
    assert getattr(whole, "_wide" if cls is AUCRO else "_bank").form == "means"
    assert not cls().learn_many(X[:turn], y[:turn]).takes_entries
    one, pieces, few = cls(), cls(), cls()
    for i in range(n):
        one.learn_one({j: X[i, j] for j in np.flatnonzero(X[i]).tolist()}, y[i])
    for a, b in ((0, 11), (11, 30), (30, 31), (31, 60)):
        pieces.learn_many(X[a:b], y[a:b])
        few.learn_many(sparse[a:b], y[a:b])
    for other in (one, pieces, few, cls().learn_many(sparse, y), cls.from_state(whole.state())):
        assert same(whole.state(), other.state())
        assert other.score_many(sparse).tolist() == whole.score_many(X).tolist()


@pytest.mark.parametrize(("half_life", "clock"), [(None, "time"), (80.0, "time"), (80.0, "class")])
def test_what_turns_to_class_means_knows_of_each_feature_what_it_would_have_known(half_life, clock):
    X, y = stream(10, n=200, share=1.0)
    X[:, 5] = np.random.default_rng(10).random(200) < 0.2
    changes = {"clip": None, "half_life": half_life, "clock": clock}
    turned, always = AUCRO(**changes), AUCRO(covariance="means", **changes)
    for model in (turned, always):
        model.learn_many(X, y)
    turned = Records.of(turned._moments, "means")
    R, S = turned.R[:6], always._wide.R[:6]
    for slot in (auc_means.MEAN, auc_means.VARIANCE, auc_means.PEAK):
        share = S[:, auc_means.AT] / 200 if slot == auc_means.MEAN else np.ones(6)
        np.testing.assert_allclose(R[:5, slot], (share * S[:, slot])[:5], rtol=1e-9)
    assert R[:, auc_means.TIMES].tolist() == S[:, auc_means.TIMES].tolist()  # how often a bit was 1 is known exactly
    np.testing.assert_allclose(turned.centres(0), always._wide.centres(0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(R[:, auc_means.METRIC], S[:, auc_means.METRIC], rtol=0.2)
    # The one against the means of now, the other against those of each event: the first differ from the last.
    curved, own = turned.own(0)[:6, auc_means.CURVATURE], always._wide.own(0)[:6, auc_means.CURVATURE]
    np.testing.assert_allclose(curved, own * always._wide.memory(0)[auc_means.FADE], rtol=0.25)


def test_steps_go_on_from_the_weights_of_the_solution():
    X, y = stream(10, n=200, share=1.0)
    model = AUCRO(clip=None, margin="paper").learn_many(X, y)
    before = model.score_many(X)
    model.learn_one({FULL_UP_TO + j: 1.0 for j in range(FULL_UP_TO)}, None)
    assert model.takes_entries
    np.testing.assert_allclose(model.score_many(X), before, rtol=1e-9, atol=1e-12)
    likely = AUCRO(clip=None).learn_many(X, y)
    expected = likely.predict_proba_many(X)
    likely.learn_one({FULL_UP_TO + j: 1.0 for j in range(FULL_UP_TO)}, None)
    assert np.abs(likely.predict_proba_many(X) - expected).max() < 0.1


@pytest.mark.parametrize("cls", [AUCRO, AdaptiveAUCRO])
def test_a_state_of_the_time_when_auto_kept_variances_is_read_and_goes_on_as_it_was(cls):
    rng = np.random.default_rng(15)
    X = (rng.random((60, FULL_UP_TO + 20)) < 0.3).astype(float)
    y = X[:, 0] > 0
    then = cls(covariance="diagonal").learn_many(X[:40], y[:40])
    state = then.state()
    state["parameters"] = state["parameters"].replace('"covariance": "diagonal"', '"covariance": "auto"')
    if cls is AdaptiveAUCRO:  # which keeps three memories beyond 128 features
        then._bank.keep([0, 2, 4])
        then._kept = [0, 2, 4]
        state |= {"array/header": then._bank.F.copy(), "array/records": then._bank.R.copy()}
    read = cls.from_state(state)
    assert read.covariance == "auto"
    assert read.test_then_learn_many(X[40:], y[40:]).tolist() == then.test_then_learn_many(X[40:], y[40:]).tolist()
    assert same(read.state(), cls.from_state(read.state()).state())


def test_a_state_of_neither_form_is_refused():
    X = np.ones((3, FULL_UP_TO + 20))
    state = AUCRO().learn_many(X, [0, 1, 0]).state()
    state["array/records"] = np.zeros((len(state["array/records"]), 3))
    with pytest.raises(BadSnapshot, match="records"):
        AUCRO.from_state(state)


def test_ranking_goes_on_where_the_covariance_is_dropped():
    X, y = stream(11, n=400, share=1.0)
    model = AUCRO().learn_many(X, y)
    before = model.score_many(X)
    model.learn_one({FULL_UP_TO + j: 1.0 for j in range(FULL_UP_TO)}, None)
    assert model.takes_entries
    assert np.corrcoef(before, model.score_many(X))[0, 1] > 0.9
    p = model.predict_proba_many(X)[:, 1]
    assert abs(p.mean() - y.mean()) < 0.1


@pytest.mark.parametrize("form", FORMS)
def test_years_of_forgetting_leave_all_numbers_finite(form):
    rng = np.random.default_rng(12)
    X = (rng.random((30_000, 5)) < 0.2) * rng.normal(size=(30_000, 5))
    model = AUCRO(covariance=form, half_life=3.0).learn_many(X, rng.random(30_000) < 0.5)
    assert all(np.isfinite(a).all() for a in model._wide.arrays().values())
    H = model._wide.memory(0)
    assert (H[auc_means.SCALE : auc_means.SCALE + 2] >= auc_means.SCALE_FLOOR * 1e-30).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"covariance": "none"}, "covariance must be one of"),
        ({"covariance": "means", "solver": "sgd"}, "covariance must be 'auto' or 'full' with solver='sgd'"),
        ({"covariance": "means", "scale": "range"}, "scale must be"),
        ({"sketch_size": 0}, "sketch_size must be a whole number"),
    ],
)
def test_parameters_that_break_their_rule_are_named(params, message):
    with pytest.raises(BadParameter, match=message):
        AUCRO(**params)


@pytest.mark.parametrize("form", [*FORMS, "sketch"])
@pytest.mark.parametrize("margin", ["log-odds", "paper"])
def test_decisions_turn_at_the_even_score(form, margin):
    X, _ = stream(13)
    y = X[:, 0] + X[:, 1] / 10 > 0.3
    model = AUCRO(covariance=form, margin=margin).learn_many(X, y)
    above = model.score_many(X) > model.even_score()
    assert 0 < above.sum() < len(X)
    assert (above == (model.predict_many(X) == 1)).all()
