"""A bank of robust recursive regressions with different memories, and their mixture."""

from __future__ import annotations

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.kernels.jit import kernel

STRIDE = 8  # rows of matrices are padded to a multiple, so that loops over them have no rest
S, LOW, HIGH, ROWS, RUN, BELOW, ABOVE = 0, 1, 2, 3, 4, 5, 6  # places in `numbers`
N_NUMBERS = 7

_LARGEST = 1e150  # targets are clipped here
_FARTHEST = 1e6  # scaled values are clipped here
QUANTILE = 0.4
QUANTILE_TO_SIGMA = 1.9069
"""Standard deviation of normal residuals over the 0.4 quantile of their sizes.

Not the median: with 45 % of bad rows that is the 91 % quantile of the good ones, and where their tails are heavy the
bad rows are then no longer told.
"""
_SIDES_APART = 4.0
"""How far below the scale of all residuals that of one side may be: more is a point mass of targets, not bad rows."""
_CONVEX = 1.0  # sigmas up to which a residual counts in full
_REDESCEND = 10.0  # sigmas from which on it counts nothing
_NEAR = 3.0  # scaled size up to which a row counts in full for the convex companion
_RIDGE, _ANCHOR, _INTERCEPT_RIDGE = 0.1, 5.0, 1e-9
_LOSS_CAP, _LOSS_MEMORY, LOSS_RATE = 5.0, 300.0, 0.3
_SCALE_LAG, _SCALE_RATE = 50.0, 0.004
_RANGE_SIGMAS, _RANGE_MARGIN = 4.0, 0.1
_LONG_RUN = 500.0
_TWO_SWEEPS = 30  # columns up to which a second sweep is cheap
_FLUSH_EVERY, _NOTHING = 256, 1e-30
RESTART_LEAD = 300.0
"""Bounded losses that an expert without forgetting may be behind: one sigma a row over the memory of the losses."""
RESTART_ROWS, RESTART_AGE = 300.0, 600.0


@kernel
def scaled_row(x: FloatArray, centre: FloatArray, scale: FloatArray, z: FloatArray) -> float:
    """Write 1 and the scaled row into z; return its largest size.

    Parameters
    ----------
    x : float64[p - 1]
    centre, scale : float64[p - 1]
        A scale of 0 stands for a column that was constant so far: its value is 0.
    z : float64[>= p]
        Written up to p.
    """
    z[0] = 1.0
    largest = 0.0
    for j in range(len(x)):
        v = 0.0
        if scale[j] > 0.0:
            v = min(max((x[j] - centre[j]) / scale[j], -_FARTHEST), _FARTHEST)
        z[j + 1] = v
        largest = max(largest, abs(v))
    return float(largest)


@kernel
def first_scales(x: FloatArray, centre: FloatArray, scale: FloatArray) -> None:
    """Give a column that was constant so far its first deviation as scale, in place."""
    for j in range(len(x)):
        if scale[j] == 0.0 and x[j] != centre[j]:
            scale[j] = min(max(abs(x[j] - centre[j]), 1e-300), 1e300)


@kernel
def forecast(z: FloatArray, theta: FloatArray, losses: FloatArray, numbers: FloatArray, each: FloatArray) -> float:
    """Return the mixture's prediction; write each expert's into `each`, clipped to the range of believed targets.

    Parameters
    ----------
    z : float64[stride]
    theta : float64[n_experts, stride]
    losses : float64[n_experts]
    numbers : float64[N_NUMBERS]
    each : float64[n_experts]
        Written.
    """
    margin = _RANGE_MARGIN * (numbers[HIGH] - numbers[LOW])
    low, high = numbers[LOW] - margin, numbers[HIGH] + margin
    least = losses.min()
    total = mixed = 0.0
    for k in range(len(theta)):
        f = 0.0
        for j in range(theta.shape[1]):
            f += theta[k, j] * z[j]
        each[k] = min(max(f, low), high)
        w = np.exp(-LOSS_RATE * (losses[k] - least))
        total += w
        mixed += w * each[k]
    return float(mixed / total)


@kernel
def absorb(
    w: float,
    keep: float,
    y: float,
    z: FloatArray,
    gram: FloatArray,
    target: FloatArray,
    theta: FloatArray,
    anchor: FloatArray,
    pull: float,
    intercept_pull: float,
    n_sweeps: int,
    product: FloatArray,
) -> None:
    """Take one row of weight w into an expert and sweep over its equations (A + dI) theta = b + d anchor.

    One Gauss-Seidel sweep an event needs no inverse and cannot blow up, whatever the columns. A theta is kept up to
    date by adding columns, which vectorises; sums along rows would be four times as slow. A is symmetric: its rows
    serve as columns.

    Parameters
    ----------
    w, keep, y : float
        Weight of the row, share of the old that stays, target.
    z : float64[stride]
    gram : float64[p, stride]
        A <- keep A + w z z'; changed.
    target : float64[p]
        b <- keep b + w y z; changed.
    theta : float64[stride]
        Changed.
    anchor : float64[stride]
    pull, intercept_pull : float
        d.
    n_sweeps : int
    product : float64[stride]
        Scratch: A theta.
    """
    p, stride = gram.shape
    for i in range(p):
        row = gram[i]
        step = w * z[i]
        for j in range(stride):
            row[j] = keep * row[j] + step * z[j]
        target[i] = keep * target[i] + step * y
    for j in range(stride):
        product[j] = 0.0
    for i in range(p):
        row = gram[i]
        t = theta[i]
        for j in range(stride):
            product[j] += row[j] * t
    for _ in range(n_sweeps):
        for i in range(p):
            row = gram[i]
            d = intercept_pull if i == 0 else pull
            change = (target[i] + d * (anchor[i] - theta[i]) - product[i]) / (row[i] + d)
            theta[i] += change
            for j in range(stride):
                product[j] += row[j] * change


@kernel
def believed_quantile(numbers: FloatArray) -> float:
    """Return the 0.4 quantile of the sizes of good residuals: that of the side of zero where it is less.

    Bad rows on one side leave the other side's spread as it was. In the spread of both the bias counts that they give
    the convex companion, and is fed back: with 45 % of them any scale grows until none is told from good ones.

    Parameters
    ----------
    numbers : float64[N_NUMBERS]
    """
    return float(max(min(numbers[BELOW], numbers[ABOVE]), numbers[S] / _SIDES_APART))


@kernel
def _move(size: float, place: int, g: float, numbers: FloatArray) -> None:
    """Move a running quantile of sizes by a step of fixed ratio."""
    step = 2.0 * QUANTILE if size > numbers[place] else 2.0 * QUANTILE - 2.0
    numbers[place] = min(max(numbers[place] * np.exp(step * g), 1e-200), _LARGEST)


@kernel
def _track_scales(off: float, numbers: FloatArray) -> None:
    """Move the running quantiles of the residuals' sizes, of all and of those on the same side of zero."""
    size = abs(off)
    run = numbers[RUN]
    numbers[RUN] = (max(run, 0.0) + 1.0) if size > numbers[S] else (min(run, 0.0) - 1.0)
    g = max(1.0 / (numbers[ROWS] + _SCALE_LAG), _SCALE_RATE)
    if abs(numbers[RUN]) > _LONG_RUN:
        # Only a scale that is wrong by orders of magnitude is passed so often in a row: after a constant start.
        g = 0.1
    _move(size, S, g, numbers)
    _move(size, ABOVE if off > 0.0 else BELOW, g, numbers)


@kernel
def _restart(n_poly: int, losses: FloatArray, lags: FloatArray, ages: FloatArray) -> None:
    """Shorten the memory of experts that never forget, where they were far worse than the best for long.

    Steps of 1/n never leave a poisoned start. The state of the best expert is not copied: it may be one that locked
    itself onto outliers, and the convex companion is what keeps the others from that.
    """
    least = losses.min()
    for k in range(n_poly):
        lags[k] = lags[k] + 1.0 if losses[k] - least > RESTART_LEAD else 0.0
        if lags[k] > RESTART_ROWS:
            ages[k] = min(ages[k], RESTART_AGE)
            lags[k] = 0.0


@kernel
def bank_rows(
    X: FloatArray,
    y: FloatArray,
    out: FloatArray,
    n_poly: int,
    rates: FloatArray,
    centre: FloatArray,
    scale: FloatArray,
    numbers: FloatArray,
    losses: FloatArray,
    lags: FloatArray,
    ages: FloatArray,
    grams: FloatArray,
    targets: FloatArray,
    theta: FloatArray,
    scratch: FloatArray,
) -> None:
    """Predict each row, then learn it, in order.

    Parameters
    ----------
    X : float64[n_rows, p - 1]
        Finite.
    y : float64[n_rows]
        Finite, or NaN where there is no target: such a row is predicted only.
    out : float64[n_rows]
        Predictions; written.
    n_poly : int
        The first experts forget at the rate max(min(1/2, 2 / age), rates[k]), the others at rates[k].
    rates : float64[n_experts]
    centre, scale : float64[p - 1]
        Scales of columns that were constant so far are set by their first deviation.
    numbers : float64[N_NUMBERS]
        0.4 quantile of the residuals' sizes, range of believed targets, rows learned, run of the scale, and that
        quantile of the residuals below and above zero; changed.
    losses, lags, ages : float64[n_experts]
        Bounded losses, rows of being far behind, rows of memory; changed.
    grams, targets, theta : float64[n_experts, p, stride], [n_experts, p], [n_experts, stride]
        Changed. theta is 0 beyond p.
    scratch : float64[4, stride]
        Written. Of at least n_experts columns.
    """
    n_experts, p, _ = grams.shape
    z, zero = scratch[0], scratch[1]
    each = scratch[2][:n_experts]
    product = scratch[3]
    z[:] = 0.0
    zero[:] = 0.0
    n_sweeps = 2 if p <= _TWO_SWEEPS else 1
    for i in range(len(X)):
        largest = scaled_row(X[i], centre, scale, z)
        f = forecast(z, theta, losses, numbers, each)
        out[i] = f
        if y[i] != y[i]:
            continue
        first_scales(X[i], centre, scale)
        largest = scaled_row(X[i], centre, scale, z)
        value = min(max(y[i], -_LARGEST), _LARGEST)
        sigma = QUANTILE_TO_SIGMA * believed_quantile(numbers)
        size = abs(value - f)
        if size < _RANGE_SIGMAS * sigma:
            numbers[LOW] = min(numbers[LOW], value)
            numbers[HIGH] = max(numbers[HIGH], value)
        numbers[ROWS] += 1.0
        _track_scales(value - f, numbers)
        convex = abs(value - each[0]) / sigma
        for k in range(n_experts):
            u = abs(value - each[k]) / sigma
            losses[k] += min(u, _LOSS_CAP) - losses[k] / _LOSS_MEMORY
            w = 1.0 if u <= _CONVEX else _CONVEX / u
            if k == 0:
                # Rows far out in x have a bounded say: what the companion believes limits all others.
                w *= min(1.0, (_NEAR / max(largest, _NEAR)) ** 2)
            else:
                # A row that the convex companion finds near is never cut off: else a lone expert could lock itself out.
                t = min(u, convex) / _REDESCEND
                w *= (1.0 - t * t) ** 2 if t < 1.0 else 0.0
            rate = rates[k]
            if k < n_poly:
                ages[k] += 1.0
                rate = max(rate, min(0.5, 2.0 / ages[k]))
            anchor = zero if k == 0 else theta[k - 1]
            pull = _RIDGE if k == 0 else _ANCHOR
            first = _INTERCEPT_RIDGE if k == 0 else _ANCHOR
            absorb(w, 1.0 - rate, value, z, grams[k], targets[k], theta[k], anchor, pull, first, n_sweeps, product)
        _restart(n_poly, losses, lags, ages)
        if int(numbers[ROWS]) % _FLUSH_EVERY == 0:
            for k in range(n_experts):
                for a in range(p):
                    for b in range(p):
                        if abs(grams[k, a, b]) < _NOTHING:
                            grams[k, a, b] = 0.0  # far below the ridge, and soon in the range where arithmetic is slow


@kernel
def gather_start(
    Z: FloatArray,
    y: FloatArray,
    weights: FloatArray,
    n_poly: int,
    rates: FloatArray,
    ages: FloatArray,
    grams: FloatArray,
    targets: FloatArray,
) -> None:
    """Take the start's rows, already weighed, into every expert's equations.

    Parameters
    ----------
    Z : float64[n_rows, stride]
        Scaled rows, intercept first.
    y, weights : float64[n_rows]
    n_poly : int
    rates, ages : float64[n_experts]
        `ages` is changed.
    grams, targets : float64[n_experts, p, stride], [n_experts, p]
        Changed.
    """
    n_experts, p, stride = grams.shape
    for k in range(n_experts):
        for i in range(len(Z)):
            rate = rates[k]
            if k < n_poly:
                ages[k] += 1.0
                rate = max(rate, min(0.5, 2.0 / ages[k]))
            for a in range(p):
                step = weights[i] * Z[i, a]
                targets[k, a] = (1.0 - rate) * targets[k, a] + step * y[i]
                for b in range(stride):
                    grams[k, a, b] = (1.0 - rate) * grams[k, a, b] + step * Z[i, b]
