"""`streamlearn evaluate` as somebody meets it who has a file and no job: what it says where it cannot tell anything."""

import json

import numpy as np
import pytest

from streamlearn.runtime.cli import main
from streamlearn.runtime.comparing import default_metrics
from streamlearn.runtime.table import make_table

N = 120


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, N)).tolist()
    with (tmp_path / "events.csv").open("w") as file:
        file.write("a,b,colour,amount,grade\n")
        for k in range(N):
            file.write(f"{a[k]!r},{b[k]!r},{'red' if b[k] > 0 else 'blue'},{a[k] - b[k]!r},{int(a[k] > 0)}\n")
    return tmp_path


def evaluate(*arguments):
    return main(["evaluate", "events.csv", "--bands", "0", *arguments])


def test_no_label_names_the_option_that_is_missing(folder, capsys):
    assert evaluate("--learner", "aucro") == 2
    assert capsys.readouterr().err == "error: --label: must name the column to forecast in events.csv, got none\n"


def test_a_misspelt_label_is_answered_with_the_column_that_was_meant(folder, capsys):
    assert evaluate("--learner", "aucro", "--label", "grad", "--exclude", "colour") == 1
    assert "label must name a column of the file, got 'grad', did you mean 'grade'?" in capsys.readouterr().err


def test_of_a_wide_file_a_message_names_the_first_and_the_last_columns(folder, capsys):
    header = ",".join(f"f{k}" for k in range(60))
    (folder / "events.csv").write_text(f"{header}\n" + ",".join("1" * 60) + "\n")
    assert evaluate("--learner", "aucro", "--label", "outcome") == 1
    assert "it has f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, ..., f58, f59\n" in capsys.readouterr().err


def test_a_misspelt_learner_is_answered_with_the_one_that_was_meant(folder, capsys):
    assert evaluate("--learner", "aucr", "--label", "grade") == 2
    assert "got 'aucr', did you mean 'AUCRO'?" in capsys.readouterr().err


def test_a_column_of_text_fails_with_the_options_for_it_and_works_with_them(folder, capsys):
    assert evaluate("--learner", "aucro", "--label", "grade") == 1
    error = capsys.readouterr().err
    assert "error: no event could be used (" in error
    assert "column 'colour' must be a finite number, got 'red'" in error or "got 'blue'" in error
    assert "--categorical NAME takes a column of text, --exclude NAME leaves one out" in error
    for option in ("--categorical", "--exclude"):
        assert evaluate("--learner", "aucro", "--label", "grade", option, "colour") == 0


def test_numbers_as_labels_of_a_classifier_fail_with_the_learner_for_them(folder, capsys):
    assert evaluate("--learner", "aucro", "--label", "amount", "--exclude", "colour") == 1
    assert "a column of numbers is forecast by ORLRegressor" in capsys.readouterr().err


def test_a_regressor_is_measured_by_its_errors_unless_told_otherwise(folder, capsys):
    arguments = ("--learner", "ORLRegressor", "--label", "amount", "--exclude", "colour")
    assert evaluate(*arguments) == 0
    assert {"mae", "rmse"} <= set(next(iter(reports(folder)))["learners"][0]["metrics"])
    capsys.readouterr()
    assert evaluate(*arguments, "--metric", "auc") == 1
    assert "numbers that are forecast are measured by --metric mae" in capsys.readouterr().err


def test_labels_of_text_have_no_error_as_numbers_have(folder, capsys):
    assert evaluate("--learner", "aucro", "--label", "colour", "--exclude", "grade", "--metric", "mae") == 1
    assert "no metric has a value: " in capsys.readouterr().err


def reports(folder):
    return [json.loads(path.read_text()) for path in folder.rglob("*.report.json")]


def test_metrics_suit_the_learners():
    assert default_metrics(["orl_regressor:window=10", "ORLRegressor"]) == ["mae", "rmse"]
    for learners in (["aucro"], ["aucro", "ORLRegressor"], ["river:linear_model.LogisticRegression"], ["nothing"]):
        assert default_metrics(learners) == ["auc", "logloss", "kappa_t"]


def test_a_report_that_is_not_there_is_named(capsys):
    assert main(["plot", "nowhere.json"]) == 1
    assert capsys.readouterr().err == "error: nowhere.json: No such file or directory\n"


def test_the_table_counts_what_this_process_did():
    learner = {"title": "one", "events": 900, "metrics": {"auc": 0.5}, "intervals": {}}
    report = {"job": "job", "events": 900, "rejected": {}, "learners": [learner]}
    table = make_table({**report, "timing": {"events": 100, "learners": {"one": 0.5}}})
    assert list(table.columns[-1].cells) == ["200"]
