"""Metrics by name: ``"auc"``, ``"auc:window=1000"``, ``"reject_auc:d=0.4"``."""

from __future__ import annotations

import inspect
from typing import Any

from streamlearn.errors import BadParameter
from streamlearn.evaluation.auc import AUC
from streamlearn.evaluation.curve import RejectCurve
from streamlearn.evaluation.metric import BaseMetric
from streamlearn.evaluation.metrics import MAE, RMSE, Accuracy, Coverage, Kappa, KappaM, KappaT, LogLoss, Risk
from streamlearn.evaluation.reject import RejectAUC, RejectRate, RejectRisk

METRICS: dict[str, type[BaseMetric]] = {
    metric.short: metric
    for metric in (
        AUC,
        RejectAUC,
        RejectRate,
        RejectRisk,
        RejectCurve,
        Accuracy,
        Coverage,
        Risk,
        LogLoss,
        Kappa,
        KappaM,
        KappaT,
        MAE,
        RMSE,
    )
}


def make_metric(spec: str) -> BaseMetric:
    """Return the metric that a text describes.

    Parameters
    ----------
    spec : str
        A name of `METRICS`, then optionally a colon and parameters: ``name:parameter=number,parameter=number``.

    Raises
    ------
    BadParameter
        Unknown name or parameter, a value that is not a number, or one that breaks the metric's rule.

    Examples
    --------
    >>> from streamlearn.evaluation import make_metric
    >>> make_metric("auc:window=1000").name
    'auc_window_1000'
    """
    short, _, rest = spec.partition(":")
    metric = METRICS.get(short.strip())
    if metric is None:
        raise BadParameter(f"metric: the name must be one of {', '.join(METRICS)}, got {short.strip()!r}")
    known = inspect.signature(metric).parameters
    values = parse_spec(metric, rest)
    missing = [name for name, p in known.items() if p.default is inspect.Parameter.empty and name not in values]
    if missing:
        raise BadParameter(
            f"{metric.__name__}: {missing[0]} must be given, as in {metric.short}:{missing[0]}=0.4, got {spec!r}"
        )
    return metric(**values)


def parse_spec(made: type, text: str, *, texts: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the parameters in ``parameter=value,parameter=value``.

    Parameters
    ----------
    made : type
        The class whose parameters they are.
    text : str
    texts : tuple of str
        Parameters whose values are texts; the others are numbers.

    Raises
    ------
    BadParameter
        A parameter is unknown or comes twice, or a value is not a number.
    """
    known = inspect.signature(made).parameters
    values: dict[str, Any] = {}
    for part in text.split(",") if text.strip() else ():
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in known or key in values:
            raise BadParameter(f"{made.__name__}: parameters must be {', '.join(known)}, each once, got {key!r}")
        values[key] = value if key in texts else _number(made.__name__, key, value)
    return values


def _number(who: str, key: str, text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise BadParameter(f"{who}: {key} must be a number, got {text!r}") from None
