"""A fitted model: members as arrays, and what each of their votes weighs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamlearn import snapshot
from streamlearn.contracts import Document, FloatArray, IntArray
from streamlearn.errors import BadSnapshot
from streamlearn.kernels import forest as kernels
from streamlearn.kernels.nodes import NO_KEY
from streamlearn.learners.muffled.trees import Trees, at_nodes, descents, empty_tiles, scratch

_ROWS_AT_ONCE = 1024  # a multiple of the rows of a tile


class Voting(Protocol):
    """What a learner asks of a model: names and weights of its votes, scores, arrays."""

    names: tuple[str, ...]
    evidence: FloatArray

    @property
    def used(self) -> dict[str, NDArray[np.bool_]]:
        """Which labelled rows the trees of each forest saw, bool[n_labelled, n_trees]; empty where nobody asks."""
        ...

    @property
    def weights(self) -> FloatArray:
        """What each vote weighs: float64[n_votes]."""
        ...

    def score(self, X: FloatArray, out: FloatArray) -> FloatArray:
        """Write the scores of rows into out[n_rows]; return the votes, float64[n_rows, n_votes]."""
        ...

    def widened(self, n_features: int) -> Voting:
        """Return the same model for rows with more features, which count for nothing."""
        ...

    def documents(self) -> list[Document]:
        """Return what is not in arrays, a document for each layer of further members."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the model by name."""
        ...


class Model:
    """An additive score: the weighted votes of groups of trees and of linear members.

    Parameters
    ----------
    affine : float64[4, n_features]
    nodes : int32[n_nodes, 4]
    roots : int32[n_trees]
    values : float64[n_values]
    groups : int64[n_groups, 6]
    offsets : float64[n_groups]
    linear : float64[n_linear, 1 + 2 n_features]
    weights : float64[n_votes]
        The trees' votes first.
    names : sequence of str
        Of the votes.
    evidence : float64[1 + n_votes]
        Number of labels, and on them the correlation of each vote with the label, made without the label; or the
        number 0 and, of a model that has a certificate of its own, its bound of the error.
    used : dict of str to bool[n_labelled, n_trees]
        Labelled rows that the trees of each forest saw, where the next refit will want to know.
    """

    def __init__(
        self,
        affine: FloatArray,
        nodes: kernels.Keys,
        roots: kernels.Keys,
        values: FloatArray,
        groups: IntArray,
        offsets: FloatArray,
        linear: FloatArray,
        weights: FloatArray,
        names: Sequence[str],
        evidence: FloatArray | None = None,
        used: dict[str, NDArray[np.bool_]] | None = None,
    ) -> None:
        self.affine = affine
        self.used = {} if used is None else used
        self.evidence = np.zeros(1 + len(weights)) if evidence is None else evidence
        self.names = tuple(names)
        self._parts = (nodes, roots, values, groups, offsets, linear, weights)
        # What descents read is made anew from the nodes, and no part of the state.
        steps, starts, tops = descents(nodes, roots)
        spread, at = _spread(nodes, roots, values, groups)
        m = affine.shape[1]
        self._read = steps, starts, tops, spread, at, offsets, linear, weights
        self._scratch = *scratch(), np.empty(m)
        self._votes_of_one = np.empty((1, len(weights)))
        floats = np.concatenate([affine.ravel(), np.empty(m), linear.ravel(), weights, offsets, spread])
        leaves, numbers = np.empty(len(roots), dtype=np.int64), np.zeros((1, max(m, 1)), dtype=np.float32)
        self._one = floats, at, steps, starts, leaves, numbers, self._votes_of_one

    @classmethod
    def of(
        cls,
        affine: FloatArray,
        trees: Sequence[tuple[Sequence[str], Trees, FloatArray]],
        linear: Sequence[tuple[str, FloatArray, float]] = (),
    ) -> Model:
        """Put members together.

        Parameters
        ----------
        affine : float64[4, n_features]
        trees : sequence of (names, Trees, float64[n_columns] weights)
        linear : sequence of (name, float64[1 + 2 n_features], weight)
        """
        nodes, roots, values, groups, offsets = [], [], [], [], []
        at = n_trees = n_values = column = 0
        for _, part, _ in trees:
            shifted = part.nodes.copy()
            shifted[:, 2] += at
            nodes.append(shifted)
            roots.append(part.roots + np.int32(at))
            values.append(part.values.ravel())
            groups.append([n_trees, n_trees + len(part.roots), part.n_columns, n_values, part.link, column])
            offsets.append(part.offset)
            at += len(shifted)
            n_trees += len(part.roots)
            n_values += part.values.size
            column += part.n_columns
        m = affine.shape[1]
        return cls(
            affine.copy(),
            np.concatenate(nodes) if nodes else np.empty((0, 4), dtype=np.int32),
            np.concatenate(roots).astype(np.int32) if roots else np.empty(0, dtype=np.int32),
            np.concatenate(values) if values else np.empty(0),
            np.array(groups, dtype=np.int64).reshape(-1, kernels.N_FIELDS),
            np.array(offsets, dtype=np.float64),
            np.array([w for _, w, _ in linear], dtype=np.float64).reshape(-1, 1 + 2 * m),
            np.concatenate([*(w for *_, w in trees), [w for *_, w in linear]]),
            [name for names, *_ in trees for name in names] + [name for name, *_ in linear],
        )

    @property
    def weights(self) -> FloatArray:
        """What each vote weighs: float64[n_votes]."""
        return self._parts[-1]

    def values_of(self, X: FloatArray) -> FloatArray:
        """Return what members on values read of rows, which may be twice as wide: values, then ranks."""
        width = self.affine.shape[1]
        return X if X.shape[1] == width else np.ascontiguousarray(X[:, :width])

    def score(self, X: FloatArray, out: FloatArray) -> FloatArray:
        """Write the scores of rows into out[n_rows]; return the votes, float64[n_rows, n_votes], reused for one row."""
        X = self.values_of(X)
        if len(X) == 1:
            kernels.score_row(X, *self._one, out)
            return self._votes_of_one
        votes = np.empty((len(X), len(self.names)))
        most = min(len(X), _ROWS_AT_ONCE)
        numbers, tiles = np.empty((most, X.shape[1]), dtype=np.float32), empty_tiles(most, X.shape[1])
        for a in range(0, len(X), _ROWS_AT_ONCE):
            part = slice(a, a + _ROWS_AT_ONCE)
            rows = X[part]
            room = numbers[: len(rows)], tiles[: -(-len(rows) // kernels.TILE)], *self._scratch
            kernels.scores(rows, self.affine, *self._read, *room, votes[part], out[part])
        return votes

    def widened(self, n_features: int) -> Model:
        """Return the same model for rows with more features, which count for nothing."""
        have = self.affine.shape[1]
        more = n_features - have
        if more == 0:
            return self
        new = np.zeros((4, more))
        new[[kernels.SPREAD, kernels.SD_OF]] = 1.0
        nodes, roots, values, groups, offsets, linear, weights = self._parts
        gap = np.zeros((len(linear), more))
        w = linear[:, 1 : 1 + have]
        wider = np.hstack([linear[:, :1], w, gap, linear[:, 1 + have :], gap])
        return Model(
            np.hstack([self.affine, new]),
            nodes,
            roots,
            values,
            groups,
            offsets,
            wider,
            weights,
            self.names,
            self.evidence,
            self.used,
        )

    @property
    def group_names(self) -> tuple[str, ...]:
        """Name of the first vote of each group of trees."""
        return tuple(self.names[column] for column in self._parts[3][:, kernels.COLUMN])

    def trees_named(self, name: str) -> Trees:
        """Return the trees whose first vote has this name."""
        nodes, roots, values, groups, offsets, *_ = self._parts
        g = self.group_names.index(name)
        first, stop, k, base, link, _ = groups[g].tolist()
        at = int(roots[first])
        own = nodes[at : int(roots[stop]) if stop < len(roots) else len(nodes)].copy()
        own[:, 2] -= at
        n_leaves = int(own[:, 3].max()) + 1
        leaf_values = values[base : base + n_leaves * k].reshape(n_leaves, k).copy()
        return Trees(own, roots[first:stop] - np.int32(at), leaf_values, link, float(offsets[g]))

    def documents(self) -> list[Document]:
        """Return nothing: all is in arrays."""
        return []

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the model by name."""
        own: dict[str, NDArray[Any]] = dict(zip(ARRAYS, (self.affine, *self._parts, self.evidence), strict=True))
        return {**own, **snapshot.nest("used", self.used)}

    @classmethod
    def from_arrays(cls, who: str, arrays: dict[str, NDArray[Any]], names: Sequence[str], n_features: int) -> Model:
        """Return the model that `arrays` gave, having checked every index that a kernel would follow.

        Raises
        ------
        BadSnapshot
        """
        try:
            found = [arrays[name] for name in ARRAYS]
        except KeyError as error:
            raise BadSnapshot(f"{who}: the saved state has no array {error}") from None
        for name, array in zip(ARRAYS, found, strict=True):
            if array.dtype != _DTYPES[name] or array.ndim != _DIMENSIONS[name]:
                raise BadSnapshot(f"{who}: array {name!r} must be {_DTYPES[name]} of {_DIMENSIONS[name]} dimensions")
        affine, nodes, roots, values, groups, offsets, linear, weights, evidence = found
        parts = (affine, nodes, roots, values, groups, offsets, linear, weights)
        fits = evidence.shape == (1 + len(names),) and _sound(*parts, n_votes=len(names), n_features=n_features)
        if not fits:
            raise BadSnapshot(f"{who}: the trees and weights of the saved state do not fit together")
        made = cls(*parts, names, evidence, snapshot.below("used", arrays))
        for name, used in made.used.items():
            n_trees = len(made.trees_named(name).roots) if name in made.group_names else -1
            if used.dtype != np.bool_ or used.ndim != 2 or used.shape[1] != n_trees:
                raise BadSnapshot(f"{who}: the saved state does not fit the trees of {name!r}")
        return made


def _spread(
    nodes: kernels.Keys, roots: kernels.Keys, values: FloatArray, groups: IntArray
) -> tuple[FloatArray, IntArray]:
    """Return the groups' values node by node, and the groups with the places where theirs start."""
    parts, at, n = [], groups.copy(), 0
    for g, (first, stop, k, base, _, _) in enumerate(groups.tolist()):
        leaf = nodes[roots[first] : (roots[stop] if stop < len(roots) else len(nodes)), 3]
        of_leaves = values[base : base + k * (int(leaf.max()) + 1)].reshape(-1, k)
        parts.append(at_nodes(leaf, of_leaves))
        at[g, kernels.BASE] = n
        n += len(parts[-1])
    return np.concatenate(parts) if parts else np.empty(0), at


ARRAYS = ("affine", "nodes", "roots", "values", "groups", "offsets", "linear", "weights", "evidence")
_DTYPES = dict.fromkeys(ARRAYS, np.dtype(np.float64)) | {
    "nodes": np.dtype(np.int32),
    "roots": np.dtype(np.int32),
    "groups": np.dtype(np.int64),
}
_DIMENSIONS = dict(zip(ARRAYS, (2, 2, 1, 1, 2, 1, 2, 1, 1), strict=True))


def _sound(
    affine: FloatArray,
    nodes: kernels.Keys,
    roots: kernels.Keys,
    values: FloatArray,
    groups: IntArray,
    offsets: FloatArray,
    linear: FloatArray,
    weights: FloatArray,
    *,
    n_votes: int,
    n_features: int,
) -> bool:
    """Tell whether every index leads somewhere and every descent ends."""
    fits = (
        affine.shape == (4, n_features)
        and nodes.shape[1] == 4
        and groups.shape == (len(offsets), kernels.N_FIELDS)
        and linear.shape[1] == 1 + 2 * n_features
        and len(weights) == n_votes
    )
    if not fits or not _descents_end(nodes, n_features):
        return False
    if len(roots) and (roots[0] != 0 or roots[-1] >= len(nodes) or (np.diff(roots) <= 0).any()):
        return False
    leaf = nodes[:, 3].astype(np.int64)
    return _groups_fit(groups, roots, leaf, len(nodes), len(values), n_votes - len(linear))


def _descents_end(nodes: kernels.Keys, n_features: int) -> bool:
    """Tell whether children stand behind their parents, leaves point to themselves and features exist."""
    at, inner = np.arange(len(nodes)), nodes[:, 3] < 0
    feature, key, left = (nodes[:, k].astype(np.int64) for k in range(3))
    return bool(
        ((left > at) & (left + 1 < len(nodes)) | ~inner).all()
        and ((left == at) & (key == NO_KEY) | inner).all()
        and ((feature >= 0) & (feature < max(n_features, 1))).all()
    )


def trees_are_sound(trees: Trees, n_features: int) -> bool:
    """Tell whether trees of one vote, as a file gave them, lead every row to a leaf with a value."""
    nodes, roots, values = trees.nodes, trees.roots, trees.values
    if not (nodes.dtype == roots.dtype == np.int32 and values.dtype == np.float64 and values.shape[1:] == (1,)):
        return False
    if nodes.ndim != 2 or nodes.shape[1] != 4 or roots.ndim != 1 or len(roots) == 0:
        return False
    if roots[0] != 0 or roots[-1] >= len(nodes) or (np.diff(roots) <= 0).any():
        return False
    if not _descents_end(nodes, n_features) or int(nodes[:, 3].max()) >= len(values):
        return False
    return trees.link in (kernels.MEAN, kernels.LOGIT, kernels.SUM) and bool(np.isfinite(trees.offset))


def _groups_fit(
    groups: IntArray, roots: kernels.Keys, leaf: IntArray, n_nodes: int, n_values: int, n_votes: int
) -> bool:
    tree = value = column = 0
    for first, stop, k, base, link, to in groups.tolist():
        if first != tree or not first < stop <= len(roots) or k < 1 or base != value or to != column:
            return False
        if link not in (kernels.MEAN, kernels.LOGIT, kernels.SUM, kernels.CLIPPED_MEAN):
            return False
        n_leaves = int(leaf[roots[first] : (roots[stop] if stop < len(roots) else n_nodes)].max()) + 1
        tree, value, column = stop, base + n_leaves * k, to + k
    return tree == len(roots) and value == n_values and column == n_votes
