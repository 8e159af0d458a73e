"""Tables and pictures of the robust simulations, and their options."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

OUT = Path(__file__).parent / "out"
SHARES = [0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.6]
Lines = list[tuple[str, list[float]]]


def options(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Read the options; --quick is a run of seconds that shows the form of the tables and nothing else."""
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.batches, chosen.features, chosen.shares, chosen.repeats = 20, 12, [0.0, 0.2, 0.4], 2
    chosen.out.mkdir(exist_ok=True)
    return chosen


def table(title: str, columns: list[str], lines: Lines) -> None:
    print(title)
    print(" " * 32, *(f"{name:>9s}" for name in columns))
    for name, values in lines:
        print(f"{name:32s}", *(f"{value:9.4f}" for value in values), flush=True)


def spent(start: float) -> None:
    print(f"{time.process_time() - start:.0f} s of processor time\n", flush=True)


def picture(path: Path, title: str, x: list[float], lines: Lines, label: str) -> None:
    import matplotlib as mpl  # noqa: PLC0415 - an extra

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(7, 4.5))
    for which, values in lines:
        axes.plot(x, np.maximum(values, 1e-12), marker="o", markersize=3, label=which)
    axes.set(xlabel=label, ylabel="relative error", title=title, yscale="log")
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
