"""AdaptiveAUCRO: its bank, its mixture, its memory of forecasts, published numbers."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from streamlearn import AUCRO, AdaptiveAUCRO
from streamlearn.errors import BadParameter
from streamlearn.kernels import auc, auc_means
from streamlearn.learners.auc.adaptive import MEMORIES
from tests.naive import auc as naive

DATA = Path(__file__).parents[3] / "shared" / "data"


def stream(seed: int = 0, n: int = 400, m: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    return X, (X[:, 0] - X[:, 1] + rng.normal(size=n) > 0).astype(int)


def test_it_is_a_mixture_of_five_aucros():
    X, y = stream(n=250)
    adaptive, mixture = AdaptiveAUCRO(), naive.Mixture(len(MEMORIES))
    bank = [AUCRO(half_life=m.half_life, clock="class" if m.by_class else "time") for m in MEMORIES]
    for x, label in zip(X, y, strict=True):
        ratios = np.array([expert.score_one(x) for expert in bank])
        score, _ = mixture.forecast(ratios)
        assert adaptive.score_one(x) == pytest.approx(score, rel=1e-6, abs=1e-7)
        mixture.learn(ratios, int(label))
        adaptive.learn_one(x, label)
        for expert in bank:
            expert.learn_one(x, label)


def said_by(bank: list[AUCRO], x: np.ndarray) -> list[float]:
    return [aucro.score_one(x) for aucro in bank]


@pytest.mark.parametrize("width", [3, 20])
def test_each_memory_says_bit_for_bit_what_an_aucro_of_its_own_says(width):
    X, y = stream(n=200, m=width)
    X[::17, 0] *= 50  # values that are cut
    model = AdaptiveAUCRO()
    bank = [AUCRO(half_life=m.half_life, clock="class" if m.by_class else "time") for m in MEMORIES]
    names = tuple(range(width))
    for x, label in zip(X, y, strict=True):
        _, memo = model.forecast_columns(names, x[None])
        assert memo[0, : len(MEMORIES)].tolist() == said_by(bank, x)
        for learner in (model, *bank):
            learner.learn_one(x, label)


def test_memories_are_solved_as_seldom_as_those_of_an_aucro_that_is_told_so():
    X, y = stream(n=200, m=6)
    model, usual = AdaptiveAUCRO(solve_every=25), AdaptiveAUCRO()
    bank = [AUCRO(half_life=m.half_life, clock="class" if m.by_class else "time", solve_every=25) for m in MEMORIES]
    for x, label in zip(X, y, strict=True):
        _, memo = model.forecast_columns(tuple(range(6)), x[None])
        assert memo[0, : len(MEMORIES)].tolist() == said_by(bank, x)
        for learner in (model, usual, *bank):
            learner.learn_one(x, label)
    assert model.score_many(X).tolist() != usual.score_many(X).tolist()
    again = AdaptiveAUCRO.from_state(model.state())
    assert again.solve_every == 25
    for learner in (model, again):
        learner.learn_many(X, y)
    assert again.score_many(X).tolist() == model.score_many(X).tolist()


@pytest.mark.parametrize("every", [0, 2.5, True, "8"])
def test_how_often_is_a_whole_number(every):
    with pytest.raises(BadParameter, match="AdaptiveAUCRO: solve_every must be a whole number >= 1 or None"):
        AdaptiveAUCRO(solve_every=every)


def test_a_memory_that_is_left_behind_by_the_width_is_undecided():
    X, y = stream(n=60, m=130)
    model = AdaptiveAUCRO().learn_many(X[:50], y[:50])
    _, memo = model.forecast_columns(tuple(range(130)), X[50:])
    for e, memory in enumerate(MEMORIES):
        assert (memo[:, e] != 0.0).all() == (memory.max_width is None)
    assert [model.score_one(x) for x in X[50:]] == model.score_many(X[50:]).tolist()


def test_which_label_comes_first_does_not_matter():
    X, y = stream()
    y[:7] = 1
    names = np.array(["z", "b"], dtype=object)[y]
    unnamed, named = AdaptiveAUCRO().learn_many(X, names), AdaptiveAUCRO(positive="z").learn_many(X, names)
    for a, b in zip(unnamed._arrays().values(), named._arrays().values(), strict=True):
        assert a.tobytes() == b.tobytes()


def test_it_follows_a_change_that_one_endless_memory_does_not():
    X, y = stream(n=3000)
    y[1500:] = 1 - y[1500:]
    after = slice(1700, None)
    adaptive = AdaptiveAUCRO().test_then_learn_many(X, y)
    assert roc_auc_score(y[after], adaptive[after]) > 0.8
    assert roc_auc_score(y[after], AUCRO().test_then_learn_many(X, y)[after]) < 0.5


@pytest.mark.parametrize("widths", [(4, 129), (127, 130), (129, 501), (4, 600)])
def test_it_grows_through_the_widths_where_memories_are_dropped(widths):
    narrow, wide = widths
    X, y = stream(n=150, m=wide)
    X[:100, narrow:] = 0.0
    model = AdaptiveAUCRO().learn_many(X[:100, :narrow], y[:100])
    model.learn_many(X[100:], y[100:])
    assert np.isfinite(model.score_many(X)).all()
    again = AdaptiveAUCRO.from_state(model.state())
    assert again.score_many(X).tolist() == model.score_many(X).tolist()
    assert len(model._kept) == model._bank.n_memories == 3


def test_class_means_and_weights_are_kept_when_the_covariance_is_dropped():
    X, y = stream(n=80, m=10)
    X[:, 3] += 5.0
    model = AdaptiveAUCRO().learn_many(X, y)
    before = [model._bank.own(e)[auc.W, :10].copy() for e in (0, 2, 4)]
    model._features.grow(tuple(range(10, 600)))
    model._widen(600)
    assert model._bank.form == "means"
    for e in range(3):
        assert model._bank.own(e)[:10, auc_means.W].tolist() == before[e].tolist()
    for k in (0, 1):
        np.testing.assert_allclose(model._bank.centres(0)[k, :10], X[y == k].mean(axis=0), atol=0.1)  # clipped


# Late labels


def late(model: AdaptiveAUCRO, X: np.ndarray, y: np.ndarray, delay: int, block: int, remember: bool) -> np.ndarray:
    """Return scores with labels `delay` events late, learned from the forecasts' memo or without it."""
    model._features.grow(tuple(range(X.shape[1])))
    model._widen(X.shape[1])
    codes = np.concatenate([np.full(delay, -1), y[: len(y) - delay]]).astype(np.int8)
    learned = np.concatenate([X[:delay], X[: len(X) - delay]])
    memo = np.zeros((len(X) + delay, model.memo_width))
    scores, chances = np.empty(len(X)), np.empty(len(X))
    for i in range(0, len(X), block):
        part = slice(i, min(i + block, len(X)))
        given = (X[part], learned[part], codes[part], scores[part], chances[part])
        if remember:
            test = memo[delay + part.start : delay + part.stop]
            assert model._test_then_learn_memo(*given, test, memo[part]) == -1
        else:
            assert model._test_then_learn(*given) == -1
    return scores


@pytest.mark.parametrize("delay", [1, 8, 50])
def test_late_labels_give_the_same_bits_in_any_blocks(delay):
    X, y = stream(n=300)
    whole = late(AdaptiveAUCRO(), X, y, delay, 300, remember=True)
    assert whole.tolist() == late(AdaptiveAUCRO(), X, y, delay, 7, remember=True).tolist()


def test_without_delay_the_memo_changes_nothing():
    X, y = stream(n=300)
    assert (
        late(AdaptiveAUCRO(), X, y, 0, 50, remember=True).tolist()
        == AdaptiveAUCRO().test_then_learn_many(X, y).tolist()
    )


def test_memories_are_trusted_as_far_as_they_are_right_at_the_delay():
    rng = np.random.default_rng(0)
    level = np.repeat(rng.normal(size=300), 10)  # labels that stay alike for ten events and no longer
    X = np.column_stack([rng.normal(size=3000), np.sin(np.arange(3000))])
    y = (level + 0.5 * X[:, 0] > 0).astype(int)
    with_memo = late(AdaptiveAUCRO(), X, y, 20, 3000, remember=True)
    without = late(AdaptiveAUCRO(), X, y, 20, 3000, remember=False)
    assert roc_auc_score(y, with_memo) > roc_auc_score(y, without)


def test_late_labels_teach_what_the_definition_says():
    X, y = stream(n=150)
    delay, mixture, queue = 20, naive.Mixture(len(MEMORIES)), []
    bank = [AUCRO(half_life=m.half_life, clock="class" if m.by_class else "time") for m in MEMORIES]
    scores = late(AdaptiveAUCRO(), X, y, delay, 50, remember=True)
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        ratios = np.array([expert.score_one(x) for expert in bank])
        score, _ = mixture.forecast(ratios)
        assert scores[t] == pytest.approx(score, rel=1e-6, abs=1e-7)
        queue.append((x, int(label), ratios, mixture.logits(ratios)))
        if t >= delay:
            x_then, label_then, ratios_then, logits_then = queue[t - delay]
            mixture.learn(ratios_then, label_then, logits_then)
            for expert in bank:
                expert.learn_one(x_then, label_then)


# Published numbers


@pytest.mark.parametrize(
    ("name", "area"), [("noaa_weather", 0.853), ("electricity", 0.9715), ("diabetes", 0.8197), ("splice", 0.9129)]
)
def test_prequential_auc_is_the_reference(name, area):
    path = DATA / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"{name} is not among the data beside the project ({DATA})")
    with gzip.open(path, "rt") as lines:
        rows = np.loadtxt(lines, delimiter=",", skiprows=1)
    X, y = rows[:, :-1], (rows[:, -1] > 0).astype(int)
    tested = AdaptiveAUCRO().test_then_learn_columns(tuple(range(X.shape[1])), X, y)
    assert roc_auc_score(y, tested.scores) >= area - 0.002
    assert log_loss(y, tested.probabilities) < log_loss(y, np.full(len(y), y.mean()))
