"""The benchmarks of the muffled learners run, measure what the learners do, and go on where they were stopped."""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from streamlearn import HedgeMower1, MarvinC

PERF = Path(__file__).parents[2] / "perf"
DATA = PERF.parents[1] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the data sets are not shipped with the package")


@pytest.fixture
def perf(monkeypatch, tmp_path):
    """Return a function that imports a module of perf whose results go to a folder of this test."""
    monkeypatch.syspath_prepend(PERF)
    monkeypatch.setattr(importlib.import_module("cells"), "OUT", tmp_path)
    return importlib.import_module


@pytest.fixture
def run(perf, monkeypatch, capsys):
    """Run a benchmark in this process, where kernels are compiled already, and return what it printed."""

    def start(script, *arguments):
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        runpy.run_path(str(PERF / script), run_name="__main__")
        return capsys.readouterr().out

    return start


def line(text, *words):
    """Return the last line that begins with these words."""
    return next(found for found in reversed(text.splitlines()) if found.split()[: len(words)] == list(words))


def test_a_finished_cell_is_found_again(perf):
    cells = perf("cells")
    cells.Cells("some").get(("a", 1), lambda: {"auc": 0.5})
    again = cells.Cells("some")
    assert again.get(("a", 1), lambda: pytest.fail("made twice")) == {"auc": 0.5}
    again.forget(lambda key: key[0] == "a")
    assert cells.Cells("some").find(("a", 1)) is None


def test_a_line_that_was_being_written_when_a_measurement_was_killed_is_made_again(perf, tmp_path):
    cells = perf("cells")
    cells.Cells("some", tmp_path / "new" / "folder").get(("a", 1), lambda: {"auc": 0.5})
    path = tmp_path / "new" / "folder" / "some.jsonl"
    path.write_text(path.read_text() + '{"key": ["b", 1], "val')
    again = cells.Cells("some", tmp_path / "new" / "folder")
    assert again.get(("b", 1), lambda: {"auc": 0.7}) == {"auc": 0.7}
    third = cells.Cells("some", tmp_path / "new" / "folder")
    assert (third.find(("a", 1)), third.find(("b", 1))) == ({"auc": 0.5}, {"auc": 0.7})


def test_the_interval_is_that_of_the_t_test(perf):
    ttest = importlib.import_module("scipy.stats").ttest_1samp
    d = [0.01, 0.03, -0.01, 0.02]
    mean, half = perf("muffled_data").interval(d)
    expected = ttest(d, 0.0).confidence_interval(0.95)
    assert (mean - half, mean + half) == pytest.approx((expected.low, expected.high))


@needs_data
def test_a_trial_keeps_its_test_rows_apart(perf):
    data = perf("muffled_data")
    X, y = data.load("letter")
    assert set(y) == {-1.0, 1.0}
    L, labels, U, test, _ = data.trial("letter", 20, 3)
    assert (len(L), len(U), len(test)) == (20, 2000, 3000)
    rng = np.random.default_rng([3, 20]).permutation(len(y))
    np.testing.assert_array_equal(L, X[rng[:20]])
    np.testing.assert_array_equal(labels, y[rng[:20]])
    np.testing.assert_array_equal(test, X[rng[20:3020]])
    np.testing.assert_array_equal(U, X[rng[3020:5020]])


@needs_data
def test_the_table_shares_a_pool_and_scores_as_the_learners_alone(perf):
    table = perf("muffled_table")
    rows, test = table.mixed_rows("splice", 60, 1), table.rows_of("splice", 60, 1)[3]
    for cls in (HedgeMower1, MarvinC):
        expected = cls(seed=1).fit(*rows).score_many(test)
        np.testing.assert_array_equal(table.rectified(cls, "splice", 60, 1).score_many(test), expected)
    model, pool = table.fitted("splice", 60, 1)
    np.testing.assert_array_equal(pool.weights, model.vote_weights)


@needs_data
def test_the_table_is_printed_with_paired_differences(run, tmp_path):
    chosen = ["--quick", "--sets", "splice", "--labels", "50", "--methods", "RF", "LR", "HedgeMower1", "mean"]
    text = run("muffled_table.py", *chosen)
    assert line(text, "splice", "50", "2").count("p=") == 3
    assert line(text, "50", "labels", "HedgeMower1", "-", "RF").endswith("of 1)")
    assert (tmp_path / "muffled_table.png").stat().st_size > 10_000
    assert run("muffled_table.py", *chosen, "--report").splitlines()[1:] == text.splitlines()[1:]


@needs_data
def test_the_streams_are_printed_with_auc_and_speed(run):
    arguments = ["--quick", "--sets", "drift_letter", "--methods", "HedgeMower1", "LR", "self-training 80%"]
    text = run("muffled_stream.py", *arguments)
    assert line(text, "drift_letter", "3%", "2").count("/s") == 3
    assert "in hindsight: mean AUC not below it in" in line(text, "HedgeMower1,")


@needs_data
def test_the_unlabelled_columns_are_those_of_the_learner(perf):
    unlabelled = perf("muffled_unlabelled")
    L, y, U, test, _ = unlabelled.trial("splice_letters", 60, 1, n_unlabelled=2000)
    rows, labels = np.vstack([L, U]), np.concatenate([y, np.full(len(U), np.nan)])
    model = HedgeMower1(seed=1, n_trees=100).fit(rows, labels)
    order = [int(name) for name in model.feature_names]
    L, U, test = (np.ascontiguousarray(part[:, order]) for part in (L, U, test))
    sample = unlabelled.Sample(L, y, U, unlabelled.derived_seed(1, 1))
    pool = unlabelled.fit_pool(sample, list(unlabelled.MEMBERS.values()), 100, model.tau, model.potential)
    layer, held_out = unlabelled.fit_embedded(sample)
    weights = unlabelled.weights_of(pool, y, [unlabelled.Extra(layer, held_out, layer.votes(U))])
    np.testing.assert_allclose(weights, model.vote_weights, rtol=1e-12)


@needs_data
def test_unlabelled_rows_beat_the_control_on_sequences(run):
    text = run("muffled_unlabelled.py", "--sets", "splice_letters", "--labels", "20", "--trials", "2")
    assert float(line(text, "20", "labels:", "U", "-", "control:").split()[5]) > 0.0


@needs_data
def test_weights_averaged_in_replay_are_those_of_the_learner(perf):
    kept = perf("muffled_kept")
    X, y = kept.stream("noaa_weather from 9000", 800)
    shown = np.random.default_rng(0).random(len(y)) < 0.05
    plain, default = kept.replay(X, y, shown, 0, (0.0, kept.KEPT))
    learner = HedgeMower1(seed=0).test_then_learn_many(X, np.where(shown, y, np.nan))
    np.testing.assert_allclose(default, learner, rtol=0, atol=1e-12)
    assert np.abs(plain - learner).max() > 0.01


@needs_data
def test_what_averaging_adds_is_printed(run, perf):
    text = run("muffled_kept.py", "--streams", "higgs_7500", "--shares", "0.05", "--events", "800", "--seeds", "1")
    assert line(text, "higgs_7500", "5%", "1")
    assert line(text, str(perf("muffled_kept").KEPT), "-", "0.0,").endswith("the default")


@needs_data
def test_streams_in_their_order_are_run_with_all_methods_and_reported(run):
    arguments = ["--quick", "--seeds", "1", "--sets", "noaa_weather"]
    text = run("muffled_ordered.py", *arguments, "--methods", "RF", "pool", "ranks")
    columns = line(text, "noaa_weather", "1")
    assert len(columns.split()) == 5
    assert "ranks - pool" in text
    assert "memories" not in text


@pytest.mark.parametrize("script", ["muffled_stream.py", "muffled_table.py"])
def test_a_method_that_is_not_known_is_refused_before_anything_is_measured(run, script, capsys):
    with pytest.raises(SystemExit):
        run(script, "--methods", "nothing")
    assert "invalid choice: 'nothing'" in capsys.readouterr().err
