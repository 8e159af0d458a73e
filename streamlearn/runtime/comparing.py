"""Comparing learners on one file: a job without outputs of its own, made from command-line arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamlearn.errors import BadJob, BadParameter
from streamlearn.learners.registry import learner_class
from streamlearn.learners.regressor import Regressor
from streamlearn.runtime.job import Job, check_job
from streamlearn.runtime.overrides import parse_value
from streamlearn.runtime.report import Report

_KINDS = {
    ".csv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".parquet": "parquet",
}
_COMPRESSED = (".gz", ".zst")


def comparison(
    file: Path,
    *,
    label: str | None,
    learners: list[str],
    metrics: list[str] | None,
    window: int,
    delay: int,
    fading: float | None,
    bands: int,
    drift: str | None,
    on_drift: str,
    exclude: list[str],
    categorical: list[str],
    kind: str | None,
    out: Path,
) -> Job:
    """Return the job that compares `learners` on `file`.

    Parameters
    ----------
    file : Path
    label : str or None
        The label column; None for LIBSVM.
    learners : list of str
        ``name``, or ``name:key=value,key=value``; a River estimator is ``river:path.to.Class``.
    metrics : list of str or None
        As in a job file; None: what suits the learners.
    window, delay, fading, bands, drift, on_drift, exclude, categorical
        As in a job file.
    kind : str or None
        Kind of the file; by default what its name ends in.
    out : Path
        Folder of report and picture.
    """
    kind = kind or kind_of(file)
    if label is None and kind != "libsvm":
        raise BadJob(f"--label: must name the column to forecast in {file.name}, got none")
    metrics = metrics or default_metrics(learners)
    tables: dict[str, Any] = {
        "name": _stem(file),
        "out": str(out.resolve()),
        "source": {"kind": kind, "path": str(file.resolve())},
        "features": {"exclude": exclude, "categorical": categorical, **({"label": label} if label else {})},
        "learner": _learners(learners),
        "evaluate": {"metrics": metrics, "window": window, "delay": delay, "on_drift": on_drift, "bands": bands},
    }
    if fading is not None:
        tables["evaluate"]["fading"] = fading
    if drift is not None:
        tables["evaluate"]["drift"] = drift
    return check_job(tables, folder=Path.cwd(), name=_stem(file))


def default_metrics(learners: list[str]) -> list[str]:
    """Return the metrics for learners of labels, or those for learners of numbers where all are such."""
    return ["mae", "rmse"] if all(map(_forecasts_numbers, learners)) else ["auc", "logloss", "kappa_t"]


def _forecasts_numbers(text: str) -> bool:
    try:
        return issubclass(learner_class(parse_learner(text)["name"]), Regressor)
    except BadParameter:
        return False  # a foreign learner, or a name that is refused when the job is put together


def advice(report: Report) -> str | None:
    """Return why a comparison tells nothing and what to change; None where it tells something."""
    events, rejected = report["events"], report["rejected"]
    if events and sum(rejected.values()) == events:
        kind = max(rejected, key=lambda name: rejected[name])
        declared = "--categorical NAME takes a column of text, --exclude NAME leaves one out: each once a column"
        return f"no event could be used ({report['rejected_examples'][kind]}); {declared}"
    if rejected.get("label", 0) * 2 > events:
        return (
            f"most labels were refused ({report['rejected_examples']['label']}); these learners tell two labels apart, "
            "a column of numbers is forecast by ORLRegressor"
        )
    values = [value for learner in report["learners"] for value in learner["metrics"].values()]
    if events and all(value is None or value != value for value in values):  # noqa: PLR0124  NaN
        return (
            "no metric has a value: numbers that are forecast are measured by --metric mae or --metric rmse, labels by "
            "auc, logloss and the others"
        )
    return None


def kind_of(file: Path) -> str:
    """Return the kind of a file by its name, compressed or not; BadJob where the name does not tell."""
    suffixes = [suffix for suffix in file.suffixes if suffix not in _COMPRESSED]
    if not suffixes or suffixes[-1] not in _KINDS:
        raise BadJob(f"FILE: must end in one of {', '.join(_KINDS)} or have --kind beside it, got {file.name!r}")
    return _KINDS[suffixes[-1]]


def _stem(file: Path) -> str:
    return file.name.split(".", maxsplit=1)[0] or file.name


def _learners(texts: list[str]) -> list[dict[str, Any]]:
    """Return the ``[[learner]]`` tables, with short titles where these tell them apart."""
    short = [_title(text) for text in texts]
    titles = short if len(set(short)) == len(short) else texts
    return [{"title": title, **parse_learner(text)} for title, text in zip(titles, texts, strict=True)]


def _title(text: str) -> str:
    """Return the class names of a River path, and any other text as it is."""
    prefix, colon, path = text.partition(":")
    if not colon or "=" in text or prefix != "river":
        return text
    return " | ".join(step.rpartition(".")[2].strip() for step in path.split("|"))


def parse_learner(text: str) -> dict[str, Any]:
    """Return the ``[[learner]]`` table of a command-line text.

    Examples
    --------
    >>> parse_learner("aucro:half_life=100,solver=exact")
    {'name': 'aucro', 'half_life': 100, 'solver': 'exact'}
    >>> parse_learner("river:linear_model.LogisticRegression")["name"]
    'river:linear_model.LogisticRegression'
    """
    name, _, settings = text.rpartition(":") if "=" in text else (text, "", "")
    table: dict[str, Any] = {"name": name}
    for setting in filter(None, settings.split(",")):
        key, equals, value = setting.partition("=")
        if not equals:
            raise BadJob(f"--learner: must be name:key=value,..., got {text!r}")
        table[key.strip()] = parse_value(value.strip())
    return table
