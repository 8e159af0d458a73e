"""The paper's Table 2 and the risk of rejecting: their arithmetic, and small runs on what is bundled."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from streamlearn import AUCRO

sys.path.append(str(Path(__file__).parent.parent.parent / "demos"))
data, paper, learners, protocol, report, finished, table2, reject_risk = map(
    importlib.import_module,
    (
        "table2_data",
        "table2_paper",
        "table2_learners",
        "table2_protocol",
        "table2_report",
        "table2_finished",
        "table2",
        "reject_risk",
    ),
)

DIGITS = 0.5e-4
"""Half a unit of the last printed digit of an AUC; reject rates have one digit less."""
N_GAUSSIAN = 20_000
SAMPLING = 0.01
"""Three standard errors of an AUC, or a share, of the pairs of two samples of this size."""
SMALL = learners.Tuning(n_repeats=1, n_folds=3, max_rows=300, stride=4)


def weather(n_rows=1500):
    return data.read(data.BUNDLED_SET, max_rows=n_rows, seed=0)


@pytest.mark.parametrize("name", paper.PREDICTED)
def test_one_auc_explains_all_eight_printed_predictions_of_a_set(name):
    found = [paper.two_gaussians(paper.implied_auc(name), d) for d in paper.REJECTING]

    auc, rate = np.array(found).T
    assert auc == pytest.approx(paper.PREDICTED[name].auc, abs=2 * DIGITS)
    assert rate == pytest.approx(paper.PREDICTED[name].reject_rate, abs=2 * 10 * DIGITS)


def test_the_published_numbers_are_near_the_two_gaussian_prediction():
    gaps = {name: np.abs(np.array(row) - paper.PREDICTED[name].auc).max() for name, row in paper.AUCRO.items()}

    assert max(gaps.values()) == gaps["letter"]  # the least Gaussian of them
    assert gaps["letter"] < 0.0126
    assert gaps["a9a"] < 0.0005


@pytest.mark.parametrize("cost", paper.COSTS)
def test_aucro_on_two_gaussians_ranks_and_rejects_as_predicted(cost):
    rng = np.random.default_rng(7)
    y = rng.integers(0, 2, size=2 * N_GAUSSIAN)
    X = rng.normal(size=(len(y), 2)) + y[:, None] * [0.9, 0.6]
    train = np.arange(len(y)) < N_GAUSSIAN
    model = AUCRO(margin="paper", clip=None).learn_many(X[train], y[train])
    full, point = (model.reject_curve(X[~train], y[~train], np.array([d])) for d in (0.5, cost))

    auc, rate = paper.two_gaussians(full.auc[0], cost)

    assert point.auc[0] == pytest.approx(auc, abs=SAMPLING)
    assert point.reject_rate[0] == pytest.approx(rate, abs=SAMPLING)


def test_training_rows_are_scaled_to_the_unit_range_and_constants_to_zero():
    X = np.array([[2.0, 5.0, -1.0], [4.0, 5.0, 1.0], [3.0, 5.0, 0.0]])

    scale = data.to_range(X)

    assert scale(X).tolist() == [[-1.0, 0.0, -1.0], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    assert scale(np.array([[6.0, 9.0, 0.0]])).tolist() == [[3.0, 0.0, 0.0]]


def test_held_out_rows_do_not_reach_the_scaling():
    rows = weather(200)
    inside, outside = np.arange(150), np.arange(150, 200)
    changed = data.DataSet(rows.name, rows.X.copy(), rows.y, rows.reading)
    changed.X[outside] *= 1000.0

    assert np.array_equal(learners.scaled(rows, inside, outside)[0].X, learners.scaled(changed, inside, outside)[0].X)


def test_the_cells_of_aucro_are_its_own_reject_curve():
    train, test = learners.scaled(weather(), np.arange(1000), np.arange(1000, 1500))
    contestant = learners.CONTESTANTS["AUCRO exact"]

    cells = protocol.measured(contestant, train, test, {}, fold=0)

    curve = contestant.fit(train, 0.5, {}).reject_curve(test.X, test.y, np.array(paper.COSTS))
    assert [c.auc for c in cells] == pytest.approx(curve.auc, abs=1e-12)
    assert [c.pair_rate for c in cells] == pytest.approx(curve.reject_rate, abs=1e-12)
    assert [c.risk for c in cells] == pytest.approx(curve.risk, abs=1e-12)


def test_rates_and_risk_of_left_out_rows_are_those_counted_pair_by_pair():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, size=60).astype(np.int8)
    scores = np.round(rng.normal(size=60) + y, 1)
    kept = np.abs(scores - 0.5) > 0.4
    cost = 0.3
    right = lost = rejected = 0.0
    for i in np.flatnonzero(y == 1):
        for j in np.flatnonzero(y == 0):
            both = kept[i] and kept[j]
            rejected += not both
            right += both and (scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j])
            lost += both and (scores[i] < scores[j]) + 0.5 * (scores[i] == scores[j])
    n_pairs = (y == 1).sum() * (y == 0).sum()

    found = protocol.rows_kept(y, scores, kept, cost)

    expected = (right / (right + lost), rejected / n_pairs, 1 - kept.mean(), (lost + cost * rejected) / n_pairs)
    assert found == pytest.approx(expected, abs=1e-12)


def test_a_grid_is_thinned_evenly_and_the_best_on_training_rows_is_chosen():
    contestant = learners.CONTESTANTS["AUCRO sgd"]
    candidates = SMALL.candidates(contestant.grid)

    chosen = learners.chosen(contestant, weather(600), SMALL, seed=0)

    assert len(candidates) == 4 * 4
    assert chosen in candidates
    assert chosen["learning_rate"] < 1.0  # a step of 1 diverges


def test_the_quick_command_runs_on_what_is_bundled(tmp_path, capsys):
    table2.main(
        [
            "--quick",
            "--sets",
            data.BUNDLED_SET,
            "--rows",
            "1000",
            "--tuning-rows",
            "300",
            "--figures",
            f"--out={tmp_path}",
        ]
    )

    text = (tmp_path / "table2.txt").read_text()
    assert "1000 of 18159 rows" in text
    assert "one in 4 values of the paper's grids" in text
    assert text.splitlines()[0] in capsys.readouterr().out
    (record,) = json.loads((tmp_path / "table2.json").read_text())
    cells = {(c["learner"], c["fold"], c["cost"]): c["auc"] for c in record["cells"]}
    assert {learner for learner, _, _ in cells} == set(learners.CONTESTANTS)
    assert all(cells["OPAUC", fold, 0.5] == cells["AUCRO sgd", fold, 0.5] for fold in range(5))
    assert np.mean([cells["AUCRO exact", fold, 0.5] for fold in range(5)]) > 0.75
    assert len(list(tmp_path.glob("figure*.png"))) == 4


def one_of_two_repeats(out, repeats=1, **options):
    plan = protocol.Plan(n_repeats=repeats, n_large_repeats=repeats, max_rows=400, tuning=SMALL)
    return table2.table([data.BUNDLED_SET], ["AUCRO exact", "LR-R"], plan, out, **options)


def test_a_run_goes_on_where_it_was_stopped_and_gives_what_one_run_gives(tmp_path, monkeypatch):
    one_of_two_repeats(tmp_path / "stopped")
    path = tmp_path / "stopped" / "table2.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:40])  # killed while it wrote

    (summary,) = one_of_two_repeats(tmp_path / "stopped", repeats=2)
    (whole,) = one_of_two_repeats(tmp_path / "whole", repeats=2)

    assert len(path.read_bytes().splitlines()) == 2 * 2 * 5
    assert [repr(cell) for cell in summary.cells] == [repr(cell) for cell in whole.cells]
    assert summary.parameters == whole.parameters
    monkeypatch.setattr(protocol, "measured", None)  # nothing is measured again
    assert len(one_of_two_repeats(tmp_path / "stopped", repeats=2)[0].cells) == len(whole.cells)


def test_what_is_missing_of_a_table_is_said(tmp_path, capsys):
    one_of_two_repeats(tmp_path)
    path = tmp_path / "table2.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))

    one_of_two_repeats(tmp_path, repeats=2, known_alone=True)

    lines = (tmp_path / "table2.txt").read_text().splitlines()
    assert [line.split("   ")[-1] for line in lines if line.startswith(("AUCRO exact", "LR-R"))] == [
        "0 of 2 repeats and 4 folds"
    ] * 2


def test_cells_of_another_plan_are_not_taken_for_those_of_this_one(tmp_path):
    one_of_two_repeats(tmp_path)
    other = protocol.Plan(n_repeats=1, max_rows=300, tuning=SMALL)

    assert finished.Finished(tmp_path / "table2.jsonl", other).get(data.BUNDLED_SET, "LR-R", 0) is None


def test_candidates_far_behind_are_dropped_and_the_choice_stays(monkeypatch):
    rows, contestant = weather(600), learners.CONTESTANTS["AUCRO sgd"]
    tuning = learners.Tuning(n_repeats=1, n_folds=5, stride=4)
    fits = []
    monkeypatch.setattr(
        learners, "_criteria", lambda model, rows, of=learners._criteria: fits.append(1) or of(model, rows)
    )
    raced = learners.chosen(contestant, rows, tuning, seed=0)
    n_raced = len(fits)
    monkeypatch.setattr(learners, "RACE_MARGIN", np.inf)

    assert learners.chosen(contestant, rows, tuning, seed=0) == raced
    assert n_raced < len(fits) - n_raced == 5 * 16


@pytest.mark.parametrize(("shape", "n_rows"), [((40_000, 300), 15_000), ((40_000, 900), 5000), ((100, 8), 100)])
def test_tuning_takes_no_more_rows_and_values_than_it_may(shape, n_rows):
    assert learners.Tuning().rows(shape) == n_rows


@pytest.mark.skipif(
    not (data.DATA / "diabetes.csv.gz").is_file(), reason="the benchmark sets are not beside the project"
)
def test_small_sets_agree_with_the_paper(tmp_path):
    sets = ["diabetes", "fourclass", "german_numer"]

    summaries = table2.table(sets, ["AUCRO exact"], table2.QUICK, tmp_path)

    for summary in summaries:
        auc, spread = summary.over_folds("AUCRO exact", "auc")
        assert (np.abs(auc - summary.paper("AUCRO exact")) <= report.TOLERANCE + spread).all()
    assert "agree: " in (tmp_path / "table2.txt").read_text()


@pytest.mark.skipif(not (data.DATA / "letter.csv.gz").is_file(), reason="the benchmark sets are not beside the project")
def test_random_groups_are_halves_of_the_classes_and_follow_from_the_seed():
    one, same, other = (data.read("letter", max_rows=20_000, seed=0, split_seed=s) for s in (1, 1, 2))

    assert "drawn with seed 1" in one.reading
    assert np.array_equal(one.y, same.y)
    assert not np.array_equal(one.y, other.y)
    assert 0.45 < one.y.mean() < 0.55


def test_the_default_rule_makes_rejecting_pay_and_the_papers_margins_do_not(tmp_path):
    reject_risk.main(["--sets", data.BUNDLED_SET, "--rows", "3000", "--out", str(tmp_path)])

    found = reject_risk.curves(weather(3000))
    default = found["AUCRO, log-odds"]
    assert default.rise == 0.0
    assert default.risk[-1] < 0.75 * default.risk[0]
    assert (np.diff(default.rate) > 0.0).all()
    papers = found["AUCRO, paper's margins"]
    assert papers.rise > 0.05
    assert papers.rise > 4.0 * papers.error > 0.0
    assert np.isnan(papers.risk[-1])
    assert (tmp_path / "reject_risk.png").stat().st_size > 20_000
    assert "greatest rise of the risk" in (tmp_path / "reject_risk.txt").read_text()


@pytest.mark.parametrize(
    ("risk", "rise"), [([3, 2, 1], 0.0), ([1, 2, 3], 2.0), ([3, 1, 2.5, np.nan, 0, 1], 1.5), ([2, 2], 0.0)]
)
def test_the_steepest_rise_goes_up_from_the_least_risk_before_it(risk, rise):
    high, low = reject_risk.steepest(np.array(risk, dtype=float))

    assert high <= low
    assert risk[low] - risk[high] == rise
