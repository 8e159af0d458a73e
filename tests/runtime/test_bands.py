"""Bands and comparisons of a job: over its course, in its picture, and across a restart."""

import json

import numpy as np
import pytest

from streamlearn import contracts
from streamlearn.errors import BadSnapshot
from streamlearn.evaluation.comparison import BlockBootstrap, Pair
from streamlearn.runtime.cli import main
from streamlearn.runtime.plots import _banded_metric, _panels_below
from streamlearn.runtime.report import read_report

N = 900
JOB = """
name = "banded"
[source]
kind = "csv"
path = "events.csv"
batch_events = 64
[features]
label = "y"
[[learner]]
name = "AUCRO"
[[learner]]
name = "OPAUC"
[evaluate]
metrics = ["auc", "accuracy"]
bands = 20
{more}
[checkpoint]
every = 200
"""


def forecasts(seed, n=N):
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, 2, n).astype(np.int8)
    scores = codes + rng.normal(size=n)
    decisions = np.where(rng.random(n) < 0.1, np.nan, (scores > 0.5).astype(float))
    return contracts.Tested(codes, scores, np.full(n, 0.5), decisions.astype(object), decisions)


def part(tested, start, stop):
    return contracts.Tested(*(getattr(tested, name)[start:stop] for name in contracts.Tested.__dataclass_fields__))


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize("stop", [1, 99, 100, 101, 450])
def test_a_bootstrap_restored_in_mid_stream_ends_like_one_that_never_stopped(stop):
    tested = forecasts(1)
    whole, first, second = (BlockBootstrap(["auc", "accuracy"], replicas=7) for _ in range(3))
    whole.take(tested, tested.codes)
    first.take(part(tested, 0, stop), tested.codes[:stop])
    second.restore(first.state())
    second.take(part(tested, stop, N), tested.codes[stop:])
    assert same(second.state(), whole.state())
    assert second.band(0) == whole.band(0)


@pytest.mark.parametrize("replicas", [6, 8])
def test_the_state_of_another_number_of_copies_is_refused(replicas):
    with pytest.raises(BadSnapshot, match="must have"):
        BlockBootstrap(["auc"], replicas=replicas).restore(BlockBootstrap(["auc"], replicas=7).state())


def test_a_comparison_restored_while_one_learner_is_ahead_ends_like_one_that_never_stopped():
    one, other = forecasts(2), forecasts(3)
    whole, first, second = Pair(0.99), Pair(0.99), Pair(0.99)
    whole.take(0, one)
    whole.take(1, other)
    first.take(0, part(one, 0, 500))
    first.take(1, part(other, 0, 420))
    second.restore(first.state())
    second.take(1, part(other, 420, N))
    second.take(0, part(one, 500, N))
    assert same(second.state(), whole.state())
    assert 0 < whole.n_events < N


def run(folder, more="picture = false", *options):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(N, 3))
    y = (X[:, 0] + rng.normal(size=N) > 0).astype(int)
    folder.mkdir(exist_ok=True)
    rows = [f"{','.join(map(repr, x))},{label}" for x, label in zip(X.tolist(), y.tolist(), strict=True)]
    (folder / "events.csv").write_text("\n".join(["a,b,c,y", *rows]) + "\n")
    (folder / "job.toml").write_text(JOB.format(more=more))
    assert main(["run", str(folder / "job.toml"), *options]) == 0
    return read_report(next(folder.rglob("*.report.json")))


def test_bands_and_comparison_continue_from_a_checkpoint_as_if_nothing_had_happened(tmp_path):
    whole = run(tmp_path / "whole")
    partly = run(tmp_path / "resumed")
    newest = max((tmp_path / "resumed").rglob("ckpt-*.safetensors"))
    newest.unlink()  # the run goes on from the one before
    resumed = run(tmp_path / "resumed")
    assert partly["comparison"] == resumed["comparison"] == whole["comparison"]
    assert resumed["timing"]["events"] < N
    moved = whole["comparison"]["bands_over_time"]["AUCRO"]
    assert moved["events"] == whole["learners"][0]["trajectory"]["events"]
    low, high = (np.array(moved["bands"]["auc"][side]) for side in ("low", "high"))
    assert (low < high).all()
    assert low[-1] < whole["learners"][0]["trajectory"]["metrics"]["auc"][-1] < high[-1]


def test_a_checkpoint_with_another_number_of_bands_is_not_gone_on_with(tmp_path, capsys):
    run(tmp_path / "job")
    assert main(["run", str(tmp_path / "job" / "job.toml"), "--set", "evaluate.bands=21"]) != 0
    assert "evaluate.bands" in capsys.readouterr().err


def test_bands_are_drawn_beside_a_windowed_metric_and_around_one_over_all_events(tmp_path):
    windowed = run(tmp_path / "windowed", "window = 300\npicture = true")
    plain = run(tmp_path / "plain", "picture = true")
    assert _panels_below(windowed)[0] == "bands"
    assert "bands" not in _panels_below(plain)
    assert _banded_metric(plain) == "auc"
    for folder in ("windowed", "plain"):
        assert next((tmp_path / folder).rglob("*.png")).stat().st_size > 10_000


def test_a_report_without_bands_is_drawn_without_them(tmp_path):
    run(tmp_path / "job")
    path = next(tmp_path.rglob("*.report.json"))
    report = json.loads(path.read_text())
    del report["comparison"]
    path.write_text(json.dumps(report))
    assert main(["plot", str(path)]) == 0
    assert _banded_metric(report) is None
