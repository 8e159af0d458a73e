"""Does averaging the weights of successive refits help on streams it was not chosen on?

    python perf/muffled_kept.py [--events N] [--seeds N] [--shares 0.03 0.1] [--streams NAME ...] [--report]

At a refit HedgeMower1 keeps a share of each vote's last weight: 0.7 at first, chosen on the streams of
`muffled_stream.py` (their first 6,000 events). Here are other sets, and parts of those that begin behind the 6,000; on
these 0.3 was chosen, by a rule fixed beforehand: the smallest loss on any row among the shares that gain on the mean.
The members of a refit do not depend on the share, so one pass over a stream gives the AUC of every share: the votes are
weighed anew. AUC is over all forecasts but those of the first tenth, with the labels that were kept secret. Finished
cells are kept in perf/out/ and not done again; --report makes the table of what there is.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from itertools import pairwise, product

import numpy as np
import pandas as pd
from cells import OUT, Cells
from muffled_data import DATA, coded, interval, load
from sklearn.metrics import roc_auc_score

from streamlearn import HedgeMower1
from streamlearn.learners.muffled.rectified import KEPT, Pool
from streamlearn.learners.muffled.sample import Sample

STREAMS = (
    "flights_nyc13",
    "nsl_kdd",
    "higgs_7500",
    "bank_campaign",
    "spam_stream",
    "phishing",
    "creditcard_fraud_enriched",
    "connect4",
    "electricity from 20000",
    "noaa_weather from 9000",
    "covtype from 25000",
    "a9a from 15000",
)
SHARES_KEPT = (0.0, 0.3, 0.5, 0.7, 0.9)


def stream(name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n events of a set in its order, from its beginning or from a given row on."""
    name, _, start = name.partition(" from ")
    at = int(start or 0)
    if name in ("flights_nyc13", "nsl_kdd"):
        frame = pd.read_csv(DATA / f"{name}.csv.gz")[at : at + n]
        y = frame["label"].to_numpy()
        return coded(frame.drop(columns="label")), y
    X, y = load(name)
    return X[at : at + n], (y[at : at + n] > 0).astype(int)


class Unaveraged(HedgeMower1):
    """HedgeMower1 whose refits know nothing of the last weights."""

    def _pool(self, sample: Sample) -> Pool:
        return super()._pool(replace(sample, weights={}))


class Averaged:
    """The weights of one share over the refits of a stream."""

    def __init__(self, kept: float) -> None:
        self.kept = kept
        self.weights: dict[str, float] = {}

    def refitted(self, names: tuple[str, ...], found: np.ndarray) -> None:
        """Take the weights that a refit found by itself."""
        self.weights = {
            name: self.kept * self.weights.get(name, w) + (1.0 - self.kept) * w
            for name, w in zip(names, found.tolist(), strict=True)
        }


def replay(X: np.ndarray, y: np.ndarray, shown: np.ndarray, seed: int, shares: tuple[float, ...]) -> np.ndarray:
    """Return the forecasts of a stream by each share: float64[n_shares, n_events]."""
    model, labels = Unaveraged(seed=seed), np.where(shown, y, np.nan)
    forms = [Averaged(kept) for kept in shares]
    scores = np.empty((len(shares), len(y)))
    # A refit can only come behind a label: up to there all forecasts are those of one model.
    for a, b in pairwise([0, *(np.flatnonzero(shown) + 1), len(y)]):
        if a == b:
            continue
        fitted, n_refits = model.is_fitted, model.n_refits
        votes = model.votes_many(X[a:b]) if fitted else None
        prior = model.test_then_learn_many(X[a:b], labels[a:b])
        for k, form in enumerate(forms):
            scores[k, a:b] = prior if votes is None else votes @ np.array(list(form.weights.values()))
            if model.n_refits > n_refits:
                form.refitted(model.vote_names, model.vote_weights)
    return scores


def trial(name: str, share: float, seed: int, n: int) -> dict[str, float]:
    """Return the AUC of each share kept."""
    X, y = stream(name, n)
    shown = np.random.default_rng([seed, 1]).random(len(y)) < share
    counted = ~shown
    counted[: len(y) // 10] = False
    scores = replay(X, y, shown, seed, SHARES_KEPT)
    return {str(kept): roc_auc_score(y[counted], s[counted]) for kept, s in zip(SHARES_KEPT, scores, strict=True)}


def table(results: dict[tuple[str, float], list[dict[str, float]]], n_events: int) -> str:
    """Return AUC without averaging, and what each share adds."""
    others = [str(kept) for kept in SHARES_KEPT if kept > 0.0]
    lines = [
        f"AUC without averaging, and what keeping a share adds, paired by seed +- 95 %; up to {n_events} events",
        f"{'stream':>26} {'labels':>6} {'seeds':>5} {'0.0':>7} " + " ".join(f"{m:>16}" for m in others),
    ]
    for (name, share), trials in results.items():
        cells = []
        for m in others:
            d, half = interval([t[m] - t["0.0"] for t in trials])
            # One seed has no interval.
            cells.append(f"{d:+.4f}+-{half:.4f}{'*' if abs(d) > half else ' '}" if len(trials) > 1 else f"{d:+.4f}")
        base = np.mean([t["0.0"] for t in trials])
        lines.append(f"{name:>26} {share:>6.0%} {len(trials):>5} {base:7.4f} " + " ".join(f"{c:>16}" for c in cells))
    for m in others:
        means = [np.mean([t[m] - t["0.0"] for t in trials]) for trials in results.values()]
        d, half = interval(means)
        better = sum(v > 0 for v in means)
        chosen = ", the default" if float(m) == KEPT else ""
        lines.append(
            f"{m} - 0.0, mean over rows {d:+.4f}+-{half:.4f}, above 0 in {better} of {len(means)} rows{chosen}"
        )
    for m in others:
        worst = min(np.mean([t[m] - t["0.0"] for t in trials]) for trials in results.values())
        lines.append(f"{m}: largest loss on a row {worst:+.4f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=6000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--shares", nargs="+", type=float, default=[0.03, 0.1])
    parser.add_argument("--streams", nargs="+", default=list(STREAMS))
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    cells = Cells("muffled_kept")
    rows = list(product(options.streams, options.shares))
    for seed, (name, share) in product(range(0 if options.report else options.seeds), rows):
        key = (name, share, seed, options.events)
        cells.get(key, partial(trial, name, share, seed, options.events))
        print(f"{name} {share:.0%}, seed {seed}", flush=True)
    keys = {row: [(*row, seed, options.events) for seed in range(options.seeds)] for row in rows}
    found = {row: [cell for key in those if (cell := cells.find(key))] for row, those in keys.items()}
    text = table({row: trials for row, trials in found.items() if trials}, options.events)
    print(text)
    (OUT / "muffled_kept.txt").write_text(text + "\n")


if __name__ == "__main__":
    main()
