"""Fitted classifiers of scikit-learn and River as arrays: what they would say without the libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import Document, FeatureName, FloatArray
from streamlearn.errors import BadSnapshot
from streamlearn.kernels import forest as kernels
from streamlearn.kernels.lines import line_votes
from streamlearn.learners.muffled.model import trees_are_sound
from streamlearn.learners.muffled.sample import ordered
from streamlearn.learners.muffled.trees import Trees, flatten

LARGEST = 3e38
"""Rows end here before float32, which scikit-learn's trees see, would."""
_LEAST_SHARE = float(np.finfo(np.float32).eps)  # scikit-learn's bound of a prior


@dataclass(frozen=True, slots=True)
class Flat:
    """One classifier.

    Attributes
    ----------
    trees : Trees or None
        With one vote.
    line : float64[1 + 2 n_features]
        Bias, weights and weights of the squares of log-odds; empty where there are trees.
    names : tuple of str or int
        Features, in the order of the columns.
    shares : bool
        The trees vote with P(second class) instead of 2 P - 1.
    """

    trees: Trees | None
    line: FloatArray
    names: tuple[FeatureName, ...]
    shares: bool = False

    def votes(self, rows: FloatArray) -> FloatArray:
        """Return 2 P(second class) - 1 for rows of these features: float64[n_rows]."""
        if self.trees is None:
            out = np.empty(len(rows))
            line_votes(np.ascontiguousarray(rows), self.line, out)
            return out
        values = np.clip(rows, -LARGEST, LARGEST).astype(np.float32) + np.float32(0.0)
        votes = self.trees.votes(ordered(np.ascontiguousarray(values)))[:, 0]
        return 2.0 * votes - 1.0 if self.shares else votes

    def document(self) -> Document:
        """Return what is not in arrays."""
        link = None if self.trees is None else [self.trees.link, self.trees.offset]
        return {"features": list(self.names), "shares": self.shares, "trees": link}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        if self.trees is None:
            return {"line": self.line}
        return {"nodes": self.trees.nodes, "roots": self.trees.roots, "values": self.trees.values}

    @classmethod
    def from_arrays(cls, who: str, document: Document, arrays: dict[str, NDArray[Any]]) -> Self:
        """Return what `document` and `arrays` gave, checked.

        Raises
        ------
        BadSnapshot
        """
        try:
            names, shares, link = tuple(document["features"]), document["shares"] is True, document["trees"]
            if link is None:
                line = arrays["line"]
                fits = line.dtype == np.float64 and line.shape == (1 + 2 * len(names),)
                made = cls(None, line, names, shares)
            else:
                trees = Trees(arrays["nodes"], arrays["roots"], arrays["values"], int(link[0]), float(link[1]))
                fits = trees_are_sound(trees, len(names))
                made = cls(trees, np.empty(0), names, shares)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise BadSnapshot(f"{who}: a member of the saved state cannot be used: {error!r}") from error
        if not fits or not all(type(name) in (str, int) for name in names):
            raise BadSnapshot(f"{who}: the arrays of a member of the saved state do not fit together")
        return made


class NotFlat(Exception):
    """Why a classifier has no form in arrays; turned into a BadParameter where the parameter is known."""


def _features_of(model: Any) -> tuple[FeatureName, ...]:
    names = getattr(model, "feature_names_in_", None)
    return tuple(range(int(model.n_features_in_))) if names is None else tuple(str(name) for name in names)


def _two_classes(model: Any) -> None:
    if len(model.classes_) != 2 or getattr(model, "n_outputs_", 1) != 1:
        raise NotFlat(f"it must have been fitted to two classes, got {list(model.classes_)}")


def _of_trees(model: Any, trees: list[Any]) -> Flat:
    _two_classes(model)
    grown = flatten(trees, [tree.value[:, 0, 1] for tree in trees])
    return Flat(grown.trees(grown.means[:, None]), np.empty(0), _features_of(model), shares=True)


def _tree(model: Any) -> Flat:
    return _of_trees(model, [model.tree_])


def _forest(model: Any) -> Flat:
    return _of_trees(model, [estimator.tree_ for estimator in model.estimators_])


def _boosting(model: Any) -> Flat:
    from scipy.special import logit  # noqa: PLC0415 - the import costs 30 ms and few models need it

    _two_classes(model)
    if model.loss != "log_loss" or model.init not in (None, "zero"):
        raise NotFlat(f"loss must be 'log_loss' and init None or 'zero', got {model.loss!r} and {model.init!r}")
    offset = 0.0
    if model.init is None:
        offset = float(logit(np.clip(model.init_.class_prior_[1], _LEAST_SHARE, 1.0 - _LEAST_SHARE)))
    trees = [estimator.tree_ for estimator in model.estimators_[:, 0]]
    grown = flatten(trees, [model.learning_rate * tree.value[:, 0, 0] for tree in trees])
    part = grown.trees(grown.means[:, None])
    return Flat(Trees(part.nodes, part.roots, part.values, kernels.LOGIT, offset), np.empty(0), _features_of(model))


def _logistic(model: Any) -> Flat:
    _two_classes(model)
    w = np.asarray(model.coef_[0], dtype=np.float64)
    bias = float(np.ravel(model.intercept_)[0])
    return Flat(None, np.concatenate([[bias], w, np.zeros(len(w))]), _features_of(model))


def _gaussian_bayes(model: Any) -> Flat:
    _two_classes(model)
    (m0, m1), (v0, v1) = model.theta_, model.var_
    bias = np.log(model.class_prior_[1]) - np.log(model.class_prior_[0])
    bias += float((0.5 * (np.log(v0) - np.log(v1)) + 0.5 * (m0 * m0 / v0 - m1 * m1 / v1)).sum())
    line = np.concatenate([[bias], m1 / v1 - m0 / v0, 0.5 / v0 - 0.5 / v1])
    return Flat(None, line, _features_of(model))


def _scaled(line: FloatArray, means: FloatArray, factors: FloatArray) -> FloatArray:
    """Return the line of rows x for one of rows (x - means) factors."""
    w, q = line[1:].reshape(2, -1)
    a, c = w * factors, q * factors * factors
    bias = line[0] + float((c * means * means - a * means).sum())
    return np.concatenate([[bias], a - 2.0 * c * means, c])


def _pipeline(model: Any) -> Flat:
    steps = [step for _, step in model.steps]
    kinds = [type(step).__name__ for step in steps]
    if len(steps) != 2 or kinds[0] != "StandardScaler" or kinds[1] not in ("LogisticRegression", "GaussianNB"):
        raise NotFlat(f"a pipeline must be StandardScaler, then LogisticRegression or GaussianNB, got {kinds}")
    scaler, last = steps
    inner = SCIKIT[kinds[1]][1](last)
    means = scaler.mean_ if scaler.with_mean else np.zeros(len(inner.names))
    factors = 1.0 / scaler.scale_ if scaler.with_std else np.ones(len(inner.names))
    return Flat(None, _scaled(inner.line, np.asarray(means), np.asarray(factors)), _features_of(scaler))


def _river_logistic(model: Any) -> Flat:
    names = tuple(model.weights)
    w = np.array([float(model.weights[name]) for name in names])
    return Flat(None, np.concatenate([[float(model.intercept)], w, np.zeros(len(w))]), names)


def _river_pipeline(model: Any) -> Flat:
    steps = list(model.steps.values())
    kinds = [type(step).__name__ for step in steps]
    if kinds != ["StandardScaler", "LogisticRegression"]:
        raise NotFlat(f"a pipeline must be StandardScaler, then LogisticRegression, got {kinds}")
    scaler, inner = steps[0], _river_logistic(steps[1])
    means = np.array([float(scaler.means[name]) for name in inner.names])
    spread = np.array([float(scaler.vars[name]) ** 0.5 if scaler.with_std else 1.0 for name in inner.names])
    factors = np.divide(1.0, spread, where=spread > 0.0, out=np.zeros(len(spread)))
    return Flat(None, _scaled(inner.line, means, factors), inner.names)


@dataclass(frozen=True, slots=True)
class _TreeArrays:
    """One tree, as scikit-learn names its parts."""

    children_left: NDArray[np.int64]
    children_right: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: FloatArray
    weighted_n_node_samples: FloatArray

    @property
    def node_count(self) -> int:
        return len(self.feature)


def _river_tree(model: Any) -> Flat:
    if model.leaf_prediction != "mc":
        raise NotFlat(f"leaf_prediction must be 'mc': other leaves are models, got {model.leaf_prediction!r}")
    found = list(_walk(model._root))
    names = tuple(dict.fromkeys(name for name, *_ in found if name is not None))
    place = {name: j for j, name in enumerate(names)}
    tree = _TreeArrays(
        np.array([left for _, _, left, _, _ in found], dtype=np.int64),
        np.array([right for _, _, _, right, _ in found], dtype=np.int64),
        np.array([place.get(name, -2) for name, *_ in found], dtype=np.int64),
        np.array([threshold for _, threshold, _, _, _ in found]),
        np.ones(len(found)),
    )
    values = np.array([share for *_, share in found])
    grown = flatten([tree], [values])
    return Flat(grown.trees(grown.means[:, None]), np.empty(0), names, shares=True)


def _walk(root: Any) -> Iterator[tuple[Any, float, int, int, float]]:
    """Give feature, threshold, left and right child, P(True) of each node of a Hoeffding tree, parents first."""
    waiting, n_seen = [root], 1
    while waiting:
        node = waiting.pop(0)
        if hasattr(node, "children"):
            if type(node).__name__ != "NumericBinaryBranch":
                raise NotFlat(f"branches must split a number in two, got {type(node).__name__}")
            waiting += node.children
            yield node.feature, float(node.threshold), n_seen, n_seen + 1, 0.0
            n_seen += 2
        else:
            stats = {} if node is None else node.stats
            total = float(sum(stats.values()))
            yield None, 0.0, -1, -1, float(stats.get(True, 0.0)) / total if total > 0.0 else 0.5


SCIKIT: dict[str, tuple[str, Callable[[Any], Flat]]] = {
    "DecisionTreeClassifier": ("sklearn.tree", _tree),
    "ExtraTreeClassifier": ("sklearn.tree", _tree),
    "RandomForestClassifier": ("sklearn.ensemble", _forest),
    "ExtraTreesClassifier": ("sklearn.ensemble", _forest),
    "GradientBoostingClassifier": ("sklearn.ensemble", _boosting),
    "LogisticRegression": ("sklearn.linear_model", _logistic),
    "GaussianNB": ("sklearn.naive_bayes", _gaussian_bayes),
    "Pipeline": ("sklearn.pipeline", _pipeline),
}
"""Classes of scikit-learn that have a form in arrays, with the module to import them from."""

RIVER: dict[str, tuple[str, Callable[[Any], Flat]]] = {
    "LogisticRegression": ("river.linear_model", _river_logistic),
    "HoeffdingTreeClassifier": ("river.tree", _river_tree),
    "Pipeline": ("river.compose", _river_pipeline),
}
"""Likewise of River."""
SCALERS = {"sklearn": "sklearn.preprocessing", "river": "river.preprocessing"}
"""Where a StandardScaler, the first step of a pipeline, is imported from."""
