"""Online regressors of other libraries, run prequentially: every row predicted before it is learned."""

from __future__ import annotations

import warnings

import numpy as np
from river import compose, linear_model, optim, preprocessing
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDRegressor

RATES = (0.001, 0.003, 0.01, 0.03, 0.1)
VW_RATES = (0.1, 0.5, 2.0, 4.0, 8.0)


def river(loss: str, rate: float = 0.01):
    losses = {"squared": optim.losses.Squared, "huber": optim.losses.Huber, "absolute": optim.losses.Absolute}

    def run(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        model = compose.Pipeline(
            preprocessing.StandardScaler(),
            linear_model.LinearRegression(optimizer=optim.SGD(rate), intercept_lr=rate, loss=losses[loss]()),
        )
        out = np.empty(len(y))
        for i, (row, target) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
            x = dict(enumerate(row))
            out[i] = model.predict_one(x)
            model.learn_one(x, target)
        return out

    return run


def sgd_huber(epsilon: float = 0.1, rate: float = 0.01):
    """scikit-learn's SGDRegressor behind a running standardisation, one row at a time."""

    def run(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        model = SGDRegressor(loss="huber", epsilon=epsilon, eta0=rate)
        mean, square, out = np.zeros(X.shape[1]), np.zeros(X.shape[1]), np.zeros(len(y))
        for i in range(len(y)):
            sd = np.sqrt(square / max(i, 1))
            z = (np.divide(X[i] - mean, sd, where=sd > 0, out=np.zeros(X.shape[1]))).reshape(1, -1).clip(-1e6, 1e6)
            out[i] = model.predict(z)[0] if i else 0.0
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.partial_fit(z, y[i : i + 1])
            step = X[i] - mean
            mean += step / (i + 1)
            square += step * (X[i] - mean)
        return out

    return run


def vw_quantile(rate: float = 0.5):
    def run(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        import vowpalwabbit  # noqa: PLC0415 - the only peer that is not in the environment of `dev`

        model = vowpalwabbit.Workspace(f"--quiet --loss_function quantile --quantile_tau 0.5 -l {rate}")
        out = np.empty(len(y))
        for i, (row, target) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
            text = f"{target} | " + " ".join(f"f{j}:{v}" for j, v in enumerate(row) if v)
            example = model.parse(text, vowpalwabbit.LabelType.SIMPLE)
            out[i] = model.predict(example)
            model.learn(example)
            model.finish_example(example)
        model.finish()
        return out

    return run


def recursive_least_squares(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    p = X.shape[1] + 1
    inverse, theta, out = np.eye(p) * 1e4, np.zeros(p), np.empty(len(y))
    for i in range(len(y)):
        z = np.append(1.0, X[i])
        out[i] = theta @ z
        gain = inverse @ z
        gain /= 1.0 + z @ gain
        theta += gain * (y[i] - out[i])
        inverse -= np.outer(gain, z @ inverse)
    return out


def scaled(run):
    """The target in robust units of its first 200 values, as a careful user would."""

    def with_scaling(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        middle = np.median(y[:200])
        unit = 1.4826 * np.median(np.abs(y[:200] - middle)) or 1.0
        return middle + unit * run(X, (y - middle) / unit)

    return with_scaling


DEFAULTS = {
    "River squared": river("squared"),
    "River Huber": river("huber"),
    "River absolute": river("absolute"),
    "SGDRegressor(huber)": sgd_huber(),
    "VW quantile": vw_quantile(),
    "RLS": recursive_least_squares,
}
TUNED = {
    "River Huber": [scaled(river("huber", rate)) for rate in RATES],
    "River absolute": [scaled(river("absolute", rate)) for rate in RATES],
    "SGDRegressor(huber)": [scaled(sgd_huber(rate=rate)) for rate in RATES],
    "VW quantile": [scaled(vw_quantile(rate)) for rate in VW_RATES],
}
