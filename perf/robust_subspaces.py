"""ORLPCA on real tables: near-infrared spectra with documented outliers, fruit spectra, half-empty sky plates.

python perf/robust_subspaces.py [--quick]

Median orthogonal distance over all rows (the sky: over its complete rows), beside scikit-learn's IncrementalPCA.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from robust_streams import DATA, require_data
from sklearn.decomposition import IncrementalPCA

from streamlearn import ORLPCA


def median_distance(X: np.ndarray, mean: np.ndarray, components: np.ndarray) -> float:
    centred = X - mean
    return float(np.median(np.linalg.norm(centred - centred @ components.T @ components, axis=1)))


def octane() -> None:
    d = pd.read_csv(DATA / "octane_nir.csv.gz")
    X, alcohol = d.drop(columns=["label", "octane_number"]).to_numpy(), d["label"].to_numpy() == 1
    for base in ("lts", "rc"):
        for k in (1, 2, 3, 4):
            model = ORLPCA(n_components=k, batch_size=len(X), base=base).learn_many(X)
            off, told = model.distances_many(X)[1], model.outliers_many(X)
            gap = off[alcohol].min() / off[~alcohol].max()
            print(f"octane  {base:3s} d={k}: flagged {(np.flatnonzero(told) + 1).tolist()}", end=" ")
            print(f"exactly the six: {bool((told == alcohol).all())}, smallest outlier / largest other {gap:.1f}")


def fruit() -> None:
    X = pd.read_csv(DATA / "fruit_spectra.csv.gz").drop(columns="label").to_numpy(float)
    for k in (2, 4):
        plain = IncrementalPCA(k).fit(X)
        print(f"fruit   d={k}: IncrementalPCA {median_distance(X, plain.mean_, plain.components_):.4f}", end="")
        for base, size in (("lts", len(X)), ("rc", len(X)), ("lts", 548)):
            model = ORLPCA(n_components=k, batch_size=size, base=base).learn_many(X)
            columns = list(model.feature_names)
            print(f"  {base} b={size} {median_distance(X[:, columns], model.mean_, model.components_):.4f}", end="")
        print()


def sky() -> None:
    X = pd.read_csv(DATA / "dposs_sky.csv.gz").to_numpy(float)
    middle = np.nanmedian(X, axis=0)
    X = (X - middle) / (1.4826 * np.nanmedian(np.abs(X - middle), axis=0))
    complete = ~np.isnan(X).any(axis=1)
    for k in (2, 4):
        print(f"sky     d={k}:", end="")
        for params in (
            {"missing": "complete"},
            {"missing": "complete", "base": "rc", "trim": 0.1},
            {"missing": "pairwise", "base": "rc", "trim": 0.1},
        ):
            model = ORLPCA(n_components=k, batch_size=len(X), **params).learn_many(X)
            columns = list(model.feature_names)
            distance = median_distance(X[complete][:, columns], model.mean_, model.components_)
            print(f"  {params['missing']} {model.base} {distance:.3f}", end="")
        filled = np.where(np.isnan(X), 0.0, X)
        model = ORLPCA(n_components=k, batch_size=len(X)).learn_many(filled)
        columns = list(model.feature_names)
        print(f"  filled with medians {median_distance(X[complete][:, columns], model.mean_, model.components_):.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="the spectra with documented outliers alone")
    quick = parser.parse_args().quick
    require_data()
    octane()
    if not quick:
        fruit()
        sky()
