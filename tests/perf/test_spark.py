"""The measurements of rounds run without Spark too, go on where they were stopped, and find what they are to find."""

from __future__ import annotations

import re


def cells(text, name):
    """Return the numbers of the last line of that name."""
    line = next(line for line in reversed(text.splitlines()) if line.startswith(name))
    return [float(value.replace(",", "")) for value in re.findall(r"(?<=\s)[\d.,]+(?=\s|$)", line[len(name) :])]


def test_the_figures_are_drawn_and_outliers_held_by_few_machines_do_not_move_the_median_or_the_trimmed_mean(
    run, tmp_path
):
    arguments = ("spark_figures.py", "figures", "faults", "--engine", "local", "--out", str(tmp_path))
    text = run(*arguments)
    assert len(list(tmp_path.glob("*.png"))) == 4
    held = text[text.index("(d) regression, p=8, 11 machines of 160 rows, outliers in 45 %") :]
    held = held[: held.index("Table 1")] if "Table 1" in held else held
    assert cells(held, "trimmed, plain")[1] < cells(held, "DRL, plain")[1] < 0.5 * cells(held, "averaging, plain")[1]
    late = text[text.index("Table 1, regression") :]
    assert cells(late, "latency: DRL, lts")[0] < 0.2 * cells(late, "latency: averaging, lts")[0]
    again = run(*arguments)
    assert "figures on local: 2 rounds, 2 done before" in again
    assert (
        again[again.index("(c) PCA") : again.index("faults on")]
        == text[text.index("(c) PCA") : text.index("repeat 0", 200)]
    )


def test_poisoned_parts_move_the_merge_by_less_than_its_clean_error_and_the_mean_by_far(run, tmp_path):
    text = run("spark_figures.py", "poison", "--engine", "local", "--out", str(tmp_path))
    for kind in ("turned", "far"):
        assert cells(text, f"{kind}: trimmed")[2] < 2.0
        assert cells(text, f"{kind}: mean")[2] > 20.0


def test_the_ways_of_learning_many_rows_find_one_model_and_the_rows_are_removed(run, tmp_path):
    text = run("spark_scale.py", "--engine", "local", "--out", str(tmp_path), "--data", str(tmp_path))
    assert float(re.search(r"two processes.*scores off by (\S+)", text)[1]) < 1e-9
    assert not list(tmp_path.glob("streamlearn_scale_*"))
    for name in ("AUCRO, p=5", "ORLRegressor, p=10", "ORLPCA, p=10"):
        _, few, many = cells(text, name)
        assert many <= few  # bytes do not grow with rows
    assert re.search(r"^total +=", text, re.MULTILINE)
