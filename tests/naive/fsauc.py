"""The saddle form of the pairwise square loss (Liu, Zhang, Chen, Wang & Yang 2018) and its stages."""

import math

from tests.naive.rescaling import NaiveCalibration, NaiveScaler, dot


def saddle(w, a, b, alpha, x, y, p):
    """Return F(w, a, b, alpha; x, y)."""
    s = dot(w, x)
    if y == 1:
        return (1 - p) * (s - a) ** 2 - 2 * (1 + alpha) * (1 - p) * s - p * (1 - p) * alpha**2
    return p * (s - b) ** 2 + 2 * (1 + alpha) * p * s - p * (1 - p) * alpha**2


def pair_loss(w, positives, negatives):
    """Return the mean of ``(1 - w.(x+ - x-))^2`` over all pairs."""
    return math.fsum((1 - dot(w, x) + dot(w, o)) ** 2 for x in positives for o in negatives) / (
        len(positives) * len(negatives)
    )


def project_l1(w, radius):
    """Return the nearest point with ``sum |w_j| <= radius``: threshold from the sorted sizes."""
    if math.fsum(abs(v) for v in w) <= radius:
        return list(w)
    total, threshold = 0.0, 0.0
    for n, size in enumerate(sorted((abs(v) for v in w), reverse=True), 1):
        total += size
        if size <= (total - radius) / n:
            break
        threshold = (total - radius) / n
    return [math.copysign(max(abs(v) - threshold, 0.0), v) for v in w]


def stages(n):
    return max(1, math.floor(0.5 * math.log2(2 * n / math.log2(n))) - 1)


def clip(v, low, high):
    return min(max(v, low), high)


class NaiveFSAUC:
    def __init__(self, n_features, *, rate=None, radius=10.0, scale="standard"):
        self.rate, self.radius = rate, radius
        self.scaler, self.calibration = NaiveScaler(scale), NaiveCalibration()
        self.v_mean = ([0.0] * n_features, 0.0, 0.0)
        self.rows, self.norms = ([], []), []
        self.n_epoch, self.schedule, self.left = 32, [], 0

    @property
    def seen(self):
        return [len(rows) for rows in self.rows]

    def score(self, x):
        return dot(self.v_mean[0], self.scaler.scaled(x))

    def probability(self, x):
        return self.calibration.probability(self.score(x), *self.seen)

    def class_gap(self):
        centres = [[math.fsum(c) / len(rows) for c in zip(*rows, strict=True)] for rows in self.rows]
        _, scales = self.scaler.centre_and_scale()
        return [(c0 - c1) * s for c0, c1, s in zip(*centres, scales, strict=True)]

    def begin_epoch(self):
        self.n_epoch *= 2
        k, R = max(self.norms), self.radius
        self.n0 = self.n_epoch // stages(self.n_epoch)
        self.stages_left = stages(self.n_epoch)
        self.ball = 2 * math.sqrt(1 + 2 * k**2) * R
        self.dual = 2 * math.sqrt(2) * k * self.ball
        self.beta, self.factor = 1 + 8 * k**2, 1.0
        self.begin_stage()

    def next_stage(self):
        k, R, n0 = max(self.norms), self.radius, self.n0
        p = len(self.rows[1]) / len(self.norms)
        c = math.sqrt(2 * math.log(12 / 0.1))
        self.ball /= 2
        under = min(p, 1 - p) * n0 - math.sqrt(2 * n0 * math.log(12 / 0.1))
        below = min(p, 1 - p) - math.sqrt(2 * math.log(12 / 0.1) / n0)
        self.dual = math.inf
        if under > 0:
            far = 4 * math.sqrt(2) * k * (2 + c) * (1 + 2 * k) * R / math.sqrt(under)
            self.dual = 2 * math.sqrt(2) * k * self.ball + far
        beta = 1 + 8 * k**2 + 32 * k**2 * (1 + 2 * k) ** 2 * (2 + c) ** 2 / below if below > 0 else math.inf
        ratio = 1.0 if beta == self.beta else beta / self.beta
        self.factor = min(math.sqrt(ratio) * self.factor / 2, self.factor)
        self.beta = beta
        self.begin_stage()

    def begin_stage(self):
        self.v = self.v_mean
        self.alpha = dot(self.class_gap(), self.v_mean[0])
        self.start, self.alpha_start = self.v, self.alpha
        self.points = []
        self.schedule.append((self.n0, self.factor))

    def learn(self, x, y):
        if all(self.seen):
            self.calibration.learn(self.score(x), y, *self.seen)
        self.scaler.observe(x)
        self.rows[y].append(list(x))
        z = self.scaler.scaled(x)
        self.norms.append(math.sqrt(dot(z, z)))
        if not all(self.seen):
            return
        if self.left == 0:
            more = bool(self.schedule) and self.stages_left > 1
            if more:
                self.stages_left -= 1
                self.next_stage()
            else:
                self.begin_epoch()
            self.left = self.n0
        self.left -= 1
        self.step(z, y)
        self.points.append(self.v)
        count = len(self.points)
        self.v_mean = (
            [math.fsum(c) / count for c in zip(*(w for w, _, _ in self.points), strict=True)],
            math.fsum(a for _, a, _ in self.points) / count,
            math.fsum(b for _, _, b in self.points) / count,
        )

    def eta(self, z):
        if self.rate is not None:
            return self.rate * self.factor
        mean2 = math.fsum(v * v for v in self.norms) / len(self.norms)
        return self.factor * min(1 / (4 * (1 + mean2)), 1 / (2 * (1 + dot(z, z))))

    def step(self, z, y):
        (w, a, b), alpha, p, eta = self.v, self.alpha, len(self.rows[1]) / len(self.norms), self.eta(z)
        s = dot(w, z)
        if y == 1:
            gw, ga, gb = 2 * (1 - p) * (s - a - 1 - alpha), -2 * (1 - p) * (s - a), 0.0
            dual = -2 * (1 - p) * (s + p * alpha)
        else:
            gw, ga, gb = 2 * p * (s - b + 1 + alpha), 0.0, -2 * p * (s - b)
            dual = 2 * p * (s - (1 - p) * alpha)
        side = self.radius * max(self.norms)
        w = project_l1([u - eta * gw * v for u, v in zip(w, z, strict=True)], self.radius)
        a, b = clip(a - eta * ga, -side, side), clip(b - eta * gb, -side, side)
        alpha = clip(alpha + eta * dual, -2 * side, 2 * side)
        w0, a0, b0 = self.start
        far = math.sqrt(math.fsum((u - v) ** 2 for u, v in zip([*w, a, b], [*w0, a0, b0], strict=True)))
        t = min(1.0, self.ball / far) if far else 1.0
        self.v = ([v + t * (u - v) for u, v in zip(w, w0, strict=True)], a0 + t * (a - a0), b0 + t * (b - b0))
        self.alpha = clip(alpha, self.alpha_start - self.dual, self.alpha_start + self.dual)
