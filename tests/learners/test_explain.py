"""The score of one event, taken apart."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from streamlearn import HedgeMower, HedgeMower1, MarvinD


def learned(cls=HedgeMower1, **params):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)) * [1.0, 100.0, 1e-3] + [0.0, 1000.0, 0.0]
    y = X[:, 0] + (X[:, 1] - 1000) / 100 > 0
    labels = [bool(v) if k < 100 else None for k, v in enumerate(y)]
    events = [dict(zip("abc", row.tolist(), strict=True)) for row in X]
    return cls(n_trees=12, **params).fit(events, labels), events


@pytest.mark.parametrize(
    ("cls", "params"),
    [(HedgeMower1, {}), (HedgeMower, {}), (MarvinD, {"n_stages": 2}), (HedgeMower, {"estimator": "paper"})],
)
def test_parts_of_the_members_sum_to_the_score(cls, params):
    model, events = learned(cls, **params)
    for x in events[:5]:
        found = model.partition_one(x)
        assert found.score == model.score_one(x)
        assert sum(share.part for share in found.shares) == pytest.approx(found.score, abs=1e-12)
        sizes = [abs(share.part) for share in found.shares]
        assert sizes == sorted(sizes, reverse=True)


def test_parts_of_the_rules_sum_to_that_of_their_forest():
    model, events = learned(members="forest", unlabelled_members="off")
    found = model.partition_one(events[0], n_rules=100)
    assert len(found.rules) == 12
    assert sum(rule.part for rule in found.rules) == pytest.approx(found.score, abs=1e-12)
    assert len(model.partition_one(events[0], n_rules=3).rules) == 3


def test_rules_hold_for_the_event_in_the_units_of_its_features():
    model, events = learned(members="forest", unlabelled_members="off")
    for x in events[:20]:
        for rule in model.partition_one(x).rules:
            assert eval(rule.conditions, {"__builtins__": {}}, dict(x)), rule  # noqa: S307 - our own text


def test_it_prints_as_a_table():
    model, events = learned()
    lines = str(model.partition_one(events[0], n_rules=2)).splitlines()
    assert lines[0].startswith("score ")
    assert lines[1].split() == ["member", "vote", "weight", "part"]
    assert len(lines) == 2 + len(model.vote_names) + 2


def test_without_a_model_there_is_only_the_prior():
    model = HedgeMower1().learn_one({"a": 1.0}, 1)
    found = model.partition_one({"a": 1.0})
    assert found.score == model.score_one({"a": 1.0})
    assert found.shares == ()


def test_its_picture_has_a_bar_for_each_member_the_largest_on_top():
    model, events = learned()
    found = model.partition_one(events[0])
    axes = Figure().subplots()
    found.draw(axes)
    bars = sorted(axes.patches, key=lambda bar: -bar.get_y())
    assert [bar.get_width() for bar in bars] == [share.part for share in found.shares]
    assert [text.get_text() for text in axes.get_yticklabels()][::-1] == [share.name for share in found.shares]
    assert axes.get_xlabel() == f"part of the score {found.score:+.3f}"
