"""What the picture of a report shows, as far as its parts can be asked."""

import pytest
from matplotlib.figure import Figure

from streamlearn.errors import BadParameter
from streamlearn.runtime.plots import MOST_LINES, TICK, _drifts, draw


@pytest.mark.parametrize(("n", "top"), [(1, 1.0), (MOST_LINES, 1.0), (MOST_LINES + 1, TICK)])
def test_many_drifts_are_ticks_that_leave_the_curves_to_be_seen(n, top):
    axes = Figure().subplots()
    _drifts(axes, {"title": "one", "drift": {"detector": "adwin", "detected": list(range(n))}}, "#000000")
    (lines,) = axes.collections
    assert len(lines.get_segments()) == n
    assert max(segment[:, 1].max() for segment in lines.get_segments()) == top
    assert lines.get_label() == "drift (adwin) of one"


@pytest.mark.parametrize("drift", [None, {"detector": "adwin", "detected": []}])
def test_a_learner_without_drifts_has_no_lines(drift):
    axes = Figure().subplots()
    _drifts(axes, {"title": "one", "drift": drift}, "#000000")
    assert not axes.collections


def test_a_picture_of_a_kind_that_cannot_be_drawn_is_refused_by_its_ending(tmp_path):
    with pytest.raises(BadParameter, match=r"the picture: must end in one of .*png.*, got 'report\.docx'"):
        draw({}, tmp_path / "report.docx")
