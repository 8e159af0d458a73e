"""Carbon monoxide by other sensors, with every failed reading left in: what robust online regression is for.

    python demos/robust_sensor.py air_quality.csv.gz

The file is that of the UCI repository's Air Quality set, as CSV with the target in a column ``label``. A failed reading
stands there as -200: a fifth of the targets, and at times all features. Nothing is cleaned; every hour is predicted
before it is learned. Without the file the demo makes a stream of the same kind.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

from streamlearn import ORLRegressor


def made(n: int = 9000) -> pd.DataFrame:
    """Return five sensors and a target that they share, which drifts, with failed readings as -200."""
    rng = np.random.default_rng(0)
    level = np.abs(np.cumsum(rng.normal(size=n)) * 0.02) + 2 + np.sin(np.arange(n) / 24 * 2 * np.pi)
    frame = pd.DataFrame({f"sensor_{k}": level * (1 + k) * 100 + 20 * rng.normal(size=n) for k in range(5)})
    frame["label"] = level + 0.2 * rng.normal(size=n)
    for name in frame:
        frame.loc[rng.random(n) < (0.18 if name == "label" else 0.04), name] = -200.0
    return frame


def main() -> None:
    """Predict, learn, and show the median error by stretches of the stream."""
    frame = pd.read_csv(sys.argv[1]) if len(sys.argv) > 1 else made()
    y = frame.pop("label").to_numpy(float)
    X = frame.select_dtypes("number").astype(float)
    model = ORLRegressor()
    predicted = model.test_then_learn_many(X, y).to_numpy()
    failed = X == -200
    reliable = failed.mean() < 0.5  # one sensor of the real file fails most of the time
    good = (y != -200) & ~failed.loc[:, reliable].any(axis=1).to_numpy()
    print(f"{len(y)} rows, {(y == -200).sum()} targets failed")
    for part in np.array_split(np.arange(len(y)), 8):
        read = part[good[part]]
        usual = np.median(np.abs(y[read] - np.median(y[read]))) if len(read) else np.nan
        error = np.median(np.abs(predicted[read] - y[read])) if len(read) else np.nan
        print(f"rows {part[0]:6d} to {part[-1]:6d}   median error {error:6.3f}   without features {usual:6.3f}")
    told = model.outliers_many(X, y).to_numpy()
    print(f"failed targets told apart by the last model: {told[y == -200].mean():.1%}, scale {model.scale_:.3f}")


if __name__ == "__main__":
    main()
