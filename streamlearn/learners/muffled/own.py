"""Members that the user brings: trained ones vote as they stand, untrained ones are trained at each refit."""

from __future__ import annotations

import importlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn import snapshot
from streamlearn.contracts import Document, FeatureName, FloatArray, Label, Snapshot
from streamlearn.errors import BadParameter, BadSnapshot, BaseFailed, StreamlearnError
from streamlearn.learners.base import BinaryScorer
from streamlearn.learners.muffled.flat import LARGEST, RIVER, SCALERS, SCIKIT, Flat, NotFlat
from streamlearn.learners.registry import from_state, make_learner

Plain = bool | int | float | str | None

_OURS = "streamlearn"
_SCALER = "StandardScaler"
_TABLES = {"sklearn": SCIKIT, "river": RIVER}
CAN_BE = (
    f"scikit-learn classifiers ({', '.join(SCIKIT)}), River classifiers ({', '.join(RIVER)}), "
    "or two-class learners of streamlearn"
)


@dataclass(frozen=True, slots=True)
class Learned:
    """A trained learner of streamlearn.

    Attributes
    ----------
    learner : BinaryScorer
    """

    learner: BinaryScorer

    @property
    def names(self) -> tuple[FeatureName, ...]:
        """Features, in the order of the columns."""
        return self.learner.feature_names

    def votes(self, rows: FloatArray) -> FloatArray:
        """Return 2 P(positive) - 1 for rows of these features: float64[n_rows]."""
        return 2.0 * self.learner.score_columns(self.names, rows)[1] - 1.0

    def document(self) -> Document:
        """Return what is not in arrays."""
        return {"learner": snapshot.split(self.learner.state())[0]}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        return snapshot.split(self.learner.state())[1]

    @classmethod
    def from_arrays(cls, who: str, document: Document, arrays: dict[str, NDArray[Any]]) -> Learned:
        """Return what `document` and `arrays` gave."""
        if not isinstance(document["learner"], dict):
            raise BadSnapshot(f"{who}: a learner among the members of the saved state must be a table")
        learner = from_state(snapshot.join(document["learner"], arrays))
        if not isinstance(learner, BinaryScorer):
            raise BadSnapshot(f"{who}: a learner among the members must have two classes, got {learner.name}")
        return cls(learner)


@dataclass(frozen=True, slots=True)
class Trained:
    """A member that votes as it stands.

    Attributes
    ----------
    title : str
    voter : Flat or Learned
    turned : bool
        Its second class is not the positive one.
    """

    title: str
    voter: Flat | Learned
    turned: bool = False

    def votes(self, rows: FloatArray) -> FloatArray:
        """Return votes on rows of the member's own features: float64[n_rows]."""
        votes = self.voter.votes(rows)
        return -votes if self.turned else votes

    def document(self) -> Document:
        """Return what is not in arrays."""
        return {"title": self.title, "turned": self.turned, **self.voter.document()}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        return self.voter.arrays()

    @classmethod
    def from_arrays(cls, who: str, document: Document, arrays: dict[str, NDArray[Any]]) -> Trained:
        """Return what `document` and `arrays` gave, checked."""
        if not isinstance(document.get("title"), str):
            raise BadSnapshot(f"{who}: a member of the saved state must have a title")
        kind: type[Flat] | type[Learned] = Learned if "learner" in document else Flat
        return cls(document["title"], kind.from_arrays(who, document, arrays), document.get("turned") is True)


@dataclass(frozen=True, slots=True)
class Recipe:
    """An untrained member: what to make and train at each refit.

    Attributes
    ----------
    title : str
    library : str
        "sklearn", "river" or "streamlearn".
    steps : tuple of (class name, parameters as JSON text)
        One, or a StandardScaler before it.
    """

    title: str
    library: str
    steps: tuple[tuple[str, str], ...]

    def document(self) -> Document:
        """Return JSON values from which `from_document` makes the same."""
        return {"title": self.title, "library": self.library, "steps": [list(step) for step in self.steps]}

    @classmethod
    def from_document(cls, document: Document) -> Recipe:
        """Return the recipe; only classes of the tables can be named."""
        made = cls(document["title"], document["library"], tuple((str(a), str(b)) for a, b in document["steps"]))
        made.make(0)
        return made

    def make(self, seed: int) -> Any:
        """Return a new untrained model; parameters named random_state or seed that are None become `seed`."""
        models = [self._step(name, json.loads(params), seed) for name, params in self.steps]
        if len(models) == 1:
            return models[0]
        module = importlib.import_module(_TABLES[self.library]["Pipeline"][0])
        if self.library == "river":
            return module.Pipeline(*models)
        return module.Pipeline([("scaler", models[0]), ("last", models[1])])

    def _step(self, name: str, params: dict[str, Plain], seed: int) -> Any:
        if self.library == _OURS:
            return make_learner(name, params)
        module = SCALERS[self.library] if name == _SCALER else _TABLES[self.library][name][0]
        made = getattr(importlib.import_module(module), name)(**params)
        if self.library == "sklearn" and "random_state" in made.get_params() and made.random_state is None:
            made.set_params(random_state=seed)
        return made

    def train(self, rows: FloatArray, y: FloatArray, seed: int) -> Trained:
        """Return the member trained on rows with labels 1 / -1, its features numbered by column.

        Raises
        ------
        BaseFailed
            Its library refused the rows.
        """
        try:
            return self._train(rows, y, seed)
        except (StreamlearnError, NotFlat):
            raise
        except Exception as error:
            raise BaseFailed(f"{self.title} failed on {len(rows)} rows: {error}") from error

    def _train(self, rows: FloatArray, y: FloatArray, seed: int) -> Trained:
        model = self.make(seed)
        if rows.shape[1] == 0:
            return Trained(self.title, Flat(None, np.zeros(1), ()))
        if self.library == _OURS:
            return Trained(self.title, Learned(model.learn_many(rows, (y > 0).tolist())))
        rows = np.clip(rows, -LARGEST, LARGEST)
        if self.library == "river":
            # Trees compare float32 numbers later, so thresholds must come from such numbers.
            for x, positive in zip(rows.astype(np.float32).tolist(), (y > 0).tolist(), strict=True):
                model.learn_one(dict(enumerate(x)), positive)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a fit on few labels did not converge is no news
                model.fit(rows, y)
        return Trained(self.title, _flat(self.library, model))


Own = Trained | Recipe


def _flat(library: str, model: Any) -> Flat:
    return _TABLES[library][type(model).__name__][1](model)


def own_member(who: str, given: Any, positive: Label | None) -> Own:
    """Return the member that the user gave.

    Raises
    ------
    BadParameter
        It has no form in numbers; the message names what can be given.
    """
    if isinstance(given, (Trained, Recipe)):
        return given
    library, name = type(given).__module__.partition(".")[0], type(given).__name__
    if isinstance(given, BinaryScorer):
        return _own_learner(who, given, positive)
    if library not in _TABLES or name not in _TABLES[library] or isinstance(given, type):
        raise BadParameter(f"{who}: members must be names, {CAN_BE}, got {given!r}")
    try:
        if not _is_trained(library, given):
            recipe = Recipe(name, library, _steps(library, given))
            _try_out(who, recipe)
            return recipe
        flat = _flat(library, given)
        classes = [False, True] if library == "river" else list(given.classes_)
        return Trained(name, flat, _is_turned(classes[0], positive))
    except NotFlat as error:
        raise BadParameter(f"{who}: members must have a form in arrays, {name} has none: {error}") from error


def _try_out(who: str, recipe: Recipe) -> None:
    """Train a member on few rows: what its library refuses is told now, not at the first refit of a stream."""
    rows = np.linspace(-1.0, 1.0, 80).reshape(40, 2)
    try:
        recipe.train(rows, np.where(np.arange(40) % 2 == 0, 1.0, -1.0), 0)
    except BaseFailed as error:
        raise BadParameter(f"{who}: members must be such as can be trained, {error}") from error


def _own_learner(who: str, given: BinaryScorer, positive: Label | None) -> Own:
    if getattr(given, "learns_unlabelled", False):
        raise BadParameter(f"{who}: members must learn from labels alone, got {given!r}")
    negative, second = given.label_pair()
    if given.n_features == 0 and negative is None and second is None:
        params = {**given.params(), "positive": True}
        return Recipe(given.name, _OURS, ((given.name, json.dumps(params)),))
    copy = from_state(given.state())  # what the caller goes on teaching must not change the model
    if not isinstance(copy, BinaryScorer):
        raise BadParameter(f"{who}: members must have two classes, got {given!r}")
    return Trained(given.name, Learned(copy), negative is not None and _is_turned(negative, positive))


def _is_turned(first: Any, positive: Label | None) -> bool:
    """Tell whether a member's first class is the one that counts as positive here."""
    return positive is not None and bool(first == positive)


def _is_trained(library: str, model: Any) -> bool:
    last = model
    if type(model).__name__ == "Pipeline":
        last = model.steps[-1][1] if library == "sklearn" else list(model.steps.values())[-1]
    if library == "sklearn":
        return hasattr(last, "classes_")
    if type(last).__name__ == "HoeffdingTreeClassifier":
        if not set(last.classes) <= {False, True}:
            raise NotFlat(f"it must have been trained on labels True and False, got {sorted(last.classes, key=str)}")
        return last._root is not None
    return len(getattr(last, "weights", ())) > 0


def _steps(library: str, model: Any) -> tuple[tuple[str, str], ...]:
    steps = [model]
    if type(model).__name__ == "Pipeline":
        steps = [step for _, step in model.steps] if library == "sklearn" else list(model.steps.values())
        names = [type(step).__name__ for step in steps]
        if len(steps) != 2 or names[0] != _SCALER or names[1] not in ("LogisticRegression", "GaussianNB"):
            raise NotFlat(f"a pipeline must be StandardScaler, then LogisticRegression or GaussianNB, got {names}")
    elif type(model).__name__ == "HoeffdingTreeClassifier" and model.leaf_prediction != "mc":
        raise NotFlat(f"leaf_prediction must be 'mc': other leaves are models, got {model.leaf_prediction!r}")
    elif type(model).__name__ == "GradientBoostingClassifier" and (
        model.loss != "log_loss" or model.init not in (None, "zero")
    ):
        raise NotFlat(f"loss must be 'log_loss' and init None or 'zero', got {model.loss!r} and {model.init!r}")
    return tuple((type(step).__name__, json.dumps(_plain_params(library, step))) for step in steps)


def _plain_params(library: str, model: Any) -> dict[str, Plain]:
    """Return the parameters that differ from the defaults; those must be numbers, text or None."""
    have, default = (
        dict(m.get_params(deep=False)) if library == "sklearn" else m._get_params() for m in (model, type(model)())
    )
    changed = {name: value for name, value in have.items() if not _same(value, default[name])}
    for name, value in changed.items():
        if value is not None and not isinstance(value, (bool, int, float, str)):
            raise NotFlat(f"{name} must be a number, text or None for an untrained member, got {value!r}")
    return changed


def _same(a: Any, b: Any) -> bool:
    if hasattr(a, "_get_params"):
        return type(a) is type(b) and bool(a._get_params() == b._get_params())
    return type(a) is type(b) and bool(a == b)


def checked_own(who: str, given: Sequence[Any], positive: Label | None) -> tuple[Own, ...]:
    """Return the members that are not names, with titles of their own."""
    found: list[Own] = []
    titles: dict[str, int] = {}
    for item in given:
        if isinstance(item, str):
            continue
        member = own_member(who, item, positive)
        count = titles[member.title] = titles.get(member.title, 0) + 1
        if count > 1 and not isinstance(item, (Trained, Recipe)):
            member = replace(member, title=f"{member.title} {count}")
        found.append(member)
    return tuple(found)


def to_text(given: Sequence[Any], own: Sequence[Own]) -> str:
    """Return members as JSON text: names, recipes, and what is not in the arrays of trained ones."""
    waiting = iter(own)
    return json.dumps([item if isinstance(item, str) else next(waiting).document() for item in given])


def from_text(who: str, text: str, arrays: Mapping[str, Snapshot]) -> list[str | Own]:
    """Return the members that `to_text` described; `arrays` are those of the trained ones by their place."""
    found: list[str | Own] = []
    for place, item in enumerate(json.loads(text)):
        if isinstance(item, str):
            found.append(item)
        elif "library" in item:
            found.append(Recipe.from_document(item))
        else:
            found.append(Trained.from_arrays(who, item, dict(arrays.get(str(place), {}))))
    return found
