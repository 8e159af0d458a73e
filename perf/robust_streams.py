"""Real regression streams for the robust benchmarks: rows, targets, and which rows are without a documented error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

DATA = Path(__file__).parent.parent.parent / "shared" / "data"


class Stream(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    clean: np.ndarray


def one_hot(column: pd.Series) -> pd.DataFrame:
    return pd.get_dummies(column, prefix=column.name).astype(float)


def metro() -> Stream:
    """Traffic volume by hour, weekday, hour at the weekend and weather; readings of 0 K and 9,831 mm are left in."""
    d = pd.read_csv(DATA / "metro_traffic.csv.gz")
    numeric = d[["holiday", "temp", "rain_1h", "snow_1h", "clouds_all"]].astype(float)
    weekend = one_hot(d["hour"]).mul((d["dayofweek"] >= 5).astype(float), axis=0)
    X = pd.concat([numeric, one_hot(d["hour"]), one_hot(d["dayofweek"]), weekend, one_hot(d["weather_main"])], axis=1)
    return Stream(X.to_numpy(), d["label"].to_numpy(float), ((d.temp > 200) & (d.rain_1h < 1000)).to_numpy())


def metro_raw() -> Stream:
    """The same by seven numbers."""
    d = pd.read_csv(DATA / "metro_traffic.csv.gz")
    X = d[["hour", "dayofweek", "holiday", "temp", "rain_1h", "snow_1h", "clouds_all"]].to_numpy(float)
    return Stream(X, d["label"].to_numpy(float), ((d.temp > 200) & (d.rain_1h < 1000)).to_numpy())


def air() -> Stream:
    """Carbon monoxide by other sensors; -200 marks a failed reading, of the target as well, and is left in."""
    d = pd.read_csv(DATA / "air_quality.csv.gz").drop(columns="datetime")
    y = d.pop("label").to_numpy(float)
    return Stream(d.to_numpy(float), y, ((d.drop(columns="NMHC_GT") != -200).all(axis=1) & (y != -200)).to_numpy())


def flights(dep_delay: bool) -> Stream:
    """Delay on arrival, in minutes, with a heavy tail."""
    d = pd.read_csv(DATA / "flights_nyc13.csv.gz")
    numeric = d[["month", "day", "distance"] + ["dep_delay"] * dep_delay].astype(float)
    for name in ("sched_dep_time", "sched_arr_time"):
        numeric[name] = d[name] // 100 * 60.0 + d[name] % 100
    X = pd.concat([numeric, one_hot(d["carrier"]), one_hot(d["origin"])], axis=1)
    y = d["arr_delay"].to_numpy(float)
    return Stream(X.to_numpy(), y, np.abs(y) <= 180)


STREAMS = {
    "air": air,
    "metro": metro,
    "metro_raw": metro_raw,
    "flights": lambda: flights(dep_delay=True),
    "flights, no dep_delay": lambda: flights(dep_delay=False),
}


def first(stream: Stream, n_rows: int) -> Stream:
    return Stream(*(part[:n_rows] for part in stream))


def require_data() -> None:
    if not DATA.exists():
        sys.exit(f"the data sets are not shipped with the package: expected in {DATA}")
