"""Metrics from their definitions, by loops over all pairs and all events."""

from __future__ import annotations

import itertools
import math


def pair_counts(codes, scores, tau=0.0, weights=None):
    """Return (positive higher by more than tau, lower by more than tau, all pairs)."""
    weights = [1] * len(codes) if weights is None else weights
    higher = lower = total = 0
    for y, s, w in zip(codes, scores, weights, strict=True):
        for z, t, v in zip(codes, scores, weights, strict=True):
            if y == 1 and z == 0:
                total += w * v
                higher += w * v * (s - t > tau)
                lower += w * v * (s - t < -tau)
    return higher, lower, total


def auc(codes, scores, weights=None):
    higher, lower, total = pair_counts(codes, scores, 0.0, weights)
    return (higher + (total - higher - lower) / 2) / total if total else math.nan


def tau_of(d):
    return math.log((1 - d) / d)


def reject_auc(codes, scores, d):
    higher, lower, _total = pair_counts(codes, scores, tau_of(d))
    if d == 0.5:
        return auc(codes, scores)
    return higher / (higher + lower) if higher + lower else math.nan


def reject_rate(codes, scores, d):
    higher, lower, total = pair_counts(codes, scores, tau_of(d))
    return (total - higher - lower) / total if total else math.nan


def reject_risk(codes, scores, d):
    higher, lower, total = pair_counts(codes, scores, tau_of(d))
    return (lower + d * (total - higher - lower)) / total if total else math.nan


def event_rule(codes, scores, d):
    """Return reject rate, accuracy, risk, AUC of the kept and pair reject rate of rejecting single events."""
    tau = tau_of(d)
    kept = [(y, s) for y, s in zip(codes, scores, strict=True) if abs(s) >= tau]
    right = sum((s >= 0) == (y == 1) for y, s in kept)
    n = len(codes)
    pairs = sum(y == 1 for y in codes) * sum(y == 0 for y in codes)
    kept_pairs = sum(y == 1 for y, _ in kept) * sum(y == 0 for y, _ in kept)
    return (
        1 - len(kept) / n,
        right / len(kept) if kept else math.nan,
        (len(kept) - right + d * (n - len(kept))) / n,
        auc([y for y, _ in kept], [s for _, s in kept]) if kept_pairs else math.nan,
        1 - kept_pairs / pairs,
    )


def curve_area(rates, aucs, r_max, steps=20000):
    """Return the mean of the piecewise linear curve over [0, r_max], held constant outside, by the midpoint rule."""
    known = [(r, a) for r, a in zip(rates, aucs, strict=True) if not math.isnan(a)]
    total = 0.0
    for k in range(steps):
        x = (k + 0.5) * r_max / steps
        value = known[0][1] if x <= known[0][0] else known[-1][1]
        for (r0, a0), (r1, a1) in itertools.pairwise(known):
            if r0 < x <= r1:
                value = a0 + (a1 - a0) * (x - r0) / (r1 - r0)
                break
        total += value
    return total / steps


def event_weights(n, window=None, fading=None):
    """Return what each of n events counts at the end."""
    if window is not None:
        return [float(i >= n - window) for i in range(n)]
    if fading is not None:
        return [fading ** (n - 1 - i) for i in range(n)]
    return [1.0] * n


def _mean(values, weights):
    total = math.fsum(weights)
    return math.fsum(v * w for v, w in zip(values, weights, strict=True)) / total if total else math.nan


def accuracy(y, decisions, w):
    kept = [(a == b, v) for a, b, v in zip(y, decisions, w, strict=True) if not math.isnan(b)]
    return _mean([right for right, _ in kept], [v for _, v in kept])


def coverage(y, decisions, w):
    return _mean([not math.isnan(b) for b in decisions], w)


def risk(y, decisions, w, d=0.3):
    return _mean([d if math.isnan(b) else float(a != b) for a, b in zip(y, decisions, strict=True)], w)


def logloss(y, probabilities, w):
    return _mean([-math.log(p if a == 1 else 1 - p) for a, p in zip(y, probabilities, strict=True)], w)


def kappa(y, decisions, w):
    kept = [(a, b, v) for a, b, v in zip(y, decisions, w, strict=True) if not math.isnan(b)]
    n = math.fsum(v for _, _, v in kept)
    agree = math.fsum(v for a, b, v in kept if a == b) / n
    chance = 0.0
    for c in (0, 1):
        chance += math.fsum(v for a, _, v in kept if a == c) / n * math.fsum(v for _, b, v in kept if b == c) / n
    return (agree - chance) / (1 - chance)


def _against(y, decisions, w, baseline):
    kept = [(float(a == b), r, v) for a, b, r, v in zip(y, decisions, baseline, w, strict=True) if not math.isnan(b)]
    weights = [v for _, _, v in kept]
    ours, theirs = _mean([a for a, _, _ in kept], weights), _mean([r for _, r, _ in kept], weights)
    return (ours - theirs) / (1 - theirs)


def kappa_t(y, decisions, w):
    return _against(y, decisions, w, [0.5] + [float(a == b) for a, b in itertools.pairwise(y)])


def kappa_m(y, decisions, w):
    baseline = []
    for i, a in enumerate(y):
        ones, zeros = sum(y[:i]), i - sum(y[:i])
        baseline.append(0.5 if ones == zeros else float((ones > zeros) == (a == 1)))
    return _against(y, decisions, w, baseline)


def mae(y, values, w):
    return _mean([abs(a - b) for a, b in zip(y, values, strict=True)], w)


def rmse(y, values, w):
    return math.sqrt(_mean([(a - b) ** 2 for a, b in zip(y, values, strict=True)], w))
