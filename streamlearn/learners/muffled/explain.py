"""What carries the score of one event: members, and the rules of their trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FeatureName, FloatArray
from streamlearn.kernels import forest as kernels
from streamlearn.learners.muffled.layers import Layered
from streamlearn.learners.muffled.model import Model, Voting
from streamlearn.learners.muffled.sample import Sample, ordered


@dataclass(frozen=True, slots=True)
class Share:
    """What one member gives to the score of an event.

    Attributes
    ----------
    name : str
    vote : float
    weight : float
    """

    name: str
    vote: float
    weight: float

    @property
    def part(self) -> float:
        """The member's part of the score: vote times weight."""
        return self.vote * self.weight


@dataclass(frozen=True, slots=True)
class Rule:
    """What one leaf gives to the score of an event.

    Attributes
    ----------
    member : str
    conditions : str
        ``"3.1 < x <= 4 and z > 0"``.
    part : float
    """

    member: str
    conditions: str
    part: float


@dataclass(frozen=True, slots=True)
class Partition:
    """The score of one event, taken apart.

    Attributes
    ----------
    score : float
    shares : tuple of Share
        Of all members, largest part first; their parts sum to the score.
    rules : tuple of Rule
        The leaves with the largest parts. Leaves of boosted trees are no parts of the score (their sum is squashed).
    """

    score: float
    shares: tuple[Share, ...]
    rules: tuple[Rule, ...]

    def draw(self, axes: Any) -> None:
        """Draw the parts of the members as bars, the largest on top.

        Parameters
        ----------
        axes : matplotlib.axes.Axes
            Drawn into.

        Examples
        --------
        With ``figure, axes = plt.subplots()``: ``model.partition_one(x).draw(axes)``, ``figure.savefig("why.png")``.
        """
        shares = self.shares[::-1]
        names, parts = [share.name for share in shares], [share.part for share in shares]
        axes.barh(range(len(parts)), parts, tick_label=names)
        axes.axvline(0.0, color="black", linewidth=0.8)
        axes.set_xlabel(f"part of the score {self.score:+.3f}")

    def __str__(self) -> str:
        width = max((len(share.name) for share in self.shares), default=0)
        lines = [f"score {self.score:+.4f}", f"{'member':{width}}    vote   weight     part"]
        lines += [f"{s.name:{width}} {s.vote:+7.3f} {s.weight:8.3f} {s.part:+8.4f}" for s in self.shares]
        lines += [f"{rule.part:+8.4f}  {rule.member}: {rule.conditions}" for rule in self.rules]
        return "\n".join(lines)


def partition(model: Voting, row: FloatArray, names: Sequence[FeatureName], n_rules: int) -> Partition:
    """Take the score of one row apart.

    Parameters
    ----------
    model : Voting
    row : float64[1, n_features]
    names : sequence of str or int
        Of the features.
    n_rules : int
        How many rules to show.
    """
    out = np.empty(1)
    votes = model.score(row, out)[0].copy()
    shares = [Share(name, float(v), float(w)) for name, v, w in zip(model.names, votes, model.weights, strict=True)]
    base = model.base if isinstance(model, Layered) else model
    rules = _rules(base, row[:, : len(names)], names) if isinstance(base, Model) else []
    return Partition(
        float(out[0]),
        tuple(sorted(shares, key=lambda share: -abs(share.part))),
        tuple(sorted(rules, key=lambda rule: -abs(rule.part))[:n_rules]),
    )


def _rules(model: Model, row: FloatArray, names: Sequence[FeatureName]) -> list[Rule]:
    parts = model.arrays()
    nodes, roots, values = parts["nodes"], parts["roots"], parts["values"]
    keys = ordered(Sample.values(row, model.affine))[0]
    found = []
    for first, stop, k, base, link, column in parts["groups"].tolist():
        if link == kernels.LOGIT:
            continue
        weights = model.weights[column : column + k]
        divisor = 1.0 if link == kernels.SUM else float(stop - first)
        for t in range(first, stop):
            path = _path(nodes, int(roots[t]), keys)
            at = base + int(nodes[path[-1], 3]) * k
            part = float(values[at : at + k] @ weights) / divisor
            found.append(Rule(model.names[column], _conditions(model, nodes, path, names), part))
    return found


def _path(nodes: kernels.Keys, root: int, keys: NDArray[np.int32]) -> list[int]:
    path = [root]
    while nodes[path[-1], 3] < 0:
        feature, key, left, _ = nodes[path[-1]].tolist()
        path.append(left + int(keys[feature] > key))
    return path


def _conditions(model: Model, nodes: kernels.Keys, path: Sequence[int], names: Sequence[FeatureName]) -> str:
    """Return the conditions of a path in the units of the features, one a feature."""
    limits: dict[int, list[float]] = {}
    for node, child in pairwise(path):
        feature, key, left, _ = nodes[node].tolist()
        centre, spread = model.affine[[kernels.CENTRE, kernels.SPREAD], feature]
        threshold = float(_number(key) * spread + centre)
        low_high = limits.setdefault(feature, [-np.inf, np.inf])
        if child == left:
            low_high[1] = min(low_high[1], threshold)
        else:
            low_high[0] = max(low_high[0], threshold)
    texts = []
    for feature, (low, high) in limits.items():
        below, above = f"{low:.4g} < " if low > -np.inf else "", f" <= {high:.4g}" if high < np.inf else ""
        texts.append(f"{below}{names[feature]}{above}" if above else f"{names[feature]} > {low:.4g}")
    return " and ".join(texts) or "always"


def _number(key: int) -> float:
    """Return the float32 whose key this is."""
    bits = np.array([key], dtype=np.int32)
    kernels.order_keys(bits[None, :])  # its own inverse
    return float(bits.view(np.float32)[0])
